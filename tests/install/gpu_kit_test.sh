#!/usr/bin/env bash
# gpu_kit_test.sh: build/gpu-kit on a machine like those that have a GPU, without one (as root, with a network;
# `make test-gpu-kit`, after `make gpu-kit`).
#
# In a bare Ubuntu 24.04, with Python 3.12, PyTorch's CUDA build, JAX's plugin for CUDA 13 and no network, the kit's dry run
# passes in three minutes, and a real run ends at "no visible GPU". Then the benches' steps, and one sample of each
# operation (SLUICE_TEST_AHEAD=all: all of them), are compiled for an H100 with that plugin.
# The root and the packages (11 GB) are kept in build/gpu-kit-rehearsal.
set -euo pipefail
cd "$(dirname "$0")/../.."
work="$PWD/build/gpu-kit-rehearsal"
root="$work/root"
packages=(torch==2.11.0 jax==0.11.2 jaxlib==0.11.2 jax-cuda13-pjrt==0.11.2 jax-cuda13-plugin==0.11.2 transformers==5.17.0
  nvidia-cuda-nvcc numpy pip setuptools)

fail() { printf 'test-gpu-kit: %s\n' "$*" >&2; exit 1; }
say() { printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"; }

((EUID == 0)) || fail "it makes a root with debootstrap and needs to be root"
command -v debootstrap >/dev/null || fail "install the Debian package debootstrap"
[[ -x build/gpu-kit/run ]] || fail "there is no build/gpu-kit: run make gpu-kit"
mkdir -p "$work/wheels" "$work/share"

# inside NETWORK command…: in the root, with /share; NETWORK is "net", or "alone" for none.
inside() {
  local network=()
  [[ $1 == net ]] || network=(--net)
  shift
  mkdir -p "$root/share" "$root/wheels"
  # shellcheck disable=SC2016
  unshare --mount "${network[@]}" sh -c 'work=$1; root=$work/root; shift
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" &&
    mount --bind "$work/share" "$root/share" && mount --bind "$work/wheels" "$root/wheels" &&
    exec env -i PATH=/opt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"' sh "$work" "$@"
}

if [[ ! -x $root/opt/python/bin/python3 ]]; then
  say "a bare Ubuntu 24.04"
  rm -rf "$root"
  script=noble
  [[ -e /usr/share/debootstrap/scripts/noble ]] || script=gutsy  # which all later releases of Ubuntu are made by
  options=(--variant=minbase)
  [[ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] || options+=(--no-check-gpg)
  debootstrap "${options[@]}" --include=python3,python3-venv --components=main,universe noble "$root" "" \
    "/usr/share/debootstrap/scripts/$script" >"$work/root.log" 2>&1 || { tail "$work/root.log"; fail "debootstrap"; }
  say "its Python packages"
  platforms=()
  for minor in $(seq 39 -1 5); do platforms+=("--platform=manylinux_2_${minor}_x86_64"); done
  python3 -m pip download -q --only-binary=:all: --python-version 3.12 --implementation cp "${platforms[@]}" \
    --platform=manylinux2014_x86_64 --platform=manylinux2010_x86_64 --platform=manylinux1_x86_64 -d "$work/wheels" "${packages[@]}"
  inside alone python3 -m venv /opt/python
  inside alone python3 -m pip install -q --no-index --find-links /wheels "${packages[@]}"
fi
site="$(echo "$root"/opt/python/lib/python3.*/site-packages)"
# For the dry run: XLA's CPU plugin, as its package lays it.
[[ -d $site/xla_plugins ]] || cp -r .deps/xla_cpu_pjrt/xla_plugins "$site/"
rm -rf "$work/share/"*
cp -r build/gpu-kit "$work/share/kit"

say "a real run, without a GPU"
status=0
inside alone /share/kit/run --out /share/real >"$work/real.log" 2>&1 || status=$?
[[ $status == 1 ]] || { cat "$work/real.log"; fail "a real run without a GPU: expected status 1, found $status"; }
grep -q 'machine: failed.*no visible GPU' "$work/real.log" || { cat "$work/real.log"; fail "it does not say that no GPU is there"; }
grep 'machine: failed' "$work/real.log"

say "a dry run"
begin=$SECONDS
inside alone /share/kit/run --dry --minutes 3 --out /share/dry
((SECONDS - begin <= 180)) || fail "the dry run took $((SECONDS - begin)) s, expected at most 180"
for step in $(inside alone /share/kit/run --list | cut -d' ' -f1); do
  [[ -s $work/share/dry/$step.json ]] || fail "the dry run left no $step.json"
done

say "the benches' steps, compiled for an H100"
sluice="$PWD/build/gpu-kit-programs/apps/sluice"
for_h100() { env SLUICE_DEPS="$PWD/.deps" PYTHONPATH="$site" LD_LIBRARY_PATH="$site/torch/lib" "$@"; }
for step in "resnet50 --image-size 224 --batch-size 128 --precision bf16" "resnet50 --image-size 224 --batch-size 128" \
  "gpt2 --length 1024 --batch-size 8 --precision bf16" "transformer6 --batch-size 128 --precision bf16"; do
  # shellcheck disable=SC2086
  for_h100 "$sluice" compile --topology h100 --model $step 2>"$work/ahead.log" | grep h100-1 || { cat "$work/ahead.log"; fail "$step"; }
done

say "the operations, compiled for an H100"
built=build/gpu-kit-programs
cmake --build "$built" --parallel "$(scripts/jobs)" --target sluice_conformance_ahead sluice_compile_worker >"$work/build.log" 2>&1 ||
  { tail "$work/build.log"; fail "the build"; }
for_h100 "$built/tests/conformance/sluice_conformance_ahead" --slice h100 --worker "$built/sluice/estimate/sluice_compile_worker"
say "all good"
