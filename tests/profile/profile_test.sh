#!/usr/bin/env bash
# Profiles of `sluice train`, of one process and of four, as xprof reads them; and a plugin's own profile.
# Usage: profile_test.sh PROGRAM PROFILE_WORKER
set -euo pipefail
export OMP_NUM_THREADS=1
program=$1 worker=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${SLUICE_TEST_PYTHON:-}
if [[ ! -x "$python" ]] || ! "$python" -c 'import xprof' 2>/dev/null; then
  echo "skipped: Python's xprof is not in .deps/python (scripts/setup installs it)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work XDG_CACHE_HOME=$work

train=("$program" train --model cifar_resnet8 --fake-data --classes 4 --image-size 16 --test-size 16 --batch-size 16
  --epochs 1 --profile 10:13)
quietly() { (cd "$work" && "$@" >out.log 2>&1) || { cat "$work/out.log"; exit 1; }; }
quietly "${train[@]}" --train-size 256 --log-steps 1 --logdir one
quietly "$program" run --processes 4 -- "${train[@]}" --train-size 1024 --log-steps 4 --logdir four
tpu=$root/.deps/libtpu/libtpu/libtpu.so
if [[ -e "$tpu" ]]; then TPU_SKIP_MDS_QUERY=1 TPU_ACCELERATOR_TYPE=v3-8 ALLOW_MULTIPLE_LIBTPU_LOAD=1 TPU_WORKER_HOSTNAMES=localhost \
  timeout 60 "$worker" "$tpu" "$work/tpu.pb"; fi
"$worker" cpu "$work/cpu.pb" | grep -qx 'no profiler'
"$python" "$here/profile_readers.py" "$work"
