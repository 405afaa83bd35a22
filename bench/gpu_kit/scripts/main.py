"""What a machine with an NVIDIA GPU does with Sluice, in some minutes and without installing anything: is it right, how
fast is it, and what does it take.

The machine needs a Python with torch 2.11 (its C++ library is used) and XLA's CUDA plugin (jax-cuda13-pjrt); with the
packages jax and transformers there are more sides to compare with. Results are in FOLDER/gpu.json, written again after
each step, and the log of each step is beside it. The exit status is 1 if a step failed, 2 if the kit cannot run here.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine  # noqa: E402
import results  # noqa: E402
import steps  # noqa: E402

KIT = Path(__file__).resolve().parent.parent
MAX_SEED = 2**31
# Of a dry run on two cores, where other things take their time: compiling, and GPT-2's weights.
DRY_SHARES = {"machine": 20, "first-step-highest": 80, "first-step-default": 70, "digits": 40, "conformance-f32": 50,
              "conformance-bf16": 50, "bench-resnet50-bf16": 130, "bench-gpt2-bf16": 200, "bench-transformer6-bf16": 80,
              "bench-resnet50-f32": 100, "refusals": 5}


def say(text):
    print(f"gpu-kit: {text}", file=sys.stderr, flush=True)


def plan(dry):
    """[(name, what it is, its share of the time, the step)], the most valuable first. Unused time goes to those behind."""
    rows = [
        ("machine", "the GPU, the plugin and its devices", 30, steps.look),
        ("first-step-highest", "a product and three training steps beside LibTorch's CPU, f32 and bf16", 40,
         lambda kit, limit: steps.first_step(kit, limit, "highest")),
        ("first-step-default", "the same with the GPU's fastest products (TF32)", 30,
         lambda kit, limit: steps.first_step(kit, limit, "default")),
        ("digits", "a small ResNet learns handwritten digits, 20 epochs", 60, steps.train_digits),
        ("conformance-f32", "all operations beside LibTorch's CPU, in up to 12 processes, in random order", 100,
         lambda kit, limit: steps.conformance(kit, limit, "f32")),
        ("conformance-bf16", "the same in bf16", 80, lambda kit, limit: steps.conformance(kit, limit, "bf16")),
    ]
    shares = {"resnet50-bf16": 100, "gpt2-bf16": 90, "transformer6-bf16": 50, "resnet50-f32": 80}
    for bench in steps.benches(dry):
        rows.append((f"bench-{bench.name}", f"a training step of {bench.model} in {bench.precision}, batch {bench.batch}, "
                     "beside PyTorch and JAX's program", shares[bench.name],
                     lambda kit, limit, bench=bench: steps.bench_step(kit, limit, bench)))
    rows.append(("refusals", "too many replicas, and too little memory, are clear errors", 40, steps.refusals))
    return [(name, what, DRY_SHARES[name] if dry else share, step) for name, what, share, step in rows]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9, help="end within so many minutes (default: 9)")
    parser.add_argument("--out", type=Path, default=Path("gpu-kit-results"), metavar="FOLDER", help="default: gpu-kit-results")
    parser.add_argument("--only", metavar="STEP,…", help="these steps alone; a part of a name stands for all that have it")
    parser.add_argument("--list", action="store_true", help="print the steps and end")
    parser.add_argument("--dry", action="store_true", help="tiny sizes on XLA's CPU plugin: checks the kit, measures nothing")
    parser.add_argument("--seed", type=int, default=int(time.time()) % MAX_SEED,
                        help="of the order of the conformance samples (default: the time)")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error(f"--minutes: expected more than 0, found {options.minutes:g}")
    rows = plan(options.dry)
    if options.only:
        wanted = options.only.split(",")
        unknown = [name for name in wanted if not any(name and name in row[0] for row in rows)]
        if unknown:
            parser.error(f"--only: there is no step '{unknown[0]}'; known: {', '.join(row[0] for row in rows)}")
        rows = [row for row in rows if any(name in row[0] for name in wanted)]
    return options, rows


def facts():
    """What the kit is of: version, commit, the LibTorch it was built with."""
    path = KIT / "kit.json"
    if not path.exists():
        raise machine.Unusable(f"expected {path}, found none: `make gpu-kit` makes a whole kit in build/gpu-kit")
    return json.loads(path.read_text())


def unpack(work):
    """The folder of the programs. In one that was unpacked before, they lie beside the archive."""
    if (KIT / "programs").is_dir():
        return KIT / "programs"
    machine.check_room(work)
    with tarfile.open(KIT / "programs.tar.xz") as archive:
        archive.extractall(work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return work / "programs"


def make_kit(options, work):
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    machine.check_room(out)
    made = facts()
    torch, torch_version = machine.find_torch(made["torch"])
    plugin, plugin_name, plugin_version = machine.find_plugin(options.dry)
    tools = None if options.dry else machine.find_cuda_tools(plugin, work)
    if tools is None and not options.dry:
        raise machine.Unusable("expected a CUDA with bin/ptxas and nvvm/libdevice/libdevice.10.bc, which XLA's compiler needs, "
                               "found none: install the package nvidia-cuda-nvcc, or set CUDA_HOME")
    gpus = [] if options.dry else machine.query_gpus()
    machine.check_driver(gpus, plugin_name)
    head = {"kit": made, "dry": options.dry, "minutes": options.minutes, "gpus": gpus, "python": sys.version.split()[0],
            "torch": torch_version, "plugin": f"{plugin_name} {plugin_version}".strip(), "cores": os.cpu_count(),
            "cuda_tools": str(tools) if tools else None}
    say(f"torch {torch_version}, plugin {head['plugin']}, {gpus[0]['name'] if gpus else 'no GPU'}, {os.cpu_count()} cores")
    kit = steps.Kit(unpack(work), Path(__file__).resolve().parent, out, work, plugin, torch, options.dry,
                    options.seed, gpus, tools)
    return kit, results.Results(out, head)


def run_steps(rows, kit, found, end):
    shares = [row[2] for row in rows]
    benches = {row[0] for row in rows if row[0].startswith("bench")}
    gone = False
    for i, (name, _, share, step) in enumerate(rows):
        left = end - time.monotonic()
        limit = left * share / sum(shares[i:])
        begin = time.monotonic()
        if gone or limit < 2:
            answer = "left out", "there is no GPU" if gone else "no time was left", None
        else:
            if benches and name.startswith(("conformance", "bench")):
                steps.prepare(kit, benches)
                benches = set()  # once
            say(f"{name} (at most {limit:.0f} s) …")
            try:
                answer = step(kit, limit)
            except OSError as error:
                answer = "failed", f"{error.strerror}: {error.filename or ''}", None
        gone = gone or (name == "machine" and answer[0] == "failed" and not kit.dry)
        found.add(name, answer[0], time.monotonic() - begin, answer[1], answer[2])
        say(f"{name}: {answer[0]}, {time.monotonic() - begin:.0f} s. {answer[1]}")


def print_speed(found):
    for name, speed in found.all["speed"].items():
        ratios = ", ".join(f"{value:.2f} × as fast as {side}" for side, value in speed["times_as_fast"].items())
        captured = speed["captured_host_ms"]
        print(f"{name}: {speed['step_ms']:.2f} ms a step; {ratios or 'nothing to compare with'}; the host works "
              f"{speed['host_ms']:.2f} ms" + (f", captured {captured:.2f} ms" if captured is not None else ""))


def main(arguments):
    options, rows = parse(arguments)
    if options.list:
        for name, what, _, _ in rows:
            print(f"{name:22} {what}")
        return 0
    begin = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="sluice-gpu-kit-"))
    kit = None
    try:
        kit, found = make_kit(options, work)
        # Some seconds are left for the end.
        run_steps(rows, kit, found, begin + 60 * options.minutes - min(10, 6 * options.minutes))
        found.finish(time.monotonic() - begin)
    except machine.Unusable as error:
        say(str(error))
        return 2
    except OSError as error:
        say(f"{error.strerror}: {error.filename or work}; free some room, or set TMPDIR and --out to another disk")
        return 2
    finally:
        for one in kit.prepared if kit else []:
            one.kill()
        shutil.rmtree(work, ignore_errors=True)
    print_speed(found)
    failed = found.failed()
    print(f"gpu-kit: {time.monotonic() - begin:.0f} s; {len(found.all['steps'])} steps, failed: {', '.join(failed) or 'none'}; "
          f"all of it in {kit.out / 'gpu.json'}")
    return 1 if failed else 0


if __name__ == "__main__":
    # A stop from outside ends what runs, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted; what was done is in the folder of --out")
        sys.exit(130)
