#!/usr/bin/env bash
# Pack → train → kill -9 → resume → evaluate: the resumed run ends with exactly the weights of an uninterrupted one.
# Usage: resume_test.sh PROGRAM DEVICE
set -euo pipefail
program=$1 device=$2
. "$(dirname "$0")/common.sh"
make_shards

flags=(--model cifar_resnet8 --train "$work/train/*.tar" --test "$work/test/*.tar" --classes 3 --crop 12 --flip
  --batch-size 16 --epochs 3 --lr 0.05 --lr-schedule cosine --warmup-epochs 1 --device "$device" --log-steps 2)

"$program" train "${flags[@]}" --logdir "$work/whole" >"$work/whole.log" || fail "the uninterrupted run"
grep -q 'Samples=21, ' "$work/whole.log" || fail "the evaluation did not count 21 samples"
grep -qE '^Max Accuracy: ' "$work/whole.log" || fail "no final lines"

# Killed without warning after the first checkpoint in mid-epoch, twice. A fast machine may have ended the run by then: it
# is begun again, until a kill comes in time.
for steps in 2 3; do
  [[ ! -e $work/killed ]] || cp -r "$work/killed" "$work/before"
  for _ in $(seq 20); do
    rm -rf "$work/killed"
    [[ ! -e $work/before ]] || cp -r "$work/before" "$work/killed"
    : >"$work/started"
    "$program" train "${flags[@]}" --logdir "$work/killed" --save-steps "$steps" --resume >"$work/killed.log" 2>&1 &
    victim=$!
    await_newer "$work/killed/last/state.json" "$work/started"
    kill -9 "$victim" 2>/dev/null || true
    status=0
    wait "$victim" 2>/dev/null || status=$?
    ((status != 137)) || break
  done
  ((status == 137)) || fail "the run was over before each of 20 kills"
done
"$program" train "${flags[@]}" --logdir "$work/killed" --resume >"$work/resumed.log" || fail "the resumed run"
grep -q 'Going on from' "$work/resumed.log" || fail "it did not go on from the checkpoint"
cmp "$work/whole/last/model.safetensors" "$work/killed/last/model.safetensors" || fail "the resumed weights differ"
cmp "$work/whole/last/state.safetensors" "$work/killed/last/state.safetensors" || fail "the resumed state differs"
[[ $(tail -1 "$work/whole/metrics.csv" | cut -d, -f2-) == $(tail -1 "$work/killed/metrics.csv" | cut -d, -f2-) ]] ||
  fail "the last evaluations differ"

# Ctrl-C and SIGTERM save and end; the next run goes on.
for signal in INT TERM; do
  rm -rf "$work/stopped"
  # In the background a shell ignores SIGINT for its children; the program takes it back.
  "$program" train "${flags[@]}" --epochs 200 --logdir "$work/stopped" --save-steps 1 >"$work/stopped.log" 2>&1 &
  victim=$!
  await "$work/stopped/last/state.json"
  kill -"$signal" "$victim"
  # A second Ctrl-C ends at once; a launcher may send SIGTERM again.
  [[ $signal == INT ]] || kill -TERM "$victim"
  status=0
  wait "$victim" || status=$?
  [[ $signal == INT ]] && want=130 || want=143
  [[ $status == "$want" ]] || fail "status $status instead of $want after SIG$signal"
  grep -q ': saved ' "$work/stopped.log" || fail "no word of the saved checkpoint after SIG$signal"
done
"$program" train "${flags[@]}" --epochs 0 --logdir "$work/stopped" --resume >"$work/again.log" || fail "the last resume"
grep -q 'Going on from' "$work/again.log" ||
  fail "what the signal saved cannot be read"

"$program" export "$work/whole/best" "$work/weights.pt" >/dev/null || fail "export"
"$program" train "${flags[@]}" --epochs 0 --weights "$work/weights.pt" --logdir "$work/other" >/dev/null ||
  fail "exported weights cannot be loaded"
finish
