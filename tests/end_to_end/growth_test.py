"""growth_test.py PROGRAM: how much `sluice data pack`, `index` and `append` read and write for sets of two sizes. The
operating system counts the bytes and calls. Fails when four times the samples cost more than 4^1.1 times as much, or when
adding the same images to a larger set costs more than its list of shards does."""

import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SIZES = (64, 256)
LARGEST_EXPONENT = 1.1
failures = []


def png(value):
    """A grey image of 16 × 16 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((value + row + column) % 256 for column in range(16)) for row in range(16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def images(folder, count):
    for number in range(count):
        path = folder / f"class-{number % 2}" / f"{number:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(number))
    return folder


def cost(*arguments):
    """Bytes and calls of reading and writing: the counts of a process are there until it is waited for."""
    process = subprocess.Popen([str(argument) for argument in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout.read().decode()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    counts = dict(line.split(": ") for line in Path(f"/proc/{process.pid}/io").read_text().splitlines())
    if process.wait() != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {said}")
    return {"bytes": int(counts["rchar"]) + int(counts["wchar"]), "calls": int(counts["syscr"]) + int(counts["syscw"])}


def costs_at(program, work, size):
    """The costs of each verb for a set of this size, in shards of 4 samples."""
    made, shards, more = images(work / "images", size), work / "set", images(work / "more", 8)
    pack = cost(program, "data", "pack", made, shards, "--shard-size", 4, "--workers", 1)
    for path in [*shards.glob("*.idx"), shards / "sizes.json"]:
        path.unlink()
    index = cost(program, "data", "index", f"{shards}/*.tar")
    append = cost(program, "data", "append", shards, more, "--shard-size", 4, "--workers", 1)
    found = len(list(shards.glob("*.tar")))
    if found != (size + 8) // 4:
        sys.exit(f"{found} shards instead of {(size + 8) // 4}")
    return {"pack": pack, "index": index, "append": append}


def main(program):
    found, start = {}, cost(program, "data", "index", "--help")
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="sluice-growth") as folder:
            found[size] = costs_at(program, Path(folder), size)
    small, large = SIZES
    for verb in found[small]:
        for kind in ("bytes", "calls"):
            before, after = (found[size][verb][kind] - start[kind] for size in SIZES)  # without the program's start
            exponent = math.log(after / before) / math.log(large / small)
            print(f"{verb}: {before:,} {kind} for {small} samples, {after:,} for {large}: exponent {exponent:.2f}")
            if exponent > LARGEST_EXPONENT:
                failures.append(f"{verb} {kind}")
    added = found[large]["append"]["bytes"] - found[small]["append"]["bytes"]
    if added > 2000 * (large - small) / 4:  # bytes for each shard that is there already
        failures.append(f"append reads what is there: {added} bytes more")
    print(f"{len(failures)} failures: {failures}" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
