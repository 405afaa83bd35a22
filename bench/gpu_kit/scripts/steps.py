"""The steps of a run. Each is given a Kit and its limit in seconds, and returns (outcome, what it says, result).

Outcomes are "ok", "failed" and "left out".
"""

import csv
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import commands
import machine

TEXT = re.compile(r"rows (\d+), samples (\d+), fallbacks (\d+), failures (\d+)")
MAX_FAILURES = 400  # lines that are kept of a conformance run
# For many small programs: nothing is timed on the GPU, and products go to cuBLAS, which needs no timing.
QUICK_COMPILES = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"


@dataclass
class Kit:
    programs: Path  # the unpacked folder
    scripts: Path
    out: Path
    work: Path  # for what is not kept
    plugin: Path
    torch: Path  # LibTorch's libraries
    dry: bool
    seed: int
    gpus: list
    cuda_tools: Path = None  # the folder of a CUDA with ptxas
    devices: int = 1  # of the plugin
    steps_file: dict = field(default_factory=dict)  # JAX's programs: name of a bench -> file
    prepared: list = field(default_factory=list)  # Running, in the background

    def environment(self, **more):
        variables = dict(os.environ)
        old = variables.get("LD_LIBRARY_PATH", "")
        variables.update({
            "LD_LIBRARY_PATH": f"{self.torch}:{old}" if old else str(self.torch),
            "SLUICE_PLUGIN": str(self.plugin),
            "SLUICE_CACHE_DIR": str(self.work / "cache"),
            # PyTorch's processes use the same GPU.
            "SLUICE_GPU_PREALLOCATE": "0",
            "TORCHINDUCTOR_CACHE_DIR": str(self.work / "inductor"),
            "TRITON_CACHE_DIR": str(self.work / "triton"),
            "PYTHONDONTWRITEBYTECODE": "1",
        })
        if not self.dry:  # all sides measure the same one
            variables["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        if self.cuda_tools:
            variables["CUDA_HOME"] = str(self.cuda_tools)
        variables.update(more)
        return variables

    def run(self, name, command, limit, **environment):
        return commands.run(name, command, limit, self.out, self.environment(**environment))

    def program(self, name):
        return self.programs / name


def of(done, result=None, said=""):
    """A step's answer, from the one program that it ran."""
    fault = done.fault()
    return ("failed", fault, result) if fault else ("ok", said or done.said(), result)


def look(kit, limit):
    """The devices that the plugin offers."""
    done = kit.run("machine", [kit.program("sluice"), "devices", "--json"], limit)
    found = done.json()
    if done.fault() and not kit.dry and not kit.gpus:
        return "failed", f"no visible GPU: nvidia-smi names none. The plugin says: {done.said()}", found
    if found is None:
        return of(done)
    kit.devices = len(found["devices"])
    devices = ", ".join(device["kind"] for device in found["devices"])
    return of(done, found, f"PJRT {found['api']}, {devices}")


def first_step(kit, limit, precision):
    name = f"first-step-{precision}"
    done = kit.run(name, [kit.program("first_step")], limit, SLUICE_MATMUL_PRECISION=precision)
    found = done.json()
    if found is None:
        return of(done)
    off = [key for key, value in found.items() if isinstance(value, dict) and not value["ok"]]
    if off:
        words = ", ".join(f"{key} {found[key]['difference']:.2g} (at most {found[key]['bound']:g})" for key in off)
        return "failed", f"differs from LibTorch on the CPU: {words}", found
    return of(done, found, f"as LibTorch on the CPU: step f32 {found['step_f32']['difference']:.1e}, "
                           f"bf16 {found['step_bf16']['difference']:.1e}")


def train_digits(kit, limit):
    folder, epochs = kit.work / "digits", 1 if kit.dry else 20
    digits = kit.programs / "digits"
    done = kit.run("digits", [
        kit.program("sluice"), "train", "--model", "cifar_resnet8", "--train", f"{digits}/train-*.tar", "--test",
        f"{digits}/test-*.tar", "--classes", "10", "--batch-size", "32", "--epochs", epochs, "--lr", "0.1", "--warmup-epochs",
        min(1, epochs - 1), "--weight-decay", "5e-4", "--log-steps", "10", "--target-accuracy", 0 if kit.dry else 97, "--logdir",
        folder], limit)
    metrics = folder / "metrics.csv"
    if not metrics.exists():
        return of(done)
    with metrics.open() as file:
        rows = list(csv.DictReader(file))
    accuracies = [float(row["accuracy"]) for row in rows if row["split"] == "test" and row.get("accuracy")]
    rates = [float(row["global_rate"]) for row in rows if row["split"] == "train" and row.get("global_rate")]
    found = {"epochs": epochs, "accuracy": max(accuracies, default=None), "examples_per_s": rates[-1] if rates else None}
    return of(done, found, f"{found['accuracy']} % of the test's digits, {found['examples_per_s']} examples/s")


def conformance(kit, limit, dtype):
    if dtype == "bf16" and not machine.has_bf16(kit.gpus):
        return "left out", f"{kit.gpus[0]['name']} has no bf16 (compute capability {kit.gpus[0]['capability']})", None
    processes = max(1, min(12, os.cpu_count() or 1))
    # Starting takes some seconds, and the last program is compiled after the last sample has begun.
    seconds = max(1, limit - min(30, limit / 2))
    flags = "--xla_backend_optimization_level=0" if kit.dry else (
        f"{QUICK_COMPILES} --xla_gpu_force_compilation_parallelism=1")
    environment = kit.environment(SLUICE_MATMUL_PRECISION="highest", XLA_FLAGS=flags, OMP_NUM_THREADS="1")
    end, running = time.monotonic() + limit, []
    for i in range(1, processes + 1):
        command = [kit.program("sluice_conformance"), "--samples", kit.programs / "samples", "--dtype", dtype, "--part",
                   f"{i}/{processes}", "--seed", kit.seed, "--seconds", f"{seconds:.0f}"]
        command += ["--file", "softmax"] if kit.dry else []
        running.append(commands.Running(f"conformance-{dtype}-{i}", command, kit.out, environment))
    done = [one.wait(end - time.monotonic()) for one in running]
    return conformance_answer(done, processes, kit.seed)


def conformance_answer(done, processes, seed):
    totals = {"samples": 0, "fallbacks": 0, "failures": 0, "not_begun": 0}
    lines, broken = [], []
    for i, one in enumerate(done, 1):
        found = TEXT.search(one.text)
        lines += [line for line in one.text.splitlines() if line.startswith("FAIL")]
        left = re.search(r"not begun in .* s: (\d+) samples", one.text)
        totals["not_begun"] += int(left[1]) if left else 0
        if found:
            for key, value in zip(("samples", "fallbacks", "failures"), found.groups()[1:]):
                totals[key] += int(value)
        else:
            broken.append(f"process {i}: {one.fault() or 'no last line'}")
    result = {"processes": processes, "seed": seed, **totals, "lines": lines[:MAX_FAILURES], "broken": broken}
    said = f"{totals['samples']} samples, {totals['failures']} differences, {totals['not_begun']} samples not begun"
    if broken:
        said += f"; {len(broken)} processes did not end: {broken[0]}"
    return "failed" if lines or broken else "ok", said, result


@dataclass
class Bench:
    model: str
    precision: str
    batch: int
    sizes: list  # further arguments, the same for all three programs
    images: bool = False

    @property
    def name(self):
        return f"{self.model}-{self.precision}"

    def arguments(self):
        return [*self.sizes, *(["--bf16"] if self.precision == "bf16" else [])]


def benches(dry):
    if dry:
        return [Bench("resnet50", "bf16", 2, ["--image-size", "32"], True), Bench("gpt2", "bf16", 1, ["--length", "8"]),
                Bench("transformer6", "bf16", 2, []), Bench("resnet50", "f32", 2, ["--image-size", "32"], True)]
    return [Bench("resnet50", "bf16", 128, ["--image-size", "224"], True), Bench("gpt2", "bf16", 8, ["--length", "1024"]),
            Bench("transformer6", "bf16", 128, []), Bench("resnet50", "f32", 128, ["--image-size", "224"], True)]


def torch_command(kit, bench, compiled):
    words = [sys.executable, str(kit.scripts / "torch_step.py"), bench.model, str(bench.batch), "--device",
             "cpu" if kit.dry else "cuda", *bench.arguments()]
    words += ["--channels-last"] if bench.images else []
    words += ["--compile"] if compiled else []
    words += ["--warmup", "1"] if kit.dry else []
    return " ".join(f"'{word}'" for word in words)


def prepare(kit, names):
    """In the background, for the benches of these steps: JAX lowers them, and torch.compile's code comes into its cache."""
    wanted = [bench for bench in benches(kit.dry) if f"bench-{bench.name}" in names]
    for bench in wanted:
        if machine.folder_of("jax"):
            path = kit.work / f"{bench.name}.mlir"
            kit.steps_file[bench.name] = path
            kit.prepared.append(commands.Running(
                f"jax-{bench.name}", [sys.executable, kit.scripts / "jax_step.py", bench.model, bench.batch, path,
                                      *bench.arguments()], kit.work, kit.environment(JAX_PLATFORMS="cpu")))
    if kit.dry:
        return
    for bench in wanted:
        kit.prepared.append(commands.Running(
            f"compile-{bench.name}", ["/bin/sh", "-c", f"{torch_command(kit, bench, True)} </dev/null"], kit.work,
            kit.environment()))


def finish_preparing(kit, limit):
    end = time.monotonic() + limit
    for one in kit.prepared:
        one.wait(end - time.monotonic())
    kit.prepared.clear()


def bench_step(kit, limit, bench):
    begin = time.monotonic()
    finish_preparing(kit, limit / 3)
    limit -= time.monotonic() - begin
    name = f"bench-{bench.name}"
    if bench.precision == "bf16" and not machine.has_bf16(kit.gpus):
        return "left out", f"{kit.gpus[0]['name']} has no bf16", None
    command = [kit.program("sluice"), "bench", "step", "--model", bench.model, "--batch-size", bench.batch, "--precision",
               bench.precision, *bench.sizes, "--no-eager", "--captured", "--keep-going", "--rounds", 1 if kit.dry else 15,
               "--steps", 1 if kit.dry else 10, "--seconds", f"{max(1, limit - 20):.0f}"]
    missing = []
    lowered = kit.steps_file.get(bench.name)
    if lowered is not None and lowered.exists():
        command += ["--against", lowered]
    else:
        missing.append("no program of JAX's")
    if bench.model == "gpt2" and machine.folder_of("transformers") is None:
        missing.append("no package transformers for PyTorch's GPT-2")
    else:
        for compiled in (False, True) if not kit.dry else (False,):
            command += ["--beside", torch_command(kit, bench, compiled)]
    done = kit.run(name, command, limit)
    result = done.json()
    if result is None or "xla" not in result:
        return of(done)
    failed = [f"{key.split('torch_step.py')[-1]}: {value['error']}" for key, value in result.items()
              if isinstance(value, dict) and "error" in value]
    said = f"{result['xla']['step_ms']:.2f} ms a step, {result['rounds']} rounds" + "".join(f"; {one}" for one in missing)
    return ("failed", f"{said}; {failed[0]}", result) if failed else of(done, result, said)


def refusal(kit, name, command, words, limit, **environment):
    """The command must fail, and say the words."""
    done = kit.run(name, command, limit, **environment)
    text = f"{done.text}\n{done.log}"
    absent = [word for word in words if word not in text]
    if done.status == 0 or done.timed_out:
        return f"{name}: expected an error, found {done.fault() or 'none'}"
    return f"{name}: the error lacks '{absent[0]}': {done.said()}" if absent else ""


def refusals(kit, limit):
    if kit.dry:
        return "left out", "XLA's CPU plugin has virtual devices, and the machine's memory", None
    bench = [kit.program("sluice"), "bench", "step", "--no-eager", "--rounds", "1"]
    faults = [
        refusal(kit, "two-replicas", [*bench, "--model", "mlp", "--devices", kit.devices + 1],
                [f"expected at most {kit.devices} devices"], limit / 2),
        refusal(kit, "out-of-memory", [*bench, "--model", "transformer6", "--batch-size", "2048"],
                ["The device's memory did not suffice", "its largest values at the peak"], limit / 2, SLUICE_GPU_MEMORY="0.05",
                XLA_FLAGS=QUICK_COMPILES),
    ]
    faults = [fault for fault in faults if fault]
    return ("failed", "; ".join(faults), None) if faults else ("ok", "both name what is wrong", None)
