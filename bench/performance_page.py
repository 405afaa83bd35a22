"""performance_page.py [--check]: the pages of what was measured, from bench/results.

bench/results/README.md has every row, and how each bench is run. docs/performance.md has, between its two marks, one table
for each machine: the newest figure of each bench, and the ratios of all its cases. --check only says whether the pages are
what would be written.
"""

import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ahead  # noqa: E402
import results  # noqa: E402

PAGE = Path(__file__).resolve().parent.parent / "docs/performance.md"
ALL_ROWS = results.FOLDER / "README.md"
BEGIN, END = "<!-- begin: bench/performance_page.py -->\n", "<!-- end -->\n"
COLUMNS = ("what", "Sluice", "compared with", "times as fast", "remarks")
SUMMARY = ("what", "case", "Sluice", "compared with", "times as fast", "measured")
MAX_WORDS = 2500
HEAD = """# What was measured

Every row that `bench/record.py` has recorded, one table for each machine. [performance_page.py](../performance_page.py)
writes this page from the JSON files next to it. [docs/performance.md](../../docs/performance.md) has the newest figure of
each bench, and says how to read a ratio. After ≈ a ratio is the quotient of two medians. Date and commit are in the
heading of a group, and in the remarks of a row with others.
"""


def number(value):
    if isinstance(value, list):
        return ", ".join(number(one) for one in value)
    if isinstance(value, (int, float)):
        return f"{value:,}"
    return value


def short_ratio(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:g}"


def rounded(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.3g}"


def ratio_text(row):
    ratio, is_quotient = results.ratio_of(row)
    if ratio is None:
        return ""
    if isinstance(ratio, str):
        return ratio
    text = ", ".join(f"{one:.2f}" for one in ratio) if isinstance(ratio, list) else short_ratio(ratio)
    return f"≈ {text}" if is_quotient else text


def ratios_of(row):
    """All ratios of a row as numbers."""
    ratio, _ = results.ratio_of(row)
    if isinstance(ratio, str):
        return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", ratio)]
    return [] if ratio is None else ratio if isinstance(ratio, list) else [ratio]


def ratios_text(shown, rows):
    """The ratio of the row that is shown; where there are others, the median of all ratios, the lowest and the highest."""
    ratios = [ratio for row in rows for ratio in ratios_of(row)]
    if len(rows) == 1 or not ratios:
        return "; ".join(filter(None, [ratio_text(shown), f"{len(rows)} cases" if len(rows) > 1 else ""]))
    return (f"{ratio_text(shown)}; {len(rows)} cases: {rounded(statistics.median(ratios))} "
            f"({rounded(min(ratios))} to {rounded(max(ratios))})")


def measured(row):
    return f"{row['date']}, {row['commit']}"


def sluice_text(row):
    return "" if row["sluice"] is None else f"{number(row['sluice'])} {row['unit']}"


def peers_text(row, between=" "):
    return "; ".join(name if value is None else f"{name}{between}{number(value)}" for name, value in row["peers"].items())


def table_row(row, when):
    """The row's cells; `when` is the date and commit in its group's heading."""
    remarks = [row.get("note", ""), f"{row['rounds']} rounds" if "rounds" in row else "",
               "" if measured(row) == when else measured(row)]
    return row["what"], sluice_text(row), peers_text(row), ratio_text(row), "; ".join(filter(None, remarks))


def head_of(columns):
    return ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]


def table(rows, benches):
    """Every row, in groups."""
    lines = head_of(COLUMNS)
    for key, bench in benches.items():
        of_bench = [row for row in rows if row["bench"] == key]
        if of_bench:
            dates = [measured(row) for row in of_bench]
            when = max(dates, key=dates.count)
            lines.append(f"| **{bench['title']}** ({when}) |" + " |" * (len(COLUMNS) - 1))
            lines += ["| " + " | ".join(table_row(row, when)) + " |" for row in of_bench]
    return "\n".join(lines)


def newest(rows):
    """The first row with the latest date."""
    latest = max(row["date"] for row in rows)
    return next(row for row in rows if row["date"] == latest)


def summary_row(title, row, ratios):
    return "| " + " | ".join((title, row["what"], sluice_text(row), peers_text(row, ": "), ratios, row["date"])) + " |"


def summary(rows, benches):
    """The newest figure of each bench; every case of the benches that benches.json gives "all_rows"."""
    lines = head_of(SUMMARY)
    for key, bench in benches.items():
        of_bench = [row for row in rows if row["bench"] == key]
        if of_bench and bench.get("all_rows"):
            lines += [summary_row(f"**{bench['title']}**" if i == 0 else "", row, ratio_text(row)) for i, row in enumerate(of_bench)]
        elif of_bench:
            shown = newest(of_bench)
            lines.append(summary_row(f"**{bench['title']}**", shown, ratios_text(shown, of_bench)))
    return "\n".join(lines)


def commands(benches):
    lines = ["## What is measured, and how", "", "| what | command | |", "| --- | --- | --- |"]
    for bench in benches.values():
        command = f"`{bench['command']}`" if "command" in bench else ""
        lines.append(f"| {bench['title']} | {command} | {bench['about']} |")
    return "\n".join(lines)


def tables(benches, make):
    return "".join(f"## {machine['machine']}\n\n{machine['about']}\n\n{make(machine['rows'], benches)}\n\n"
                   for machine in results.machines().values())


TPU_TITLE = "## Programs for TPUs, compared with JAX's\n\n"
TPU_TEXT = """What libtpu's compiler makes of a training step, divided by what it makes of JAX's: bytes moved to and from HBM /
memory, of one device. Below 1, Sluice needs less; nothing ran on a TPU. [ahead.py](../bench/ahead.py) compiles both;
[all figures](../bench/results/README.md) name causes of what is above 1.

"""
TPU_ALL_TEXT = """[ahead.py](../ahead.py) compiles both steps for the slices, with one compiler. Figures are of one device, Sluice's /
JAX's. HBM: bytes that the instructions of the optimized program move to and from it; exchanged: bytes of collectives;
compiling: seconds of the processor. A step has rows × tokens, or images, and f32 unless it says bf16. ResNet-50 and ViT-B/16
have images of 224×224, DCGAN of 64×64; transformer6 and ResNet-50 are those of `sluice bench step`, the LSTM has two layers
of 512, and RoBERTa predicts masked tokens; dropout is 0.1. JAX's steps are in [models.py](../tpu_programs/models.py) and
[jax_step.py](../jax_step.py). Random numbers of JAX are those of `unsafe_rbg`.

"""


def tpu_programs(text, table):
    rows = ahead.read(results.FOLDER / "tpu_programs.json")
    return f"{TPU_TITLE}{text}{table(rows)}\n\n" if rows else ""


def page(text):
    """docs/performance.md with fresh tables between its marks."""
    before, found, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found or not found_end:
        sys.exit(f"{PAGE}: expected the lines {BEGIN.strip()} and {END.strip()}; put them where the tables belong")
    return before + BEGIN + "\n" + tpu_programs(TPU_TEXT, ahead.table) + tables(results.benches(), summary) + END + after


def all_rows():
    """bench/results/README.md."""
    benches = results.benches()
    return f"{HEAD}\n{tables(benches, table)}{tpu_programs(TPU_ALL_TEXT, ahead.all_rows)}{commands(benches)}\n"


def main(only_check):
    wanted = {PAGE: page(PAGE.read_text()), ALL_ROWS: all_rows()}
    for path, text in wanted.items():
        if not only_check:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            sys.exit(f"{path} is not what bench/results says: run python3 bench/performance_page.py")
    words = len(wanted[PAGE].split())
    if only_check and words >= MAX_WORDS:
        sys.exit(f"{PAGE} has {words} words: expected fewer than {MAX_WORDS}; shorten its text, or take \"all_rows\" from a bench")
    if only_check:
        print(f"docs/performance.md and bench/results/README.md have the rows of {len(results.machines())} machines")


if __name__ == "__main__":
    main(sys.argv[1:] == ["--check"])
