"""gallery.py FOLDER [--only NAME …] [--steps N] [--readme]: runs the programs of examples/gallery, built in FOLDER, on
LibTorch's CPU and on XLA's CPU plugin, both on one core.

Prints a JSON line for each run, then the table of examples/gallery/README.md; --readme writes it there. `seconds` are those
of the processor, so that other programs on the machine do not count: of the whole run, of a run of three steps (start,
compiling, evaluation), and of each further step.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "examples/gallery/README.md"
TABLE = re.compile(r"(?<=<!-- table -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
LAST = re.compile(r"^\w+ on (?P<device>\w+): loss (?P<loss>[-+.\w]+), (?P<metric>[^,]+?) (?P<value>[-+.\w]+), [-+.\w]+ s, ")
SHORT = 3


def programs():
    return sorted(path.stem for path in (ROOT / "examples/gallery").glob("*.cc"))


def summary(name):
    """The first sentence of a program's first comment."""
    text = (ROOT / f"examples/gallery/{name}.cc").read_text()
    comment = " ".join(line[3:] for line in text.split("#include")[0].splitlines() if line.startswith("// "))
    return re.split(r"[.:] ", comment + " ")[0]


def default_steps(name):
    found = re.search(r"gallery::Run run\(\"\w+\", argc, argv, ([\d']+)\)", (ROOT / f"examples/gallery/{name}.cc").read_text())
    return int(found[1].replace("'", ""))


def run(program, device, steps):
    environment = dict(os.environ, OMP_NUM_THREADS="1", SLUICE_CACHE="0", SLUICE_PLUGIN="cpu")
    core = min(os.sched_getaffinity(0))
    process = subprocess.Popen([str(program), "--device", device, "--steps", str(steps)], cwd=ROOT, env=environment,
                               stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    last = LAST.match((output.splitlines() or [""])[-1])
    if status != 0 or not last:
        sys.exit(f"{program} on {device} failed with status {process.returncode}:\n{output[-2000:]}")
    return {"program": program.name, "device": device, "steps": steps, "loss": float(last["loss"]),
            "metric": last["metric"], "value": float(last["value"]), "seconds": usage.ru_utime + usage.ru_stime}


def measure(program, device, steps):
    result = run(program, device, steps)
    result["short_seconds"] = run(program, device, min(SHORT, steps))["seconds"]
    result["step_ms"] = 1000 * (result["seconds"] - result["short_seconds"]) / max(1, steps - SHORT)
    print(json.dumps(result), flush=True)
    return result


def row(eager, xla):
    def cells(one):
        return f"{one['loss']:.3g} | {one['value']:.3g} | {one['seconds']:.1f} | {one['step_ms']:.2f}"
    name = eager["program"]
    return f"| [{name}]({name}.cc) | {summary(name)} | {eager['steps']:,} | {eager['metric']} | {cells(eager)} | {cells(xla)} |"


def table(pairs):
    head = ("| program | what it does | steps | metric | LibTorch: loss | metric | s | ms a step "
            "| XLA: loss | metric | s | ms a step |\n" + "| --- " * 12 + "|\n")
    return head + "\n".join(row(*pair) for pair in pairs) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=programs(), default=programs(), metavar="NAME")
    parser.add_argument("--steps", type=int, help="steps of each run (without: the program's default)")
    parser.add_argument("--readme", action="store_true", help="write the table into examples/gallery/README.md")
    options = parser.parse_args()
    pairs = [[measure(options.folder.resolve() / name, device, options.steps or default_steps(name))
              for device in ("cpu", "xla")] for name in options.only]
    print(table(pairs))
    if options.readme:
        if options.only != programs() or options.steps:
            sys.exit("--readme needs all programs with their default steps")
        README.write_text(TABLE.sub(lambda _: table(pairs), README.read_text()))


if __name__ == "__main__":
    main()
