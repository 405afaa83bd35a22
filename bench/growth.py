"""growth.py PROGRAM [--only CASE] [--files N]: how the cost of reading a set grows with its size.

PROGRAM is bench_growth (cmake --build --preset release --target bench_growth). Each case runs at several sizes, each in
a process and a folder of its own. Prints tables for docs/scale.md, with the exponent p of cost ~ size^p between the
smallest and the largest size. --files: the limit of open files, soft and hard (default 1024).
"""

import argparse
import json
import math
import resource
import subprocess
import tempfile

CASES = [
    ("mixture-order", "sets of a mixture", [10, 100, 1000, 10000], ["comparisons a sample"]),
    ("mixture", "sets of a mixture, 64 streams each", [1, 16, 100, 400], ["open files", "bytes of buffers", "peak MB"]),
    ("streams", "streams of a set", [64, 1024, 8192], ["open files", "bytes of buffers", "peak MB"]),
    ("no-index", "streams of a shard without an index", [1, 8, 64, 512], ["bytes read, of the set's"]),
    ("resume", "% of an epoch before the start", [10, 50, 90], ["bytes read, in samples"]),
    ("cache", "objects put into a cache", [100, 1000, 10000], ["files looked at", "seconds"]),
]


def run(program, case, size, files):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with tempfile.TemporaryDirectory(prefix="sluice-growth") as folder:
        done = subprocess.run([program, case, str(size), folder], capture_output=True, text=True, check=False,
                              preexec_fn=limit)
    if done.returncode != 0:
        return {"failed": done.stderr.strip().splitlines()[-1][:120]}
    return json.loads(done.stdout)


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(program, case, title, sizes, columns, files):
    results = [run(program, case, size, files) for size in sizes]
    lines = [f"| {title} | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for size, result in zip(sizes, results):
        cells = [shown(result[column]) if column in result else result.get("failed", "") for column in columns]
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    exponents = []
    for column in columns:
        first, last = results[0].get(column), results[-1].get(column)
        known = first and last and sizes[-1] > sizes[0]
        exponents.append(f"{math.log(last / first) / math.log(sizes[-1] / sizes[0]):.2f}" if known else "")
    lines.append("| exponent | " + " | ".join(exponents) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--files", type=int, default=1024)
    arguments = parser.parse_args()
    for case, title, sizes, columns in CASES:
        if arguments.only in ("", case):
            print(table(arguments.program, case, title, sizes, columns, arguments.files), flush=True)
            print()


if __name__ == "__main__":
    main()
