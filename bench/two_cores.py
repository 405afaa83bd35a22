#!/usr/bin/env python3
"""What a second core gives: two_cores.py BENCH_DATA_READ MODE SHARDS [ROUNDS [SECONDS]]

Each round runs, one after the other: "one", a stream with one decoding thread on one core; "two", a stream with two
decoding threads on two cores; "apart", two processes at once, each of which is "one" on a core of its own. They have
nothing to do with each other, so "apart ÷ one" is what the machine can give at that time. Samples a second by the
clock; the medians over the rounds are printed as JSON.
"""

import json
import statistics
import subprocess
import sys


def start(program, mode, shards, threads, cores, seconds):
    command = [program, mode, shards, "--threads", str(threads), "--seconds", str(seconds)]
    return subprocess.Popen(["taskset", "-c", cores, *command], stdout=subprocess.PIPE, text=True)


def rate(process):
    line, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"bench_data_read failed with status {process.returncode}")
    return json.loads(line)["samples_per_second"]


def main(program, mode, shards, rounds=9, seconds=1.5):
    rates = {"one": [], "two": [], "apart": []}
    for _ in range(int(rounds)):
        rates["one"].append(rate(start(program, mode, shards, 1, "0", seconds)))
        rates["two"].append(rate(start(program, mode, shards, 2, "0,1", seconds)))
        both = [start(program, mode, shards, 1, core, seconds) for core in ("0", "1")]
        rates["apart"].append(sum(rate(process) for process in both))
    answer = {"mode": mode, "samples_per_second": {side: round(statistics.median(all)) for side, all in rates.items()}}
    for side in ("two", "apart"):
        answer[f"{side} ÷ one"] = round(statistics.median(a / b for a, b in zip(rates[side], rates["one"])), 2)
    answer["two ÷ apart"] = round(statistics.median(a / b for a, b in zip(rates["two"], rates["apart"])), 2)
    print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
