#!/usr/bin/env bash
# Every failure gives one clear message and its status, and leaves the last good checkpoint as it was.
# Usage: failure_test.sh PROGRAM
set -euo pipefail
program=$1
. "$(dirname "$0")/common.sh"
make_shards

data=(--train "$work/train/*.tar" --test "$work/test/*.tar" --classes 3)
train=("$program" train --device cpu --model mlp --batch-size 16 --epochs 2 --lr 0.01 --logdir "$work/run")

# Wrong usage: status 2 and the nearest known name.
expect 2 'did you mean --epochs?' "${train[@]}" "${data[@]}" --epoch 3
expect 2 'did you mean "resnet50"?' "${train[@]}" "${data[@]}" --model resnet5O
expect 2 'did you mean "train"?' "$program" trian
expect 2 '--classes' "${train[@]}" --train x.tar
expect 2 '--train' "${train[@]}" --classes 3
expect 2 '--lr' "${train[@]}" "${data[@]}" --lr fast
printf 'epoch = 3\n' >"$work/bad.toml"
expect 2 'did you mean epochs?' "${train[@]}" "${data[@]}" --config "$work/bad.toml"
printf 'epochs = 0\nbatch_size = 16\nflip = true\nmean = [0.5, 0.4, 0.3]\n[train]\nclip_norm = 1\n' >"$work/good.toml"
expect 0 '' "$program" train --device cpu --model mlp "${data[@]}" --config "$work/good.toml" --logdir "$work/toml"
expect 2 'gpu' "${train[@]}" "${data[@]}" --device gpu

# Flags that are wrong whatever the data is: a run that is started again would not do better.
fake=("$program" train --model mlp --classes 3 --fake-data --logdir "$work/wrong")
for wrong in '--lr-schedule inverse-sqrt' '--plugin quantum' '--image-size 0' '--weight-decay -1' '--momentum -1' \
  '--label-smoothing 3' '--devices 2 --device cpu' '--test-size 0 --patience 2' '--epochs 99999999999999999999'; do
  # shellcheck disable=SC2086
  expect 2 '' "${fake[@]}" $wrong
done
for wrong in '--streams 0' '--shuffle -1' '--std 0,0,0' '--max-bad lots'; do
  # shellcheck disable=SC2086
  expect 2 "${wrong%% *} " "${train[@]}" "${data[@]}" $wrong
done
expect 2 '--mix x=-1 takes' "${train[@]}" --classes 3 --mix x=-1
# A schedule that is longer than its run, as far as the flags say it; a dry run of the same recipe has parts of its own.
for wrong in '--warmup-epochs 2 --decay-epochs 3' '--warmup-epochs 3.8' '--decay-epochs 5' \
  '--max-steps 20 --warmup-steps 19' '--max-steps 20 --warmup-steps 1 --decay-steps 20' '--max-steps 20 --decay-epochs 5'; do
  # shellcheck disable=SC2086
  expect 2 '--lr-schedule wsd: a warm-up of' "${fake[@]}" --epochs 4 --lr-schedule wsd $wrong
done
expect 0 '' "$program" train --model mlp --classes 3 --fake-data --device cpu --lr-schedule wsd --warmup-epochs 3 --decay-epochs 1 --fast-dev-run 2
expect 2 'SLUICE_DEVICES: expected' env SLUICE_DEVICES=0 "${fake[@]}"
expect 2 'process 5 of 2 cannot be' env SLUICE_PROCESS_ID=5 SLUICE_PROCESS_COUNT=2 SLUICE_COORDINATOR_ADDRESS=x:1 "${fake[@]}"

# Flags of the job that this one succeeds, and flags that change nothing.
expect 2 "sluice train --train '$work/train/*.tar' --epochs 3 --fake-data" \
  "$program" train --wds_traindir "$work/train/*.tar" --num_epochs=3 --fake_data --async_closures
expect 2 '--async_closures' "$program" train --async_closures
printf 'num_epochs = 3\n' >"$work/old.toml"
expect 2 'num_epochs is now epochs' "${train[@]}" "${data[@]}" --config "$work/old.toml"
expect 2 '--train-size has no effect' "${train[@]}" "${data[@]}" --train-size 100
for idle in '--image-size 12' '--crop-padding 2' '--cache-size 3' '--original-samples 9' '--optimizer adam --momentum 0.8' \
  '--lr-schedule cosine --lr-divisor 2' '--global-batch-size 16' '--lr-schedule constant --min-lr 1' '--strict'; do
  # shellcheck disable=SC2086
  expect 2 'has no effect' "${train[@]}" "${data[@]}" $idle
done
expect 2 'has no effect' "${train[@]}" --train x.tar --classes 3 --target-accuracy 9
expect 2 '--max-tokens has no effect: it counts the tokens of token files' "${train[@]}" "${data[@]}" --max-tokens 1e6
expect 2 '--flip has no effect' "$program" train --model mlp --classes 3 --fake-data --flip
# What a file says may be idle because of the command line.
printf 'flip = true\ncrop = 12\nmomentum = 0.5\n' >"$work/recipe.toml"
expect 0 '' "${train[@]}" --classes 3 --fake-data --train-size 32 --optimizer adam --epochs 0 --config "$work/recipe.toml" \
  --logdir "$work/toml"
printf 'momentum = 0.5\noptimizer = "adam"\n' >"$work/idle.toml"
expect 2 '--momentum has no effect' "${train[@]}" "${data[@]}" --config "$work/idle.toml"
expect 0 'XLA_USE_BF16: --precision bf16' env XLA_USE_BF16=1 "${train[@]}" "${data[@]}" --epochs 0 --logdir "$work/toml"
expect 0 'SLUICE_PLUGINS: did you mean SLUICE_PLUGIN?' \
  env SLUICE_PLUGINS=x "${train[@]}" "${data[@]}" --epochs 0 --logdir "$work/toml"

# A set that is changed between two epochs: the next one says so.
cp -r "$work/train" "$work/changing"
changing=("${train[@]}" --train "$work/changing/*.tar" --classes 3 --logdir "$work/changing-run" --resume)
expect 0 '' "${changing[@]}" --epochs 1
"$program" data cat "$work/changing/*.tar" --key 0000030 --out "$work/fixed" >/dev/null
printf '%d' $((($(cat "$work/fixed/0000030.cls") + 1) % 3)) >"$work/class"
mv "$work/class" "$work/fixed/0000030.cls"
expect 0 '' "$program" data update "$work/changing/*.tar" "$work/fixed"
expect 0 'epoch 2 reads other data than the run began with: the shards have the same names' "${changing[@]}" --epochs 2

# Data.
expect 1 "$work/nothing" "${train[@]}" --train "$work/nothing.tar" --classes 3
expect 1 'classes' "${train[@]}" "${data[@]}" --classes 2
mkdir "$work/cut" "$work/broken"
shard=$(ls "$work"/train/*.tar | head -1)
head -c 20000 "$shard" >"$work/cut/cut.tar"
expect 1 "$work/cut/cut.tar" "${train[@]}" --train "$work/cut/cut.tar" --classes 3
printf 'this is not an image' >"$work/broken/0.ppm"
printf '0' >"$work/broken/0.cls"
tar -C "$work/broken" -cf "$work/broken.tar" 0.ppm 0.cls
expect 1 "0.ppm" "${train[@]}" --train "$work/broken.tar" --classes 3 --batch-size 1

# A good checkpoint, which nothing below may touch.
"${train[@]}" "${data[@]}" >/dev/null
sum() { cat "$work"/run/last/* "$work"/run/best/* | sha256sum; }
good=$(sum)
unchanged() { [[ $(sum) == "$good" ]] || fail "the last good checkpoint was touched: $*"; }

expect 1 'the loss is' "${train[@]}" "${data[@]}" --epochs 4 --resume --lr 1e30
unchanged 'NaN loss'
expect 1 'is not of this model' "${train[@]}" "${data[@]}" --epochs 4 --resume --model lenet
unchanged 'another model'
expect 1 'there is no checkpoint' "${train[@]}" "${data[@]}" --resume "$work/nowhere"
expect 1 "$work/run/last holds the state of sgd, the run has adam" \
  "${train[@]}" "${data[@]}" --epochs 4 --resume --optimizer adam
unchanged 'another optimizer'
mv "$work/run/last/state.json" "$work/state.json"
expect 1 'state.json is missing' "${train[@]}" "${data[@]}" --epochs 4 --resume
mv "$work/state.json" "$work/run/last/state.json"
unchanged 'an incomplete checkpoint'
expect 1 "$work/run/best and $work/run/last: give one of them" "$program" export "$work/run" "$work/weights.pt"
full_disk() {
  # A limit on the size of files: write() fails as on a full disk.
  (
    trap '' XFSZ
    ulimit -f 64
    "$@"
  )
}
expect 1 'cannot write the checkpoint' full_disk "${train[@]}" "${data[@]}" --epochs 4 --resume
unchanged 'full disk'
[[ -z $(find "$work/run" -name '.*writing*') ]] || fail "a failed checkpoint left files behind"

# The same on the recording device, with programs in flight.
xla=("${train[@]}" --device xla --logdir "$work/xla")
expect 1 'the loss is' "${xla[@]}" "${data[@]}" --lr 1e30
expect 1 "$work/cut/cut.tar" "${xla[@]}" --train "$work/cut/cut.tar" --classes 3
expect 1 "$work/no_plugin.so" "${train[@]}" "${data[@]}" --device xla --plugin "$work/no_plugin.so"
expect 21 '' "${train[@]}" "${data[@]}" --lr 0 --target-accuracy 90
expect 1 'not a safetensors file' "${train[@]}" "${data[@]}" --weights "$shard"
finish
