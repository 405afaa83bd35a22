"""predictions_oracle.py PREDICT: Python's webdataset decodes the shards of predictions to what the JSON lines say.

Of one process, and of two with a last batch that is padded. Exit status 77 when the packages are missing.
"""

import glob
import io
import json
import math
import os
import socket
import subprocess
import sys
import tempfile

try:
    import numpy
    import webdataset
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SAMPLES = 21  # no multiple of a batch, nor of those of two processes
TYPES = {"y": "float32", "outer": "float32", "above": "bool", "whole": "int64", "small": "uint8", "half": "float16",
         "brain.float": "float32"}
SHAPES = {"y": (2,), "outer": (3, 2), "above": (2,), "whole": (3,), "small": (3,), "half": (2,), "brain.float": (2,)}
NUMBERS = {"first", "log", "best", "large"}
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"DIFFERS: {what}")


def write_inputs(path):
    random = numpy.random.default_rng(3)
    with webdataset.TarWriter(path) as out:
        for number in range(SAMPLES):
            x = random.random(3, dtype=numpy.float32)
            out.write({"__key__": f"part/{number:04d}", "x.npy": x})


def predict(program, processes, shard, work, *outs):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = []
    for process in range(processes):
        environment = dict(os.environ)
        if processes > 1:
            environment.update(SLUICE_PROCESS_ID=str(process), SLUICE_PROCESS_COUNT=str(processes),
                               SLUICE_COORDINATOR_ADDRESS=f"127.0.0.1:{port}")
        running.append(subprocess.Popen([program, shard, work, *outs], env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True))
    for one in running:
        output, _ = one.communicate(timeout=240)
        check(one.returncode == 0, f"exit status {one.returncode}: {output}")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return {line["key"]: line for line in map(json.loads, file)}


def number(value):
    return value if isinstance(value, (int, float)) else float(value)  # "nan", "inf"


def compare(lines, shards, what):
    seen = []
    for sample in webdataset.WebDataset(shards, shardshuffle=False).decode():
        key = sample["__key__"]
        seen.append(key)
        line = lines[key]
        check(set(line) == {"key", *NUMBERS, *TYPES}, f"{what}: names {sorted(line)}")
        check({name for name in sample if not name.startswith("__")} == {"json", *(f"{name}.npy" for name in TYPES)},
              f"{what}: members {sorted(sample)}")
        check(sample["json"] == {name: line[name] for name in NUMBERS}, f"{what} {key}: {sample['json']}")
        for name, kind in TYPES.items():
            array = sample[f"{name}.npy"]
            check(str(array.dtype) == kind and array.shape == SHAPES[name], f"{what} {key} {name}: {array.dtype}")
            expected = numpy.array(line[name], array.dtype)
            check(numpy.array_equal(array, expected), f"{what} {key} {name}: {array} and {expected}")
    check(seen == list(lines), f"{what}: {len(seen)} samples, {len(lines)} lines, or another order")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        shard = os.path.join(folder, "in.tar")
        write_inputs(shard)

        def out(name):
            return os.path.join(folder, name)

        predict(program, 1, shard, out("run"), out("all.jsonl"), out("one.tar"), out("many-%03d.tar"))
        lines = lines_of(out("all.jsonl"))
        check(list(lines) == [f"part/{i:04d}" for i in range(SAMPLES)], f"lines: {list(lines)}")
        logs = [number(line["log"]) for line in lines.values()]
        check(any(math.isnan(log) for log in logs) and not all(math.isnan(log) for log in logs), f"logs: {logs}")
        compare(lines, out("one.tar"), "one")
        many = sorted(glob.glob(out("many-*.tar")))
        check([os.path.basename(path) for path in many] == [f"many-{i:03d}.tar" for i in range(4)], f"shards: {many}")
        compare(lines, many, "many")

        predict(program, 2, shard, out("run2"), out("parts.jsonl"), out("parts-%03d.tar"))
        together = {}
        for process in range(2):
            part = lines_of(out(f"parts.{process}.jsonl"))
            compare(part, sorted(glob.glob(out(f"parts-*-{process}.tar"))), f"process {process}")
            check(not set(part) & set(together), f"process {process} has samples of another one")
            together.update(part)
        check(together == lines, f"two processes: {len(together)} samples, or other values")
        check(not [name for name in os.listdir(folder) if name.startswith(".")], "something hidden is left")
    print(f"{len(failures)} differences")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
