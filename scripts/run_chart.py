"""scripts/run_chart.py METRICS OUT: draws loss and accuracy of a run, from its metrics.csv, as an SVG of 520x340.

docs/images/first_run.svg is a run of scripts/quickstart with --epochs 8 --log-steps 4 --target-accuracy 0, drawn by
scripts/run_chart.py out/run/metrics.csv docs/images/first_run.svg. The same table gives the same bytes.
"""

import csv
import math
import sys
from pathlib import Path

WIDTH, LEFT, RIGHT, PANEL = 520, 52, 14, 112
TRAIN, TEST = "#9fa8da", "#3949ab"


def column(rows, split, name):
    """[(x, value)] of the rows of a split that have the column; x is in epochs; steps count through all epochs."""
    last_step, last_epoch = max(float(row["step"]) for row in rows), max(float(row["epoch"]) for row in rows)
    points = []
    for row in rows:
        if row["split"] == split and row.get(name):
            at = float(row["step"]) / last_step * last_epoch if split == "train" else float(row["epoch"])
            points.append((at, float(row[name])))
    return points


def ticks(low, high):
    """Up to six round numbers from low to high."""
    power = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    step = next(step for step in (1, 2, 5, 10, 20, 50) if (high - low) / (step * power) <= 5 + 1e-9)
    first, last = math.ceil(low / (step * power) - 1e-9), math.floor(high / (step * power) + 1e-9)
    return [round(index * step * power, 9) for index in range(first, last + 1)]


def text(x, y, words, anchor="start", colour="#555"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def panel(top, title, epochs, low, high, lines):
    """A chart of several lines over the epochs: [(colour, width, label, points)]."""

    def place(point):
        x = LEFT + point[0] / epochs * (WIDTH - LEFT - RIGHT)
        share = min(max((point[1] - low) / (high - low), 0), 1)
        return f"{x:.1f},{top + PANEL - share * PANEL:.1f}"

    parts = [text(LEFT, top - 9, title, colour="#222")]
    for value in ticks(low, high):
        y = top + PANEL - (value - low) / (high - low) * PANEL
        parts += [f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>', text(LEFT - 7, y + 4.5, f"{value:g}", "end")]
    for colour, width, _, points in lines:
        drawn = " ".join(place(point) for point in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>')
    x = WIDTH - RIGHT
    for colour, _, label, _ in reversed(lines):
        parts.append(text(x, top - 9, label, "end", colour))
        x -= 9 * len(label) + 12
    return parts


def chart(rows):
    epochs = max(int(row["epoch"]) for row in rows)
    train, test = column(rows, "train", "loss"), column(rows, "test", "loss")
    accuracy = column(rows, "test", "accuracy")
    top = max(value for _, value in train + test)
    height = 2 * PANEL + 116
    body = panel(36, "loss", epochs, 0, top * 1.02, [(TRAIN, 2, "training", train), (TEST, 2.5, "test", test)])
    body += panel(36 + PANEL + 44, "accuracy of the test, %", epochs, 0, 100, [(TEST, 2.5, f"{accuracy[-1][1]:.1f} %", accuracy)])
    for epoch in ticks(0, epochs):
        if epoch == int(epoch):
            x = LEFT + epoch / epochs * (WIDTH - LEFT - RIGHT)
            body.append(text(x, height - 12, f"{epoch:g}" if epoch else "epoch 0", "middle" if epoch < epochs else "end"))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff" stroke="#ddd"/>', *body, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        drawn = chart(list(csv.DictReader(file)))
    Path(sys.argv[2]).write_text(drawn)
