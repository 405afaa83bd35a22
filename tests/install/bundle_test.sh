#!/usr/bin/env bash
# bundle_test.sh SETTINGS: this build's program, made whole by scripts/bundle.py and moved, trains with an empty
# environment where the folders of LibTorch and of the plugin cannot be seen (as root; else only moved).
set -euo pipefail
source "$1"
work="$(mktemp -d "$build_folder/bundle_test.XXXXXX")"  # on the disk of .deps, so that nothing large is copied
trap 'rm -rf "$work"' EXIT
prefix="$work/moved"

fail() { printf 'bundle_test: %s\n' "$*" >&2; exit 1; }
command -v patchelf >/dev/null || { echo "patchelf is not installed"; exit 77; }

cmake --install "$build_folder" --prefix "$work/first" --component program >/dev/null
mkdir -p "$work/first/lib"
python3 "$source_folder/scripts/bundle.py" "$work/first" --link --torch "$torch_root"
mv "$work/first" "$prefix"
python3 "$source_folder/scripts/check_dist.py" "$prefix"

# A space of mounts of its own, in which empty folders lie over those that a build may look into.
hide=()
if unshare --mount true 2>/dev/null; then
  mkdir "$work/empty"
  hidden="$(realpath "$source_folder/.deps") $(realpath "$torch_root")"
  # shellcheck disable=SC2016
  hide=(unshare --mount sh -c 'empty=$1 folders=$2; shift 2
    for folder in $folders; do mount --bind "$empty" "$folder" 2>/dev/null || test ! -d "$folder" || exit 1; done
    exec "$@"' sh "$work/empty" "$hidden")
fi
bare() { "${hide[@]}" env -i HOME="$work" ASAN_OPTIONS="${ASAN_OPTIONS:-}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-}" "$@"; }

bare "$prefix/bin/sluice" --version
bare "$prefix/bin/sluice" devices --plugin cpu | tee "$work/devices"
grep -q -F "$prefix/lib/sluice/xla_cpu_pjrt" "$work/devices" || fail "the plugin is not the bundle's"
if ((${#hide[@]})); then
  bare ldd "$prefix/bin/sluice" "$prefix/bin/sluice-torch" >"$work/ldd"
  if grep -q 'not found' "$work/ldd"; then cat "$work/ldd"; fail "a library is not found"; fi
fi
bare "$prefix/bin/sluice" data digits "$prefix/share/sluice/digits.csv.gz" "$work/digits" >/dev/null
bare "$prefix/bin/sluice" train --plugin cpu --model cifar_resnet8 --train "$work/digits/test-*.tar" --classes 10 --batch-size 32 \
  --epochs 1 --logdir "$work/run"
test -d "$work/run/last"
echo "all good"
