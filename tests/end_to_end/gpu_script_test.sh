#!/usr/bin/env bash
# bench/gpu.sh without a GPU: its --dry run of the steps that need no other program, what its JSON says of one that
# fails, and the sides that `sluice bench step` takes.
# Usage: gpu_script_test.sh PROGRAM PYTHON
set -euo pipefail
program=$1 python=$2
. "$(dirname "$0")/common.sh"
script="$(dirname "$0")/../../bench/gpu.sh"

field() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
equal() { [[ $1 == "$2" ]] || fail "expected $2, found $1"; }

SLUICE_PROGRAM=$program PYTHON=$python "$script" --dry --out "$work/gpu" --only machine,bench,processes --models mlp \
  >"$work/text" 2>&1 || fail "gpu.sh: $(cat "$work/text")"
equal "$(field "$work/gpu/gpu.json" 'j["dry"], j["steps"]["devices"]["result"]["plugin"]')" "(True, 'cpu')"
equal "$(field "$work/gpu/gpu.json" '[j["steps"][s]["outcome"] for s in ("devices", "bench-mlp-f32", "bench-mlp-bf16", "processes")]')" \
  "['ok', 'ok', 'ok', 'ok']"
equal "$(field "$work/gpu/gpu.json" 'j["steps"]["bench-mlp-bf16"]["result"]["precision"]')" bf16
if "$python" -c 'import torch' 2>/dev/null; then
  equal "$(field "$work/gpu/gpu.json" 'all(j["speed"][s]["to_eager"] > 0 for s in ("mlp-f32", "mlp-bf16"))')" True
fi

# A step that fails is said, and is the script's status.
expect 1 'devices: failed' env SLUICE_PROGRAM=/bin/false PYTHON="$python" "$script" --dry --out "$work/bad" --only machine
equal "$(field "$work/bad/gpu.json" 'j["steps"]["devices"]["outcome"]')" failed
expect 2 'unknown option --fast' "$script" --fast

# Other sides: one that ends, and one that says something else.
bench=("$program" bench step --model mlp --batch-size 2 --rounds 1 --warmup 1 --no-eager)
expect 1 'false ended: expected "ready"' "${bench[@]}" --beside false
expect 1 'expected "ready", found "no"' "${bench[@]}" --beside 'echo no'
expect 1 'expected the seconds of a step, found "soon"' "${bench[@]}" --beside 'echo ready; read n; echo soon'
"${bench[@]}" --beside 'echo ready; while read n; do echo 0.25; done' >"$work/json" 2>/dev/null
equal "$(field "$work/json" 'next(v["step_ms"] for k, v in j.items() if k.startswith("echo ready"))')" 250.0
finish
