#!/usr/bin/env bash
# dist_test.sh [SUITE…]: what scripts/dist packed, where nothing else is (as root, with a network; `make test-dist`).
#
# For each SUITE (default: bookworm; jammy is Ubuntu 22.04) debootstrap makes the smallest root, kept in build/dist/roots,
# and the quickstart trains in it from the unpacked archive. In another root with a compiler the examples are built
# against the archive. The wheel is installed into a fresh virtual environment here, trains, and offers find_package.
set -euo pipefail
cd "$(dirname "$0")/../.."
suites=("${@:-bookworm}")
out="$PWD/build/dist"
roots="$out/roots"

fail() { printf 'test-dist: %s\n' "$*" >&2; exit 1; }
say() { printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"; }

((EUID == 0)) || fail "it makes roots with debootstrap and needs to be root"
command -v debootstrap >/dev/null || fail "install the Debian package debootstrap"
archive="$(find "$out" -maxdepth 1 -name 'sluice-*.tar.zst' | sort | tail -1)"
wheel="$(find "$out" -maxdepth 1 -name 'sluice-*.whl' | sort | tail -1)"
[[ -n "$archive" && -n "$wheel" ]] || fail "there is no archive or no wheel in build/dist: run make dist"
name="$(basename "$archive" .tar.zst)"

say "checksum"
(cd "$out" && sha256sum -c "$name.tar.zst.sha256")

make_root() {  # suite; prints nothing, makes $roots/suite
  local suite="$1" options=(--variant=minbase)
  if [[ -d "$roots/$suite" ]]; then return; fi
  if [[ "$suite" != bookworm && ! -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]]; then
    echo "Ubuntu's keys are not installed here: the packages of $suite are not verified"
    options+=(--no-check-gpg)
  fi
  mkdir -p "$roots"
  rm -rf "$roots/$suite.part"
  debootstrap "${options[@]}" "$suite" "$roots/$suite.part" >"$roots/$suite.log" 2>&1 ||
    { tail "$roots/$suite.log"; fail "debootstrap of $suite"; }
  mv "$roots/$suite.part" "$roots/$suite"
}

inside() {  # root, command…: with an empty environment, /proc and /dev; the mounts end with it
  local root="$1"
  shift
  # shellcheck disable=SC2016
  unshare --mount sh -c 'root=$1; shift
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C chroot "$root" "$@"' sh "$root" "$@"
}

unpack_into() {  # root: the archive and the quickstart's script with its digits
  rm -rf "$1/opt/"*
  tar --zstd -xf "$archive" -C "$1/opt"
  mkdir -p "$1/opt/quickstart/scripts" "$1/opt/quickstart/.deps/digits"
  cp scripts/quickstart "$1/opt/quickstart/scripts"
  cp "$1/opt/$name/share/sluice/digits.csv.gz" "$1/opt/quickstart/.deps/digits"
}

for suite in "${suites[@]}"; do
  say "$suite: a bare root"
  make_root "$suite"
  grep PRETTY_NAME "$roots/$suite/etc/os-release"
  unpack_into "$roots/$suite"
  say "$suite: the quickstart from the unpacked archive"
  inside "$roots/$suite" "/opt/$name/bin/sluice" --version
  inside "$roots/$suite" /usr/bin/env "SLUICE_PROGRAM=/opt/$name/bin/sluice" /opt/quickstart/scripts/quickstart
  rm -rf "$roots/$suite/opt/"*
done

say "a root with a compiler: the examples, built against the archive"
make_root bookworm
if [[ ! -d "$roots/compiler" ]]; then
  rm -rf "$roots/compiler.part"
  cp -a "$roots/bookworm" "$roots/compiler.part"
  cp /etc/resolv.conf "$roots/compiler.part/etc/"
  inside "$roots/compiler.part" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
    --no-install-recommends g++ cmake make' >"$roots/compiler.log" 2>&1 || { tail "$roots/compiler.log"; fail "apt-get"; }
  mv "$roots/compiler.part" "$roots/compiler"
fi
unpack_into "$roots/compiler"
inside "$roots/compiler" sh -euc "cd /opt
  $name/bin/sluice data digits $name/share/sluice/digits.csv.gz digits >/dev/null
  for example in train read_shards; do
    cmake -S $name/share/sluice/examples/\$example -B build/\$example -DCMAKE_PREFIX_PATH=/opt/$name -DCMAKE_BUILD_TYPE=Release >/dev/null
    cmake --build build/\$example
  done
  build/train/train_by_hand
  build/train/train_session '/opt/digits/train-*.tar'
  build/read_shards/read_shards '/opt/digits/train-*.tar'"
rm -rf "$roots/compiler/opt/"*

say "the wheel in a fresh virtual environment"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
export PATH="$work/venv/bin:$PATH"
sluice --version
prefix="$(python -c 'import sluice; print(sluice.cmake_prefix)')"
sluice data digits "$prefix/share/sluice/digits.csv.gz" "$work/digits" >/dev/null
sluice train --model cifar_resnet8 --train "$work/digits/train-*.tar" --test "$work/digits/test-*.tar" --classes 10 \
  --batch-size 32 --epochs 1 --logdir "$work/run"
env -u TORCH_DIR cmake -S "$prefix/share/sluice/examples/train" -B "$work/build" "-DCMAKE_PREFIX_PATH=$prefix" >/dev/null
cmake --build "$work/build" --target train_session
if ldd "$work/build/train_session" | grep -F "$PWD/.deps"; then fail "the example uses the LibTorch of this clone"; fi
"$work/build/train_session" "$work/digits/train-*.tar"
say "all good"
