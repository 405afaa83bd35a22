"""profile_readers.py FOLDER: the profiles in FOLDER/one, FOLDER/four and FOLDER/tpu.pb through xprof's own readers."""

import csv
import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path

from xprof.convert import raw_to_tool_data
from xprof.profile_data import ProfileData

work = Path(sys.argv[1])
failures = []


def check(condition, what):
    print(("ok " if condition else "FAILED ") + what, flush=True)
    if not condition:
        failures.append(what)


def files(name, ending):
    return sorted(str(path) for path in (work / name).glob(f"plugins/profile/*/*{ending}"))


def steps_of(data):
    """(number, start, duration) of each step, in nanoseconds."""
    return [(int(dict(event.stats)["step_num"]), event.start_ns, event.duration_ns)
            for plane in data.planes for line in plane.lines for event in line.events
            if "_r" in dict(event.stats)]


def overview(paths):
    page, _ = raw_to_tool_data.xspace_to_tool_data(paths, "overview_page", {})
    return json.loads(page)


# One process: three steps, their average is ours, and no reader misses anything.
paths = files("one", ".xplane.pb")
check(len(paths) == 1, "one file of one process")
data = ProfileData.from_file(paths[0])
steps = steps_of(data)
check([number for number, _, _ in steps] == [10, 11, 12], f"the steps are 10, 11 and 12 ({steps})")
check([plane.name for plane in data.planes] == ["/host:CPU"], "no device plane is invented")
page = overview(paths)
text = json.dumps(page)
check("step marker" not in text.lower(), "xprof's overview page does not miss step markers")
steps_table = page[1]
check(len(steps_table["rows"]) == 3, "the overview page has three steps")
average = float(steps_table["p"]["host_compute_time_ms_avg"])
ours = sum(duration for _, _, duration in steps) / 3e6
check(abs(average - ours) <= max(0.05 * ours, 0.1), f"its average is {average} ms, ours {ours:.3f}")
with open(work / "one/metrics.csv") as file:
    logged = [float(row["step_p50_ms"]) for row in csv.DictReader(file) if row["step"] in ("10", "11", "12") and row["step_p50_ms"]]
check(len(logged) == 3, f"the log has the times of these steps ({logged})")
mean = sum(logged) / len(logged)
# The host's clock is between them: on a busy machine they differ.
check(abs(average - mean) <= max(0.35 * mean, 3), f"the log's average is {mean:.3f} ms")
words = Path(files("one", ".txt")[0]).read_text()
check(f"Steps 10 to 12: {ours:.3f} ms each" in words, "the page in words says the same")

# The calls of kernels by layer, on their own line.
calls = [event for plane in data.planes for line in plane.lines if line.name == "xla:0, library kernels" for event in line.events]
check({"conv1, forward", "conv1, backward"} <= {event.name for event in calls}, f"{len(calls)} calls of kernels have their layers' names")
layers = json.loads(Path(files("one", ".layers.json")[0]).read_text())
check(abs(layers["ms"] - ours) < 1e-3, f"the table by layer is of the same steps ({layers['ms']:.3f} ms)")
total = sum(row["ms"] for row in layers["rows"]) + layers["no_program_ms"]
check(abs(total - ours) < 1e-3, f"its rows and the time without a program are the step ({total:.3f} ms)")
in_line = sum(event.duration_ns for event in calls) / 3e6
check(in_line >= 0.5 * layers["layers_ms"], f"the line has {in_line:.3f} ms a step, the table {layers['layers_ms']:.3f}")

# The same spans in the file for Perfetto.
trace = json.loads(gzip.decompress(Path(files("one", ".trace.json.gz")[0]).read_bytes()), parse_float=Decimal)
spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
events = sum(1 for plane in data.planes for line in plane.lines for _ in line.events)
check(len(spans) == events, f"both files have {events} spans")
main = {event["tid"] for event in spans if event["name"] == "step"}
check(len(main) == 1, "the steps are on one thread")


def is_nested(thread):
    open_until = []
    for event in sorted((e for e in spans if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        if open_until and event["ts"] + event["dur"] > open_until[-1]:
            return False
        open_until.append(event["ts"] + event["dur"])
    return True


check(all(is_nested(thread) for thread in {event["tid"] for event in spans}), "spans lie within each other or apart")
covered = float(words.split("The thread that trains, a step: ")[1].split(" %")[0])
check(covered >= 90, f"{covered} % of a step has a name")

# Four processes: four files with the same steps, which begin together.
paths = files("four", ".xplane.pb")
check(len(paths) == 4 and len({Path(path).parent for path in paths}) == 1, "four files of four processes in one folder")
starts = {}
for path in paths:
    found = steps_of(ProfileData.from_file(path))
    check([number for number, _, _ in found] == [10, 11, 12], f"{Path(path).name} has the steps 10, 11 and 12")
    starts[path] = found
rows = overview(paths)[1]["rows"]
# It keeps the steps that overlap in time on all hosts, and these are short.
check(len(rows) >= 1, f"xprof joins them ({[row['c'][0] for row in rows]})")
begins = [min(start for _, start, _ in found) for found in starts.values()]
print(f"their first steps begin within {(max(begins) - min(begins)) / 1e6:.3f} ms")

# A plugin's own profile, alone and behind ours.
tpu = work / "tpu.pb"
if tpu.exists():
    device = tpu.read_bytes()
    planes = [plane.name for plane in ProfileData.from_serialized_xspace(device).planes]
    check(len(planes) > 0, f"libtpu's planes: {planes}")
    joined = ProfileData.from_serialized_xspace(Path(files('one', '.xplane.pb')[0]).read_bytes() + device)
    names = [plane.name for plane in joined.planes]
    check(names == ["/host:CPU", *planes], "joined with ours they are one XSpace")
    check(len(steps_of(joined)) >= 3, "which still has the steps")
else:
    print("left out: libtpu is not installed")

sys.exit(bool(failures))
