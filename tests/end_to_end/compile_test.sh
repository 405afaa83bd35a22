#!/usr/bin/env bash
# sluice compile and sluice estimate: wrong usage, a machine without libtpu, and, where it is installed, real answers.
# Usage: compile_test.sh PROGRAM
set -euo pipefail
program=$1
. "$(dirname "$0")/common.sh"

# Wrong usage: status 2 and the nearest known name.
expect 2 '--topology is required' "$program" compile
expect 2 'did you mean v3-32?' "$program" compile --topology v3_32
expect 2 "there is no TPU slice 'v2-16'" "$program" compile --topology v3-8,v2-16
expect 2 'did you mean --model?' "$program" compile --topology v3-8 --modle mlp
expect 2 'did you mean --samples?' "$program" estimate --slices v3-8 --sampels 3
expect 2 '--precision' "$program" estimate --slices v3-8 --precision f64
printf '[v3]\nspot = 1\n' >"$work/prices.toml"
expect 1 'expected date' "$program" estimate --slices v3-8 --prices "$work/prices.toml"
printf 'module { func.func @main() { nothing } }\n' >"$work/broken.mlir"
printf 'junk\n' >"$work/junk.mlir"
: >"$work/empty.mlir"
for kind in junk empty; do
  expect 2 "$kind.mlir is not a StableHLO program" "$program" compile --topology v3-8 --program "$work/$kind.mlir"
  grep -q 'SLUICE_DUMP=FOLDER writes such files' "$work/err" || fail "$kind: $(cat "$work/err")"
done
expect 2 '--model is for the models that sluice has; --program' "$program" compile --topology v3-8 --program "$work/broken.mlir" --model mlp
expect 2 'a command after -- is a program of its own' "$program" estimate --slices v3-8 --model mlp -- true
expect 2 "there is no model 'resnet51'; did you mean resnet50? Known: mlp, resnet50, resnet18_cifar" \
  "$program" compile --topology v3-8 --model resnet51

expect 2 '--program and a command after -- are two programs' "$program" compile --topology v3-8 --program "$work/broken.mlir" -- true
expect 2 "--cache keeps the programs of a run, so it needs the run's command" "$program" compile --topology v3-8 --cache "$work/programs" --model mlp
expect 2 '--cache is for TPU slices, and h100-1 is not a TPU slice: a GPU' "$program" compile --topology h100 --cache "$work/programs" -- true
expect 2 'an estimate needs a TPU slice, and h100-8 is a GPU' "$program" estimate --slices h100-8
"$program" estimate --help >"$work/help"
if grep -q h100 "$work/help"; then fail 'the help of estimate names a GPU, for which it has no answer'; fi
expect 2 'which has 8 devices: the mesh fsdp=16 needs 16 devices, found 8' "$program" compile --topology v3-8 --mesh fsdp=16 --model mlp
expect 2 '"fdsp" is not an axis of a mesh' "$program" compile --topology v3-8 --mesh fdsp=8 --model mlp
expect 2 '--mesh auto is for `sluice estimate`' "$program" compile --topology v3-8 --mesh auto --model mlp
expect 2 '--mesh is for TPU slices, and h100-8 is not a TPU slice: leave out --mesh, or name a slice such as v3-8' "$program" compile --topology h100-8 --mesh fsdp=8 --model mlp
expect 2 'the text of --program has its mesh' "$program" compile --topology v3-8 --mesh fsdp=8 --program "$work/broken.mlir"
expect 2 'expected a number from 2 to 256 before the *, as in 2*v5p-32' "$program" compile --topology '1*v3-8' --mesh fsdp=8 --model mlp
expect 2 'over 2*v3-8, which has 16 devices: the mesh fsdp=8 needs 8 devices, found 16' "$program" compile --topology '2*v3-8' --mesh fsdp=8 --model mlp
expect 2 '2*v3-8 has several' "$program" compile --topology '2*v3-8' --cache "$work/programs" -- true
expect 2 '--max-batch is for the models that sluice has' "$program" compile --topology v3-8 --max-batch -- true

# The program of a slice is written without libtpu; these three models are only here.
for name in vit_b_16 lstm dcgan; do
  TPU_LIBRARY_PATH=/no/libtpu.so "$program" compile --topology v3-8 --model $name --batch-size 2 --image-size 32 --length 4 \
    --no-compile --dump "$work/$name.mlir" 2>"$work/err" || fail "$name: $(tail -3 "$work/err")"
  grep -q 'num_replicas = 8' "$work/$name.mlir" || fail "$name: the program is not for eight devices"
done
grep -q 'tensor<768x3x16x16xf32>' "$work/vit_b_16.mlir" || fail 'ViT-B/16 has no patches of 16×16'
grep -q 'tensor<2048x512xf32>' "$work/lstm.mlir" || fail 'the LSTM has no gates of 4 × 512'
# The discriminator sees real images and, twice, generated ones; only from the first two passes it has gradients.
sees='tensor<2x3x64x64xf32>, tensor<64x3x4x4xf32>) -> tensor<2x64x32x32xf32> loc("discriminator'
learns='tensor<2x3x64x64xf32>, tensor<2x64x32x32xf32>) -> tensor<64x3x4x4xf32> loc("discriminator'
passes="$(grep -cF "$sees" "$work/dcgan.mlir") $(grep -cF "$learns" "$work/dcgan.mlir")"
[[ $passes == '3 2' ]] || fail "expected three passes and two gradients of the discriminator's first layer, found $passes"
expect 2 '--no-compile only writes the program of one slice' "$program" compile --topology v3-8 --model mlp --no-compile
expect 1 'model lstm has no layers that could be computed again' \
  "$program" compile --topology v3-8 --model lstm --recompute --no-compile --dump "$work/lstm.mlir"

# Without libtpu, one message says how to get it.
expect 1 'scripts/setup --libtpu' env TPU_LIBRARY_PATH=/no/libtpu.so "$program" compile --topology v3-8 --model mlp

if ! "$program" compile --topology v3-8 --model mlp >"$work/first" 2>"$work/err"; then
  grep -q 'libtpu, which is not installed' "$work/err" || fail "compile: $(tail -3 "$work/err")"
  finish
  echo 'libtpu is not installed: the rest is left out'
  exit 77
fi
expect 1 'compiling for v3-8: ' "$program" compile --topology v3-8 --program "$work/broken.mlir"

# field FILE PYTHON-EXPRESSION: what the JSON says.
field() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
equal() { [[ $1 == "$2" ]] || fail "expected $2, found $1"; }

"$program" compile --topology v3-32,v6e-8 --model mlp --json --dump "$work/step.mlir" >"$work/json" 2>/dev/null
equal "$(field "$work/json" '[s["devices"] for s in j["slices"]]')" '[32, 8]'
equal "$(field "$work/json" 'all(s["compiled"]["fits"] for s in j["slices"])')" True
equal "$(field "$work/json" 'j["slices"][0]["compiled"]["device_kind"]')" 'TPU v3'
# Forward and backward of 3072×1024, 1024×1024 and 1024×10 for 128 samples, without the gradient of the images.
equal "$(field "$work/json" '0.99 < j["slices"][0]["compiled"]["flops"] / (2 * 128 * (2 * 3072 * 1024 + 3 * 1024 * 1024 + 3 * 10240)) < 1.05')" True
grep -q 'stablehlo.dot_general' "$work/step.mlir" || fail 'the dumped program multiplies nothing'

# The programs of a command, for the slice: the same ones each time, and others for another slice.
training=("$program" train --model mlp --fake-data --classes 4 --image-size 8 --batch-size 4 --logdir "$work/run")
for place in one two; do
  "$program" compile --topology v3-8 --cache "$work/$place" --json -- "${training[@]}" >"$work/kept.json" 2>/dev/null
  equal "$(field "$work/kept.json" 'sorted(j["slices"][0]["cached"])')" "$(python3 -c 'import os, sys; print(sorted(os.listdir(sys.argv[1])))' "$work/$place")"
done
(($(ls "$work/one" | wc -l) >= 2)) || fail "the programs of two steps are not there: $(ls "$work/one")"
equal "$(ls "$work/one")" "$(ls "$work/two")"
"$program" compile --topology v3-32 --cache "$work/other" -- "${training[@]}" >"$work/out" 2>/dev/null
grep -q "v3-32: $(ls "$work/other" | wc -l) programs are in $work/other. On such a slice, set SLUICE_CACHE_DIR=$work/other." "$work/out" || fail "$(cat "$work/out")"
[[ -z $(comm -12 <(ls "$work/one") <(ls "$work/other")) ]] || fail 'two slices have one program'

# Over a mesh: mlp's weights of 3072×1024 and 1024×1024 and their momentum lie in eighths, the last layer of
# 10,240 elements and the biases are whole. The 128 images are 16 on each device, with 16 labels.
"$program" compile --topology v3-8 --mesh fsdp=8 --model mlp --batch-size 16 --json --dump "$work/mesh.mlir" >"$work/mesh.json" 2>"$work/err" ||
  fail "compile over a mesh: $(tail -3 "$work/err")"
held='j["slices"][0]["over_mesh"]["memory"]'
eighths=$((4 * (3072 * 1024 + 1024 * 1024) / 8)) whole=$((4 * (1024 * 10 + 1024 + 1024 + 10)))
equal "$(field "$work/mesh.json" "$held['weights'], $held['optimizer']")" "($((eighths + whole)), $((eighths + whole)))"
equal "$(field "$work/mesh.json" "$held['inputs'] - (16 * 3072 * 4 + 16 * 8) < 1000")" True
equal "$(field "$work/mesh.json" 'j["slices"][0]["mesh"], {e["axes"] for e in j["slices"][0]["over_mesh"]["exchanges"]}')" "('fsdp=8', {'fsdp'})"
# Each large weight is gathered in bf16 or f32 once or twice, and its gradient is summed.
equal "$(field "$work/mesh.json" 'sum(e["bytes"] for e in j["slices"][0]["over_mesh"]["exchanges"] if e["kind"] == "all-gather") >= 2 * 4 * 1024 * 1024')" True
# All exchanges of a step have at most three times the bytes of the parameters in f32.
parameters=$((4 * (3072 * 1024 + 1024 * 1024 + 1024 * 10 + 1024 + 1024 + 10)))
equal "$(field "$work/mesh.json" "sum(e['bytes'] for e in j['slices'][0]['over_mesh']['exchanges']) <= 3 * $parameters")" True
equal "$(field "$work/mesh.json" '[b["bytes"] >= 1024 * 1024 for b in j["slices"][0]["over_mesh"]["largest_buffers"][:2]]')" '[True, True]'
expect 1 'fsdp=8 of 8 devices, and v3-32 has 32' "$program" compile --topology v3-32 --program "$work/mesh.mlir"
# Over two slices: weights in eighths again, and half of the batch in each slice. The gradients' shards cross the network
# between the slices, for each of the 8 devices of a host; the gathers stay on the links.
"$program" compile --topology '2*v3-8' --mesh data=2,fsdp=8 --model mlp --batch-size 16 --json >"$work/two.json" 2>"$work/err" ||
  fail "compile over two slices: $(tail -3 "$work/err")"
two='j["slices"][0]["over_mesh"]'
equal "$(field "$work/two.json" 'j["slices"][0]["devices"], j["slices"][0]["hosts"]')" '(16, 2)'
equal "$(field "$work/two.json" "$two['memory']['weights']")" "$((eighths + whole))"
equal "$(field "$work/two.json" "{(e['axes'], e['host_bytes_between_slices'] > 0) for e in $two['exchanges']} == {('fsdp', False), ('data', True)}")" True
equal "$(field "$work/two.json" "sum(e['bytes'] for e in $two['exchanges'] if e['axes'] == 'data') >= $eighths")" True
equal "$(field "$work/two.json" "$two['host_bytes_between_slices'] == 8 * sum(e['bytes'] for e in $two['exchanges'] if e['axes'] == 'data')")" True
expect 1 'a program over 2 slices needs a mesh' "$program" compile --topology '2*v3-8' --model mlp --batch-size 16
# A command says its mesh itself.
over=("$program" train --fake-data --model mlp --classes 10 --batch-size 128 --device xla --logdir "$work/own")
"$program" compile --topology v3-8 --json --dump "$work/own.mlir" -- "${over[@]}" --mesh fsdp=8 >"$work/mesh.json" 2>"$work/err" ||
  fail "compile a command over its mesh: $(tail -3 "$work/err")"
equal "$(field "$work/mesh.json" 'j["slices"][0]["mesh"]')" fsdp=8
grep -q 'sdy.mesh @mesh = <\["fsdp"=8\]>' "$work/own.mlir" || fail 'the mesh of the command is not in its program'
expect 1 'the mesh fsdp=8 needs 8 devices, found 32' "$program" compile --topology v3-32 -- "${over[@]}" --mesh fsdp=8
# All fits a v3, so each device has the whole model.
"$program" estimate --slices v3-8 --mesh auto --model mlp --batch-size 16 >"$work/text" 2>"$work/err" ||
  fail "estimate --mesh auto: $(tail -3 "$work/err")"
grep -q 'The cheapest of these that fits: v3-8 over data=8' "$work/text" || fail "no cheapest slice: $(cat "$work/text")"

# Layers that are computed again: at most 0.6 of the memory, for at most a third more FLOPs than the step has.
for kind in kept recomputed; do
  more=()
  [[ $kind == kept ]] || more=(--recompute)
  "$program" compile --topology v3-8 --model transformer6 --batch-size 64 "${more[@]}" --json >"$work/$kind.json" 2>/dev/null
done
compiled='j["slices"][0]["compiled"]'
kept=$(field "$work/kept.json" "$compiled['memory']") again=$(field "$work/recomputed.json" "$compiled['memory']")
((10 * again <= 6 * kept)) || fail "computed again, a step takes $again bytes of memory, else $kept"
flops=$(field "$work/kept.json" "$compiled['flops']")
equal "$(field "$work/recomputed.json" "1.2 < $compiled['flops'] / $flops < 1.36")" True
expect 1 'has no layers that could be computed again' "$program" compile --topology v3-8 --model mlp --recompute

# A program from a file is the same program.
"$program" compile --topology v6e-8 --program "$work/step.mlir" --json >"$work/file.json" 2>/dev/null
equal "$(field "$work/file.json" 'j["slices"][0]["compiled"]["flops"]')" "$(field "$work/json" 'j["slices"][1]["compiled"]["flops"]')"

# A million samples of 3072 floats are 12.3 GB: too many for a v2.
"$program" compile --topology v2-8,v3-8 --model mlp --batch-size 1000000 >"$work/text" 2>/dev/null || true
grep -q '^v2-8 .*no, needs' "$work/text" || fail "v2-8 fits: $(cat "$work/text")"
grep -q 'argument' "$work/text" || fail 'no tensors are listed'
printf 'date = "today"\n[v2]\non_demand = 9\n' >"$work/prices.toml"
"$program" estimate --slices v2-8 --model mlp --batch-multiple 100000 --batch-size 100000 --samples 1000000 \
  --prices "$work/prices.toml" --json >"$work/json" 2>/dev/null
equal "$(field "$work/json" 'j["prices"], j["slices"][0]["compiled"]["largest_batch"] % 100000')" "('today', 0)"
equal "$(field "$work/json" '100000 < j["slices"][0]["compiled"]["largest_batch"] < 1000000')" True
equal "$(field "$work/json" 'round(j["slices"][0]["bound"]["on_demand"] / j["slices"][0]["bound"]["hours"], 6)')" 36.0

# A program of the user's own: its second step is recorded, nothing runs, whichever way it is asked for.
own=(train --fake-data --model mlp --classes 10 --batch-size 16 --epochs 1000 --device xla --logdir "$work/own")
"$program" estimate --slices v6e-1 --json -- "$program" "${own[@]}" >"$work/json" 2>"$work/err" ||
  fail "estimate: $(tail -3 "$work/err")"
equal "$(field "$work/json" 'j["slices"][0]["compiled"]["fits"], j["slices"][0]["bound"]["steps"]')" '(True, 1000)'
SLUICE_PROGRAM=$program SLUICE_ESTIMATE=v6e-1,v3-8 "$program" "${own[@]}" >"$work/text" 2>"$work/err" ||
  fail "SLUICE_ESTIMATE: $(tail -3 "$work/err")"
grep -q '^v3-8 .*yes' "$work/text" || fail "no line for v3-8: $(cat "$work/text")"
expect 1 'SLUICE_PROGRAM' env SLUICE_PROGRAM=/no/sluice SLUICE_ESTIMATE=v3-8 "$program" "${own[@]}"
expect 1 'expected DEVICES:KIND:MESH:FILE' env SLUICE_AHEAD=nowhere "$program" "${own[@]}"
expect 1 'before the second step' "$program" estimate --slices v3-8 -- /bin/echo hello
finish
