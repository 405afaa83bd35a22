"""performance_page.py [--check]: the tables of docs/performance.md, from bench/results.

Writes what stands between the page's two marks; --check only says whether it is what would be written.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import results  # noqa: E402

PAGE = Path(__file__).resolve().parent.parent / "docs/performance.md"
BEGIN, END = "<!-- begin: bench/performance_page.py -->\n", "<!-- end -->\n"
COLUMNS = ("what", "Sluice", "beside it", "times as fast", "remarks")


def number(value):
    if isinstance(value, list):
        return ", ".join(number(one) for one in value)
    if isinstance(value, (int, float)):
        return f"{value:,}"
    return value


def ratio_text(row):
    ratio, is_quotient = results.ratio_of(row)
    if ratio is None:
        return ""
    if isinstance(ratio, str):
        return ratio
    text = ", ".join(f"{one:.2f}" for one in ratio) if isinstance(ratio, list) else (
        f"{ratio:.2f}" if ratio < 10 else f"{ratio:g}")
    return f"≈ {text}" if is_quotient else text


def measured(row):
    return f"{row['date']}, {row['commit']}"


def table_row(row, when):
    """The row's cells; `when` is what its group's heading says of date and commit."""
    unit = "" if row["sluice"] is None else f"{number(row['sluice'])} {row['unit']}"
    peers = "; ".join(name if value is None else f"{name} {number(value)}" for name, value in row["peers"].items())
    remarks = [row.get("note", ""), f"{row['rounds']} rounds" if "rounds" in row else "",
               "" if measured(row) == when else measured(row)]
    return row["what"], unit, peers, ratio_text(row), "; ".join(filter(None, remarks))


def table(rows, benches):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    for key, bench in benches.items():
        of_bench = [row for row in rows if row["bench"] == key]
        if of_bench:
            dates = [measured(row) for row in of_bench]
            when = max(dates, key=dates.count)
            lines.append(f"| **{bench['title']}** ({when}) |" + " |" * (len(COLUMNS) - 1))
            lines += ["| " + " | ".join(table_row(row, when)) + " |" for row in of_bench]
    return "\n".join(lines)


def commands(benches):
    lines = ["## What is measured, and how", "", "| what | command | |", "| --- | --- | --- |"]
    for bench in benches.values():
        command = f"`{bench['command']}`" if "command" in bench else ""
        lines.append(f"| {bench['title']} | {command} | {bench['about']} |")
    return "\n".join(lines)


def page(text):
    """The page with fresh tables between its marks."""
    before, found, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found or not found_end:
        sys.exit(f"{PAGE}: expected the lines {BEGIN.strip()} and {END.strip()}; put them where the tables belong")
    benches, parts = results.benches(), []
    for machine in results.machines().values():
        parts.append(f"## {machine['machine']}\n\n{machine['about']}\n\n{table(machine['rows'], benches)}\n\n")
    return before + BEGIN + "\n" + "".join(parts) + commands(benches) + "\n\n" + END + after


def main(only_check):
    text = PAGE.read_text()
    wanted = page(text)
    if only_check:
        if text != wanted:
            sys.exit("docs/performance.md is not what bench/results says: run python3 bench/performance_page.py")
        print(f"docs/performance.md has the rows of {len(results.machines())} machines")
        return
    PAGE.write_text(wanted)


if __name__ == "__main__":
    main(sys.argv[1:] == ["--check"])
