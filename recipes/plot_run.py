#!/usr/bin/env python3
"""plot_run.py METRICS.CSV FIGURE: draws the curves of a run of `sluice train` (needs matplotlib).

Left the loss of the training's lines and of the tests, right the accuracy in percent, both over the steps of all epochs.
"""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def column(rows, split, name):
    """(steps, values) of the rows of a split that have the column."""
    found = [(int(row["step"]), float(row[name])) for row in rows if row["split"] == split and row[name]]
    return list(zip(*found)) or [(), ()]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        rows = list(csv.DictReader(file))
    figure, (losses, accuracies) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    losses.plot(*column(rows, "train", "loss"), linewidth=1, label="training, a line of the log")
    losses.plot(*column(rows, "test", "loss"), "o", label="test, after each epoch")
    accuracies.plot(*column(rows, "train", "accuracy"), "o-", label="training, of the epoch")
    accuracies.plot(*column(rows, "test", "accuracy"), "o-", label="test, after each epoch")
    losses.set(ylabel="cross-entropy", ylim=(0, None))
    accuracies.set(ylabel="accuracy, %", ylim=(0, 100))
    for axes in (losses, accuracies):
        axes.set(xlabel="step", xlim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
