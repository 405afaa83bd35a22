"""The measured results in bench/results: one JSON file a machine, and benches.json, which says what the benches are
(tpu_programs.json is bench/ahead.py's).

A machine's file has its name, a line about it, its place on the page and rows. A row has "bench" (a key of benches.json),
"what" was measured, "unit", "sluice" and "peers" (names with their values; a value is a number, some numbers of one kind
of measurement each, or null where only the ratio is known), "date" and "commit" (that of the tree that was measured, or
of the change that first wrote the figure down); it may have "ratio" (the median over the rounds of how many times as
fast as the best peer Sluice was), "rounds" and a "note". A bench with "all_rows" has every case on docs/performance.md,
the others only the newest one.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"
REQUIRED = {"bench", "what", "unit", "sluice", "peers", "date", "commit"}
OPTIONAL = {"ratio", "rounds", "note"}
LESS_IS_FASTER = {"ms", "s"}


def benches():
    return json.loads((FOLDER / "benches.json").read_text())


def machines():
    """{key: its file's contents}, in the page's order."""
    found = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json") if path.stem not in ("benches", "tpu_programs")}
    for key, machine in found.items():
        for row in machine["rows"]:
            check(key, row)
    return dict(sorted(found.items(), key=lambda item: item[1]["order"]))


def check(key, row):
    names = set(row)
    if not REQUIRED <= names <= REQUIRED | OPTIONAL or row["bench"] not in benches():
        raise ValueError(f"{key}.json: expected {sorted(REQUIRED)}, maybe {sorted(OPTIONAL)}, and a bench of "
                         f"benches.json; found {row}")


def ratio_of(row):
    """(how many times as fast as the best peer, whether that is a quotient of two medians); (None, False) if unknown."""
    if "ratio" in row:
        return row["ratio"], False
    ours, theirs = row["sluice"], [value for value in row["peers"].values() if value is not None]
    if ours is None or not theirs:
        return None, False

    def quotient(a, b):
        return b / a if row["unit"] in LESS_IS_FASTER else a / b

    if isinstance(ours, list):
        return [round(quotient(a, b), 2) for a, b in zip(ours, theirs[0])], True
    best = min(theirs) if row["unit"] in LESS_IS_FASTER else max(theirs)
    return round(quotient(ours, best), 2), True


def write(path, machine):
    """One row a line, so that a change of one figure is a change of one line."""
    head = {key: value for key, value in machine.items() if key != "rows"}
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in head.items()]
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in machine["rows"])
    path.write_text("{\n" + "\n".join(lines) + '\n "rows": [\n' + rows + "\n ]\n}\n")
