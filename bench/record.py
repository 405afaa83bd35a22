"""record.py MACHINE FILE.json…: adds what a bench printed to bench/results/MACHINE.json, and writes docs/performance.md and
bench/results/README.md.

Knows the JSON of `sluice bench step`, bench_operations, bench_recurrent, bench_convolutions, bench_collectives,
bench_bucket_read, bench_layers, bench_spans, webdataset_read.py compare, two_builds.py, two_cores.py, webdataset_decode.py,
color_jitter.py, peers.py, texts_to_ids.py, mesh_checkpoint.py, mesh_load.py and of the GPU kit (gpu.json). A row that measures
the same beside the same is replaced. A new machine needs its name and a line about it: --name "Google TPU v5e" --about "One chip, libtpu 0.0.30".
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import performance_page  # noqa: E402
import results  # noqa: E402


def row(bench, what, unit, ours, peers, ratio=None, rounds=None, note=None):
    optional = {"ratio": ratio, "rounds": rounds, "note": note}
    return {"bench": bench, "what": what, "unit": unit, "sluice": ours, "peers": peers,
            **{key: value for key, value in optional.items() if value is not None}}


def short(value):
    return float(f"{value:.3g}")


def what_of_step(found):
    size = f" at {found['image_size']}×{found['image_size']}" if "image_size" in found else ""
    if found.get("model", "").startswith(("gpt2", "llama")):
        size = f", {found['length']} tokens"
    what = f"{found['model']}{size}, batch {found['batch_size']}"
    if found["precision"] != "f32":
        what += f", {found['precision']}"
    if found["devices"] > 1:
        what += f", {found['devices']} devices"
    return what


def of_step(found):
    what = what_of_step(found)
    sides = {name: side for name, side in found.items() if isinstance(side, dict) and "xla_to_this" in side}
    ours, rounds = found["xla"], found["rounds"]
    eager = {name: side for name, side in sides.items() if name != "against"}
    rows = []
    if eager:
        rows.append(row("step" if found["cpu_kernels"] else "xla", what, "ms", short(ours["step_ms"]),
                        {name: short(side["step_ms"]) for name, side in eager.items()},
                        round(1 / max(side["xla_to_this"] for side in eager.values()), 2), rounds))
    if "against" in sides:
        rows.append(row("jax", what, "ms", short(ours["step_ms"]), {"JAX's program": short(sides["against"]["step_ms"])},
                        round(1 / sides["against"]["xla_to_this"], 2), rounds))
    if ours["programs_compiled"] > 0:
        rows.append(row("compile", what, "s", short(ours["compile_s"]), {},
                        note=f"with the first steps {short(ours['first_steps_s'])} s"))
    rows.append(row("record", what, "ms", short(ours["trace_ms"]), {}, note=f"{ours['operations']} operations"))
    return rows


GPU_SIDES = {"jax": "JAX's program", "eager": "PyTorch eager", "torch.compile": "torch.compile"}


def of_gpu_step(found, speed):
    """`found`: what the bench printed, `speed`: what the kit made of it."""
    what, rounds, memory = what_of_step(found), found["rounds"], speed["bytes"]
    rows = [row("gpu_step", what, "ms", short(speed["step_ms"]), {GPU_SIDES[side]: short(speed["step_ms"] * ratio)},
                round(ratio, 2), rounds) for side, ratio in speed["times_as_fast"].items()]
    if speed["captured_host_ms"] is not None:
        rows.append(row("gpu_host", what, "ms", short(speed["captured_host_ms"]), {"recorded": short(speed["host_ms"])}))
    if "sluice" in memory and len(memory) > 1:
        rows.append(row("gpu_memory", what, "GB", short(memory["sluice"] / 1e9),
                        {GPU_SIDES[side]: short(size / 1e9) for side, size in memory.items() if side != "sluice"}))
    return rows


def of_gpu_kit(found):
    if found["dry"]:
        sys.exit("record.py: this is a dry run of the GPU kit, whose figures mean nothing")
    return [one for name, speed in found["speed"].items()
            for one in of_gpu_step(found["steps"][f"bench-{name}"]["result"], speed)]


def of_operations(found):
    return [row("operations", f"{operation}, {shape}", "ms", short(times["device_ms"]), {"eager": short(times["eager_ms"])},
                round(times["eager_by_device"], 2))
            for operation, shapes in found.items() for shape, times in shapes.items()]


def of_convolutions(found):
    spread = found["distribution"]
    ratios = ", ".join(f"{short(spread[name])} ({name})" for name in ("least", "5%", "25%", "median"))
    worst = found["convolutions"][0]
    bench = "convolutions_processor" if found.get("processor_time") else "random_convolutions"
    return [row(bench, f"{spread['shapes']} shapes", "ms", None, {"eager": None}, ratios,
                note=f"{spread['slower_than_1.5_eager']} slower than 1.5 × eager; least: {worst['shape']}, "
                f"{short(worst['device_ms'])} beside {short(worst['eager_ms'])} ms")]


def of_collectives(found):
    cases = [("4 replicas of one process", "two threads that copy as many bytes", "two_threads_copying", found["local"])]
    cases += [(f"2 processes of 2 replicas, {name}", "Gloo alone, 2 processes", "gloo_alone", found["processes"][key])
              for name, key in (("shared memory", "shared_memory"), ("sockets", "sockets"))]
    return [row("collectives", what, "ms", short(case["collective_ms"]), {peer: short(case[f"{key}_ms"])},
                round(1 / case["ratio"], 2), case["rounds"]) for what, peer, key, case in cases]


def of_bucket(found):
    return [row("bucket", f"{found.get('store', 'gs')}://, an object of {found['bytes'] >> 20} MiB, {found['ranges']} ranges", "GB/s",
                found["sluice_gb_s"], {f"curl, {found['ranges']} processes": found["curl_processes_gb_s"],
                                       "curl --parallel": found["curl_parallel_gb_s"]},
                round(found["share_of_best_curl"], 2), found["rounds"])]


def of_read(found):
    kinds = (("of the processor", "samples_per_cpu_second"), ("of the clock", "samples_per_second"))
    return [row("read", f"{found['mode']}, per second {kind}", "samples/s", found[key]["sluice"],
                {"webdataset": found[key]["webdataset"]}, found[key]["ratio"], len(found["rounds"]["sluice"]))
            for kind, key in kinds]


def of_layers(found):
    what = f"{found['model']} at {found['image_size']}×{found['image_size']}, batch {found['batch_size']}"
    agree = "the three slowest of both are the same" if found["agree"] else "the three slowest are others"
    rows = []
    for name in found["slowest_in_step"]:
        times = found["convolutions"][name]
        rows.append(row("layers", f"{what}: {name}", "ms", short(times["in_step_ms"]), {"alone": short(times["alone_ms"])},
                        note=agree))
    return rows


PEERS_MODES = {"tar": "bytes of members", "pax": "bytes of members, each with a PAX header", "png": "PNG 32×32 to batches",
               "crop": "JPEG 500×375 → RandomResizedCrop 224"}


def of_peers(found):
    rates, what = found["samples_per_cpu_second"], PEERS_MODES[found["peers_mode"]]
    return [row("peers", what, "samples/s", rates["sluice"], {peer: rates[peer]}, ratio, found["rounds"],
                f"version {found['versions'][peer]}") for peer, ratio in found["times_as_fast"].items()]


def of_tokenize(found):
    rows = []
    for family, sides in found["families"].items():
        rates = sides["megabytes_per_cpu_second"]
        rows += [row("tokenize", f"{family}, {found['text']}", "MB/s", rates["sluice"], {peer: rates[peer]}, ratio, found["rounds"],
                     f"version {found['versions'][peer]}; words not seen before: {sides['first_pass']} MB/s")
                 for peer, ratio in sides["times_as_fast"].items()]
    return rows


def of_two_builds(found):
    rows = []
    for each in (one for one in found["rows"] if "step_ms" in one):
        step, compiling = each["step_ms"], each["compile_s"]
        what = f"{each['model']}{' ' + each['flags'] if each['flags'] else ''}, batch {each['batch_size']}"
        rows.append(row("two_builds", what, "ms", short(step["new"]), {found["old"]: short(step["old"])},
                        round(1 / step["new/old"], 2), found["turns"],
                        f"compiling {short(compiling['new'])} s, {found['old']} {short(compiling['old'])} s"))
    return rows


def of_cores(found):
    rates = found["samples_per_second"]
    return [row("cores", f"{found['mode']}, 2 decoding threads", "samples/s", rates["two"],
                {"1 decoding thread": rates["one"]}, found["two ÷ one"], note=f"two processes: {rates['apart']:,}")]


def of_spans(found):
    step = "resnet50 at 32×32, batch 32"
    share = f"of a step of {short(found['step_ms'])} ms"
    return [row("spans", "a span's site, no profile", "ns", short(found["site_ns"]), {}),
            row("spans", f"{step}: no profile", "%", float(f"{found['off_percent']:.2g}"), {},
                note=f"{found['spans_a_step']:g} spans, {share}"),
            row("spans", f"{step}: while one is taken", "%", short(found["on_percent"]), {}, rounds=found["rounds"], note=share),
            row("spans", f"{step}: a profile of 3 steps", "MB", short(found["profile_bytes"] / 1e6), {})]


def of_mesh_checkpoints(found):
    rows = []
    for one in found["mesh_checkpoints"]:
        where, save = f"{one['mesh']} in {one['processes']} processes", one["save"]
        fewest, largest = save["written_over_mean"]
        rows.append(row("mesh_save", where, "s", save["write_s"], {},
                        note=f"the longest step takes {save['stall_steps']} steps more; host memory {save['memory_over_shards']} "
                        f"× the blocks of a process; a process writes {fewest} to {largest} of the mean"))
        rows += [row("mesh_resume", f"{where}: {name}", "s", read["seconds"], {},
                     note=f"bytes read ÷ bytes of the blocks: {read['read_over_needed']}") for name, read in one["resume"].items()]
    return rows


def of_mesh_load(found):
    one = found["mesh_load"]
    rows = []
    for place in ("folder", "bucket"):
        found, what = one[place], f"a Llama of {one['weights_gb']:.3g} GB, fsdp={one['processes']}, from a {place}"
        asked = f"; {found['media_requests']} requests of all processes" if place == "bucket" else ""
        read = found.get("media_bytes_over_weights", found["read_over_blocks"])
        rows.append(row("mesh_load", what, "s", found["seconds"], {},
                        note=f"host memory above the blocks: {found['above_blocks_in_largest_tensors']} × the largest tensor; "
                        f"bytes read ÷ bytes of the blocks: {read}{asked}"))
    return rows


def of_decoding(found):
    rows = []
    for each in found:
        for name, ratio in each["ratios"].items():
            ours, peer = name.split(" ÷ ")
            bench = "augment" if ours == "jitter" else "batches" if peer == "webdataset" else "decode"
            rows.append(row(bench, each["set"], "samples/s", round(each["per_second"][ours]),
                            {peer: round(each["per_second"][peer])}, round(ratio, 2)))
    return rows


def rows_of(found):
    """Which bench printed this is seen by its names."""
    if isinstance(found, list):
        return of_decoding(found)
    if "steps" in found and "speed" in found:
        return of_gpu_kit(found)
    for name, rows in (("xla", of_step), ("distribution", of_convolutions), ("sluice_gb_s", of_bucket),
                       ("local", of_collectives), ("site_ns", of_spans), ("two ÷ one", of_cores), ("peers_mode", of_peers),
                       ("families", of_tokenize), ("two_builds", of_two_builds),
                       ("slowest_in_step", of_layers), ("mesh_checkpoints", of_mesh_checkpoints), ("mesh_load", of_mesh_load),
                       ("samples_per_cpu_second", of_read)):
        if name in found:
            return rows(found)
    if all(isinstance(shape, dict) for shape in found.values()):
        return of_operations(found)
    sys.exit(f"record.py: expected the JSON of a bench, found the names {', '.join(found)}")


def commit():
    return subprocess.run(["git", "-C", str(results.FOLDER), "describe", "--always", "--dirty", "--exclude=*"], check=True,
                          capture_output=True, text=True).stdout.strip()


def add(machine, rows, date, tree):
    """The machine's rows with these: in the place of those that measured the same, or at the end."""
    for new in rows:
        new = {**new, "date": date, "commit": tree}
        same = [i for i, old in enumerate(machine["rows"])
                if all(old[key] == new[key] for key in ("bench", "what")) and set(old["peers"]) == set(new["peers"])]
        if same:
            machine["rows"][same[0]] = new
        else:
            machine["rows"].append(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", help="the file's name in bench/results, without .json")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--name", help="of a new machine: the heading of its table")
    parser.add_argument("--about", help="of a new machine: cores, instruction set, versions")
    options = parser.parse_args()
    known = results.machines()
    machine = known.get(options.machine)
    if machine is None:
        if not options.name or not options.about:
            parser.error(f"{options.machine} is new: give --name and --about (known: {', '.join(known)})")
        machine = {"machine": options.name, "about": options.about, "order": len(known) + 1, "rows": []}
    rows = [one for file in options.files for one in rows_of(json.loads(file.read_text()))]
    add(machine, rows, datetime.date.today().isoformat(), commit())
    results.write(results.FOLDER / f"{options.machine}.json", machine)
    performance_page.main(only_check=False)
    print(f"{len(rows)} rows in bench/results/{options.machine}.json")


if __name__ == "__main__":
    main()
