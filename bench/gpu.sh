#!/usr/bin/env bash
# bench/gpu.sh [--dry] [--out FOLDER] [--only STEP,…] [--models MODEL,…]
#
# What is to be known of a machine with an NVIDIA GPU, in under 25 minutes: does everything run on XLA's CUDA plugin, and
# how quick is it. Leaves FOLDER/gpu.json (out/gpu) and the log of each step beside it. Steps, in this order:
#   machine      the GPU, its driver, the plugin and its devices
#   conformance  every sample of tests/conformance on the plugin
#   quickstart   the handwritten digits, 20 epochs
#   bench        ResNet-50 at 224×224 and the 6-layer Transformer, batch 128, f32 (TF32) and bf16, in turns with PyTorch
#                eager (bench/torch_step.py) and with the same step as JAX lowers it (bench/jax_step.py)
#   processes    two processes of one GPU each; left out where there is one GPU
# A step that fails does not stop the others; the exit status is 1 if one did. One that lacks a Python package is left out.
#
# --dry runs all of it on XLA's CPU plugin in tiny sizes: it checks this script, and its figures mean nothing.
# Before: cmake --preset dev && cmake --build --preset dev --target sluice_program sluice_conformance
# Variables: SLUICE_PLUGIN (cuda), PYTHON (python3: with torch for CUDA, and jax), SLUICE_PROGRAM, CONFORMANCE.
set -uo pipefail
cd "$(dirname "$0")/.."

dry=0 out=out/gpu only=machine,conformance,quickstart,bench,processes models=resnet50,transformer6
while (($#)); do
  case "$1" in
    --dry) dry=1 ;;
    --out) out="${2:?--out needs a folder}"; shift ;;
    --only) only="${2:?--only needs steps}"; shift ;;
    --models) models="${2:?--models needs names}"; shift ;;
    -h|--help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu.sh: unknown option $1 (known: --dry, --out, --only, --models)" >&2; exit 2 ;;
  esac
  shift
done

export PYTHON="${PYTHON:-python3}"
program="${SLUICE_PROGRAM:-build/dev/apps/sluice}"
conformance="${CONFORMANCE:-build/dev/tests/conformance/sluice_conformance}"
if ((dry)); then
  plugin=cpu torch_device=cpu batch=2 side=32 rounds=1 steps=1 gpus=2
  samples=(--file softmax) training=(--epochs 1 --target-accuracy 0)
else
  plugin="${SLUICE_PLUGIN:-cuda}" torch_device=cuda batch=128 side=224 rounds=15 steps=10
  gpus="$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | wc -l)"
  samples=() training=()
fi
export SLUICE_PLUGIN="$plugin" SLUICE_PROGRAM="$program"
# PyTorch's processes use the same GPU at the same time.
export SLUICE_GPU_PREALLOCATE=0
mkdir -p "$out"
out="$(cd "$out" && pwd)"
rm -f "$out"/*.json "$out"/*.log "$out"/*.mlir "$out/steps"
started=$SECONDS
: >"$out/steps"

say() { printf 'gpu.sh: %s\n' "$*" >&2; }
has() { "$PYTHON" -c "import $1" 2>/dev/null; }
wanted() { [[ ",$only," == *",$1,"* ]]; }
note() { printf '%s\t%s\t%d\t%s\n' "$1" "$2" "$3" "$4" >>"$out/steps"; say "$1: $2 ($3 s) $4"; }
left_out() { note "$1" 'left out' 0 "$2"; }

# step NAME SECONDS COMMAND…: runs it with a time limit; its output is in NAME.log, its standard output also in NAME.json
# where that is JSON.
step() {
  local name="$1" limit="$2" begin=$SECONDS status=0
  shift 2
  timeout --kill-after=10 "$limit" "$@" </dev/null >"$out/$name.out" 2>"$out/$name.log" || status=$?
  if "$PYTHON" -c 'import json, sys; json.load(open(sys.argv[1]))' "$out/$name.out" 2>/dev/null; then
    mv "$out/$name.out" "$out/$name.json"
  else
    cat "$out/$name.out" >>"$out/$name.log"
    rm "$out/$name.out"
  fi
  case "$status" in
    0) note "$name" ok $((SECONDS - begin)) "$(grep -v '^$' "$out/$name.log" | tail -1 | cut -c1-200)" ;;
    124 | 137) note "$name" failed $((SECONDS - begin)) "took more than $limit s" ;;
    *) note "$name" failed $((SECONDS - begin)) "status $status: $(tail -1 "$out/$name.log" | cut -c1-200)" ;;
  esac
}

bench_step() {  # model, precision
  local name="bench-$1-$2" arguments=() low=() size=()
  if [[ "$2" == bf16 ]]; then low=(--bf16); fi
  if [[ "$1" == resnet* ]]; then size=(--image-size "$side"); fi
  if has jax; then
    # Only lowered: JAX itself takes no GPU.
    if JAX_PLATFORMS=cpu "$PYTHON" bench/jax_step.py "$1" "$batch" "$out/$name.mlir" "${size[@]}" "${low[@]}" \
      2>"$out/$name-jax.log"; then
      arguments+=(--against "$out/$name.mlir")
    else
      note "$name-jax" failed 0 "$(tail -1 "$out/$name-jax.log" | cut -c1-200)"
    fi
  else
    left_out "$name-jax" "$PYTHON has no package jax"
  fi
  if has torch; then
    local side_by_side="$PYTHON bench/torch_step.py $1 $batch --device $torch_device ${size[*]} ${low[*]}"
    arguments+=(--beside "$side_by_side")
    if [[ "$1" == resnet* ]]; then arguments+=(--beside "$side_by_side --channels-last"); fi
  else
    left_out "$name-torch" "$PYTHON has no package torch"
  fi
  step "$name" 200 "$program" bench step --plugin "$plugin" --model "$1" --batch-size "$batch" --precision "$2" \
    --no-eager --rounds "$rounds" --steps "$steps" "${size[@]}" "${arguments[@]}"
}

if wanted machine; then
  if ((!dry)); then
    step gpu 30 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
  fi
  step devices 120 "$program" devices --plugin "$plugin" --json
fi
if wanted conformance; then step conformance 420 "$conformance" "${samples[@]}"; fi
if wanted quickstart; then SLUICE_OUT="$out" step quickstart 240 scripts/quickstart "${training[@]}"; fi
if wanted bench; then
  for model in ${models//,/ }; do
    for precision in f32 bf16; do bench_step "$model" "$precision"; done
  done
fi
if wanted processes; then
  if ((gpus >= 2)); then
    step processes 180 "$program" run --processes 2 -- "$program" train --plugin "$plugin" --model mlp --fake-data \
      --classes 10 --train-size 2048 --test-size 256 --batch-size 64 --epochs 2 --check-replicas 4 \
      --logdir "$out/processes"
  else
    left_out processes "two processes need two GPUs, found $gpus"
  fi
fi

rm -rf "$out/digits" "$out/run" "$out/processes"
"$PYTHON" - "$out" "$((SECONDS - started))" "$dry" <<'PYTHON'
"""All of it in one file, with the ratios that count: how many times as fast as the others Sluice's step is."""
import json
import sys
from pathlib import Path

out, seconds, dry = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"
steps = {}
for line in (out / "steps").read_text().splitlines():
    name, outcome, took, said = line.split("\t", 3)
    steps[name] = {"outcome": outcome, "seconds": int(took), "said": said}
    result = out / f"{name}.json"
    if result.exists():
        steps[name]["result"] = json.loads(result.read_text())
ratios = {}
for name, entry in steps.items():
    result = entry.get("result")
    if name.startswith("bench-") and result:
        times = {side: value["step_ms"] for side, value in result.items() if isinstance(value, dict) and "step_ms" in value}
        ours, eager = times["xla"], [ms for side, ms in times.items() if "torch_step" in side]
        ratios[name[6:]] = {"step_ms": ours,
                            "to_eager": min(eager) / ours if eager else None,  # the quicker of its memory formats
                            "to_jax": times["against"] / ours if "against" in times else None}
(out / "gpu.json").write_text(json.dumps({"dry": dry, "seconds": seconds, "speed": ratios, "steps": steps}, indent=2) + "\n")
for name, ratio in ratios.items():
    text = ", ".join(f"{value:.2f} times as fast as {side[3:]}" for side, value in ratio.items() if side != "step_ms" and value)
    print(f"gpu.sh: {name}: {ratio['step_ms']:.2f} ms a step; {text or 'nothing to compare with'}")
print(f"gpu.sh: {seconds} s; all of it in {out / 'gpu.json'}")
sys.exit(any(entry["outcome"] == "failed" for entry in steps.values()))
PYTHON
