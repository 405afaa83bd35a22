#!/usr/bin/env bash
# install_test.sh SETTINGS: installs this build, moves it, and builds and runs examples/ against it, in both kinds.
set -euo pipefail
source "$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
prefix="$work/moved/prefix"
# The folder's name differs from run to run, and is not a part of what the compiler cache looks for.
export CCACHE_BASEDIR="$work" CCACHE_NOHASHDIR=1

fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
say() { printf '== %s\n' "$*"; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }; }

# Both kinds go through the same folder, so that the compiler cache serves the second one.
install_moved() {  # component
  rm -rf "$work/first" "$work/moved"
  mkdir "$work/moved"
  quietly cmake --install "$build_folder" --prefix "$work/first" --component headers
  quietly cmake --install "$build_folder" --prefix "$work/first" --component "$1"
  mv "$work/first" "$prefix"
}

build_against() {  # source folder, prefix path, more CMake arguments
  local source="$1" path="$2"
  shift 2
  rm -rf "$work/build"
  # LibTorch comes from the package's own hint or from the prefix path, not from the environment.
  env -u TORCH_DIR cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=$flags" \
    "-DCMAKE_CXX_COMPILER_LAUNCHER=$ccache" "-DCMAKE_PREFIX_PATH=$path" "$@" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "configure of $source"; }
  if grep -i warning "$work/log"; then fail "a user's configure prints warnings"; fi
  quietly cmake --build "$work/build" ${targets:+--target $targets}
}

needed() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'; }

say "exported files name no folder of the build"
install_moved sluice
if grep -rn -e "$build_folder" -e "$work" "$prefix/lib/cmake"; then fail "an exported file names a folder of the build"; fi
if grep -rn jemalloc "$prefix/lib/cmake"; then fail "the package chooses its users' allocator"; fi
if grep -rn "$source_folder" "$prefix/lib/cmake" | grep -v -F "$torch_root"; then fail "an exported file names the source"; fi

say "digits for the examples"
digits="$work/digits"
python3 - "$work/digits.csv.gz" <<'PY'
import gzip, random, sys
random.seed(5)
with gzip.open(sys.argv[1], "wt") as file:
    for row in range(200):
        label = row % 10
        file.write(",".join(str(random.randint(0, 16) if i % 10 == label else 0) for i in range(64)) + f",{label}\n")
PY
quietly "$program" data digits "$work/digits.csv.gz" "$digits"

for kind in sluice other; do
  say "component $kind: examples/train, with --as-needed"
  install_moved "$kind"
  build_against "$source_folder/examples/train" "$prefix" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed
  "$work/build/train_by_hand"
  "$work/build/train_session" "$digits/train-*.tar"
  "$work/build/autoencoder" "$digits/train-*.tar" "$digits/test-*.tar" "$work/autoencoder-$kind"
  [ "$(wc -l <"$work/autoencoder-$kind/codes.jsonl")" -gt 20 ] || fail "the autoencoder's codes are missing"
  "$work/build/gan" "$digits/train-*.tar" "$work/gan-$kind"
  if needed "$work/build/train_session" | grep jemalloc; then fail "a user's program has our allocator"; fi
  if compgen -G "$prefix/lib/libsluice.so*" >/dev/null; then
    needed "$work/build/train_by_hand" | grep -q libsluice || fail "libsluice.so is not needed by the example"
  fi
done

say "a program of examples/gallery"
targets=polynomial build_against "$source_folder/examples/gallery" "$prefix" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
"$work/build/polynomial" --steps 20 >"$work/log"
grep -q '^polynomial on xla: loss ' "$work/log" || { cat "$work/log"; fail "polynomial has no last line"; }

say "COMPONENTS data, without LibTorch"
install_moved sluice
mv "$prefix/lib/cmake/sluice/sluice_torch.cmake" "$work/hidden"
build_against "$source_folder/examples/read_shards" "$prefix"
mv "$work/hidden" "$prefix/lib/cmake/sluice/sluice_torch.cmake"
"$work/build/read_shards" "$digits/train-*.tar"
if needed "$work/build/read_shards" | grep -E 'torch|c10|xla'; then fail "sluice::data links LibTorch"; fi

say "an unknown component, and no LibTorch: one clear message each"
mkdir "$work/user"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(user LANGUAGES CXX)' \
  'find_package(sluice CONFIG REQUIRED COMPONENTS ${component})' >"$work/user/CMakeLists.txt"
expect_message() {  # component, message
  if cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix" -Dcomponent="$1" >"$work/log" 2>&1; then
    fail "component $1 was found"
  fi
  tr -s ' \n' '  ' <"$work/log" | grep -q -F "$2" || { cat "$work/log"; fail "no message: $2"; }
}
expect_message pods 'the component "pods" is not installed'
sed -i 's/sluice_find_torch(".*")/sluice_find_torch()/' "$prefix/lib/cmake/sluice/sluiceConfig.cmake"
(unset TORCH_DIR; expect_message sluice 'LibTorch 2.11 to 2.14 was not found')

say "FetchContent (and so add_subdirectory): the shard reader; no tests, no -Werror"
mkdir "$work/fetch"
cp "$source_folder"/examples/read_shards/read_shards.cc "$work/fetch"
cat >"$work/fetch/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(sluice SOURCE_DIR $source_folder)
FetchContent_MakeAvailable(sluice)
add_executable(read_shards read_shards.cc)
target_link_libraries(read_shards PRIVATE sluice::data)
CMAKE
build_targets() { cmake --build "$work/build" --target "$@"; }
cmake -S "$work/fetch" -B "$work/build" -G Ninja -DSLUICE_TORCH=OFF -DSLUICE_TESTS=ON -DCMAKE_CXX_FLAGS=-O0 \
  "-DCMAKE_CXX_COMPILER_LAUNCHER=$ccache" --fresh >"$work/log" 2>&1 || { cat "$work/log"; fail "FetchContent"; }
if grep -q -e -Werror -e gtest "$work/build/build.ninja"; then fail "a subproject has -Werror or tests"; fi
quietly build_targets read_shards
"$work/build/read_shards" "$digits/train-*.tar"

say "add_subdirectory with LibTorch configures and offers sluice::sluice"
cat >"$work/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
add_subdirectory($source_folder sluice)
if(NOT TARGET sluice::sluice OR NOT TARGET sluice::data)
  message(FATAL_ERROR "no sluice::sluice or no sluice::data")
endif()
CMAKE
quietly cmake -S "$work/user" -B "$work/subdirectory" -G Ninja
say "all good"
