"""language_test.py PROGRAM POD_PLUGIN: from a text to a model that goes on with it, on one process and on several.

A text becomes a tokenizer, files of tokens and a trained model; the model says something and is scored, with the
perplexity that its training has measured. Two processes of two replicas learn what one of four learns, and so do two
hosts of an emulated pod (tests/pjrt), also where a run is stopped and goes on there. A classifier is put on the model
that was trained.
"""

import csv
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PROGRAM, POD_PLUGIN = sys.argv[1], sys.argv[2]
work = tempfile.TemporaryDirectory()
root = Path(work.name)
environment = dict(os.environ, OMP_NUM_THREADS="1", XDG_STATE_HOME=work.name, XDG_CACHE_HOME=work.name)
failures = []

ANIMALS, VERBS, PLACES = ["cat", "dog", "hen", "ox"], ["sees", "seeks", "fears"], ["hill", "well", "barn", "wood", "road"]
SPECIAL = ["<s>", "<pad>", "</s>", "<mask>"]
# All replicas share this machine's cores: tests/pjrt/README.md.
POD_FLAGS = ("--xla_cpu_use_xnnpack=false --xla_cpu_collective_call_warn_stuck_timeout_seconds=3600 "
             "--xla_cpu_collective_call_terminate_timeout_seconds=3600")


def check(condition, what, output=""):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)
        print(str(output)[-3000:])


def run(*command, **variables):
    done = subprocess.run([PROGRAM, *map(str, command)], env=dict(environment, **variables), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=400)
    check(done.returncode == 0, " ".join(map(str, command[:3])), done.stdout + done.stderr)
    return done.stdout


def sentences(count, seed):
    random.seed(seed)
    for _ in range(count):
        parts = []
        for _ in range(random.randrange(1, 4)):
            parts.append(f"the {random.choice(ANIMALS)} {random.choice(VERBS)} the {random.choice(PLACES)}")
        yield " and ".join(parts)


def tests_of(logdir):
    with open(logdir / "metrics.csv") as file:
        return [row for row in csv.DictReader(file) if row["split"] == "test"]


for name, count in (("train", 240), ("test", 40)):
    (root / f"{name}.txt").write_text("".join(line + "\n" for line in sentences(count, name)))
special = [flag for token in SPECIAL for flag in ("--special-token", token)]
tokens = root / "tokens"
run("text", "tokenizer", root / "train.txt", "--vocab-size", 300, *special, "--out", tokens / "tokenizer.json")
for name in ("train", "test"):
    run("text", "pack", root / f"{name}.txt", tokens, "--prefix", name, "--tokenizer", tokens / "tokenizer.json",
        "--end-token", "</s>")
check((tokens / "train.json").exists(), "the set says what it is")


def train(logdir, task, model, shapes, processes, devices, *more, pod=False):
    command = ["train", "--task", task, *model, "--train", tokens / "train-*.bin", "--test", tokens / "test-*.bin",
               "--shapes", shapes, "--lr", "0.01", "--log-steps", "1", "--plugin", POD_PLUGIN if pod else "cpu",
               "--devices", devices, "--logdir", logdir, "--strict", *more]
    if not pod:
        return run(*(["run", "--processes", processes, "--", PROGRAM] if processes > 1 else []), *command)
    # The hosts of a slice know their number from the machine, and meet in a folder.
    meeting = Path(tempfile.mkdtemp(dir=root))
    return run("run", "--processes", processes, "--env", "TPU_WORKER_ID={worker}", "--", PROGRAM, *command,
               TPU_WORKER_HOSTNAMES=",".join(["127.0.0.1"] * processes), EMULATED_POD_DIR=str(meeting),
               EMULATED_POD_DEVICES=str(devices), XLA_FLAGS=POD_FLAGS)


# One process of four replicas, two of two: the same rows in a step, so the same losses.
found = {}
for task, model in (("clm", "llama-tiny"), ("mlm", "roberta-tiny")):
    for processes, devices in ((1, 4), (2, 2)):
        logdir = root / f"{task}-{processes}"
        output = train(logdir, task, ["--model", model], "2x48,4x24", processes, devices, "--epochs", "2")
        check("train: 240 documents with" in output, "the data is told", output)
        found[task, processes] = tests_of(logdir)
    one, two = found[task, 1], found[task, 2]
    check(len(one) == len(two) == 2, f"{task}: two tests", one)
    apart = max(abs(float(a["loss"]) - float(b["loss"])) for a, b in zip(one, two))
    check(apart < 1e-3, f"{task}: 1 × 4 and 2 × 2 replicas agree", (one, two))
    check(float(one[-1]["loss"]) < float(one[0]["loss"]) < 5.7, f"{task}: it learns", one)

config = json.loads((root / "clm-1" / "last" / "state.json").read_text())["config"].splitlines()
check(set(config) >= {'optimizer="adamw"', "weight-decay=0.1", 'betas="0.9,0.95"', "no-decay=true", "lr=0.01"},
      "its configuration has the recipe of the task", config)

# A slice of two hosts: one program for the replicas of both. The run ends within its second epoch, by its tokens, and
# goes on to its end there.
output = train(root / "pod", "clm", ["--model", "llama-tiny"], "2x48,4x24", 2, 2, "--epochs", "2", pod=True)
check("4 replicas in 2 processes" in output, "a pod of two hosts", output)
apart = max(abs(float(a["loss"]) - float(b["loss"])) for a, b in zip(found["clm", 1], tests_of(root / "pod")))
check(apart < 1e-3, "the pod learns what one process learns", (found["clm", 1], tests_of(root / "pod")))
epoch_tokens = int(re.search(r"Epoch 1 took ([0-9,]+) tokens", output)[1].replace(",", ""))
parts = ["--lr-schedule", "constant", "--warmup-steps", "4", "--epochs", "2"]
train(root / "whole", "clm", ["--model", "llama-tiny"], "2x48,4x24", 1, 4, *parts)
for more in (["--max-tokens", epoch_tokens + 100], ["--resume"]):
    output = train(root / "parts", "clm", ["--model", "llama-tiny"], "2x48,4x24", 2, 2, *parts, *more, pod=True)
check("Going on from" in output, "the pod goes on", output)
one, two = tests_of(root / "whole"), tests_of(root / "parts")
check(len(two) == 3, "tested where it was stopped, too", two)
check(abs(float(one[-1]["loss"]) - float(two[-1]["loss"])) < 1e-3, "a stopped run ends as a whole one", (one, two))

# Each shape is one program in the training and one in its test, of which a second start compiles none.
again = train(root / "again", "mlm", ["--model", "roberta-tiny"], "2x48,4x24", 1, 4, "--epochs", "2", "--report")
check("4 distinct: 0 compiled, 4 from the disk cache" in again, "a second start compiles nothing", again)
check("recompiles after" not in again, "and nothing is compiled again", again)

# The model says something, and finds its test as likely as its training did.
model = root / "clm-1" / "last"
said = run("text", "sample", "--model", model, "--prompt", "the cat", "--tokens", 24, "--greedy", "--plugin", "cpu")
check(said.startswith("the cat") and len(said.split()) > 3, "it goes on with a prompt", said)
check(said == run("text", "sample", "--model", model, "--prompt", "the cat", "--tokens", 24, "--greedy", "--device", "cpu"),
      "on LibTorch's CPU it says the same", said)
check(said == run("text", "sample", "--model", model, "--prompt", "the cat", "--tokens", 24, "--greedy", "--plugin", "cpu", "--mesh", "tensor=2"),
      "two devices that share it say the same", said)
scored = run("text", "score", "--model", model, "--tokens", tokens / "test-*.bin", "--no-begin", "--plugin", "cpu")
perplexity = float(re.search(r"perplexity\D*([0-9.]+)", scored)[1])
measured = float(found["clm", 1][-1]["Perplexity/test"]) if "Perplexity/test" in found["clm", 1][-1] else None
if measured is None:
    rows = [json.loads(line) for line in (root / "clm-1" / "metrics.jsonl").read_text().splitlines()]
    measured = [row["perplexity"] for row in rows if row.get("split") == "test"][-1]
check(abs(perplexity / measured - 1) < 2e-3, "the score is the test's", (scored, measured))

# Texts of two classes, on the body that has learnt the language.
for name, count in (("train", 256), ("test", 64)):
    with tarfile.open(root / f"{name}.tar", "w") as archive:
        for i, line in enumerate(sentences(count, name + "s")):
            for extension, content in (("txt", line), ("cls", str(int("ox" in line)))):
                member = tarfile.TarInfo(f"{i:04}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))
output = run("train", "--task", "classify", "--weights", root / "mlm-1" / "last", "--classes", 2, "--train",
             root / "train.tar", "--test", root / "test.tar", "--shapes", "32x48", "--long-documents", "cut", "--lr", "0.002",
             "--epochs", 12, "--plugin", "cpu", "--strict", "--logdir", root / "classes")
accuracy = [float(row["accuracy"]) for row in tests_of(root / "classes")]
check(max(accuracy) >= 90, "a classifier learns", accuracy)
check(json.loads((root / "classes/last/config.json").read_text())["architectures"] == ["RobertaForSequenceClassification"],
      "and is one of transformers")

print("failed: " + ", ".join(failures) if failures else "all passed")
sys.exit(1 if failures else 0)
