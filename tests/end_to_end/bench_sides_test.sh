#!/usr/bin/env bash
# The other sides that `sluice bench step` times beside its own step: programs that keep to the protocol of
# sluice/bench/other_side.h, and programs that do not.
# Usage: bench_sides_test.sh PROGRAM
set -euo pipefail
program=$1
. "$(dirname "$0")/common.sh"

field() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/json" "$1"; }
equal() { [[ $1 == "$2" ]] || fail "expected $2, found $1"; }

bench=("$program" bench step --model mlp --batch-size 2 --rounds 1 --warmup 1 --no-eager)
expect 1 'false ended: expected "ready"' "${bench[@]}" --beside false
expect 1 'expected "ready", found "no"' "${bench[@]}" --beside 'echo no'
expect 1 'expected "ready", found "ready now"' "${bench[@]}" --beside 'echo ready now'
expect 1 'expected the seconds of a step, found "soon"' "${bench[@]}" --beside 'echo ready; read n; echo soon'

"${bench[@]}" --captured --beside 'echo ready 4096; while read n; do echo 0.25; done' >"$work/json" 2>/dev/null
side='next(v for k, v in j.items() if k.startswith("echo ready"))'
equal "$(field "$side['step_ms']")" 250.0
equal "$(field "$side['program_bytes']")" 4096
# Weights of 784 x 1024, 1024 x 1024 and 1024 x 10 with biases and momenta, once each: the least that the step needs.
equal "$(field "j['xla']['program_bytes'] > 2 * 4 * (785 * 1024 + 1025 * 1024 + 1025 * 10)")" True
equal "$(field "j['captured']['replays'] > 0 and j['captured']['host_ms'] > 0 and j['captured']['why_not'] == ''")" True

# Those that fail are left out, and the others are measured.
"${bench[@]}" --keep-going --beside false --beside 'echo ready; read n; exit 1' \
  --beside 'echo ready; while read n; do echo 0.5; done' >"$work/json" 2>/dev/null
equal "$(field "j['false']['error'][:12]")" 'false ended:'
equal "$(field "'step_ms' in j['echo ready; read n; exit 1']")" False
equal "$(field "j['echo ready; while read n; do echo 0.5; done']['step_ms']")" 500.0

# The time is over after the first round.
"$program" bench step --model mlp --batch-size 2 --rounds 100000 --warmup 1 --no-eager --seconds 0.001 >"$work/json" 2>/dev/null
equal "$(field "j['rounds']")" 1
finish
