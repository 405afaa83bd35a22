#!/usr/bin/env bash
# Weights and TensorBoard events, read by Python's torch, safetensors and tensorboard; and Python's weights, read here.
# The packages go into .deps/venv, once. Usage: readers_test.sh PROGRAM
set -euo pipefail
export OMP_NUM_THREADS=1
program=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$("$here/venv.sh") || {
  echo "skipped: Python's torch, safetensors and tensorboard could not be installed into .deps/venv"
  exit 77
}
run() { "$program" train --device cpu --classes 3 --fake-data --train-size 96 --test-size 40 --batch-size 16 "$@"; }
run --model resnet18 --epochs 1 --steps-per-epoch 1 --logdir "$work/resnet" >/dev/null
run --model mlp --epochs 3 --log-steps 2 --histograms --log-images 5 --logdir "$work/mlp" >/dev/null
"$program" export "$work/resnet/last" "$work/resnet.pt"
"$program" export "$work/mlp/best" "$work/mlp.pt"
"$python" "$here/readers.py" read "$work"
# The last two epochs twice, from the same checkpoint: their steps are in two files.
run --model mlp --epochs 1 --log-steps 2 --logdir "$work/again" >/dev/null
cp -r "$work/again/last" "$work/first"
for _ in 1 2; do
  rm -rf "$work/again/last"
  cp -r "$work/first" "$work/again/last"
  run --model mlp --epochs 3 --log-steps 2 --resume --logdir "$work/again" >/dev/null
done
"$python" "$here/readers.py" once "$work/again"
# From Python to here and back: the file that the script saved, trained for no step, exported again.
run --model mlp --epochs 0 --weights "$work/from_python.pt" --logdir "$work/back" >/dev/null
run --model mlp --epochs 1 --lr 0 --weight-decay 0 --momentum 0 --weights "$work/from_python.pt" --logdir "$work/back" >/dev/null
"$program" export "$work/back/last" "$work/back.pt"
"$python" "$here/readers.py" compare "$work/from_python.pt" "$work/back.pt"
run --model mlp --epochs 0 --weights "$work/from_python.safetensors" --logdir "$work/back2" >/dev/null
echo passed
