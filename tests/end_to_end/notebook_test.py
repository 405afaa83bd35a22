"""notebook_test.py PROGRAM NOTEBOOK: the notebook runs in Jupyter, from its first cell to its last, and what it shows is right.

The cell with the tag `install` is left out: the build's own program is first on PATH instead of the wheel's. Needs
the packages of scripts/notebook-python.txt (notebook_test.sh installs them); without them the test is skipped.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

try:
    import ipykernel  # noqa: F401
    import matplotlib  # noqa: F401
    import nbclient
    import nbformat
except ImportError as missing:
    print(f"skipped: {missing}; notebook_test.sh installs what it needs")
    sys.exit(77)

DIGITS = Path(__file__).resolve().parents[2] / ".deps/digits/digits.csv.gz"


def texts_of(cell):
    """What a cell printed, and the kinds of what it displayed."""
    printed = "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
    kinds = {kind for output in cell.outputs if output.output_type == "display_data" for kind in output.data}
    return printed, kinds


def cell_with(notebook, words):
    found = [cell for cell in notebook.cells if cell.cell_type == "code" and words in cell.source]
    assert found, f"the notebook has no cell with {words}"
    return found[0]


def run(program, notebook, folder):
    os.environ.update(PATH=f"{program.parent}:{os.environ['PATH']}", DIGITS=str(DIGITS), MPLCONFIGDIR=str(folder / "mpl"),
                      IPYTHONDIR=str(folder / "ipython"), JUPYTER_RUNTIME_DIR=str(folder / "runtime"))
    install = [cell for cell in notebook.cells if "install" in cell.metadata.get("tags", [])]
    assert len(install) == 1 and "%pip install" in install[0].source, "expected one cell with the tag install"
    install[0].source = "pass"
    nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()


def check(notebook, folder):
    printed, _ = texts_of(cell_with(notebook, "sluice devices"))
    assert "xla:0" in printed, printed
    printed, _ = texts_of(cell_with(notebook, "sluice data digits"))
    assert "1,438 samples" in printed, printed
    charts = [cell for cell in notebook.cells if cell.cell_type == "code" and "plt.show()" in cell.source]
    charts += [cell_with(notebook, "losses, accuracy = show_curves")]
    assert len(charts) == 3 and all("image/png" in texts_of(cell)[1] for cell in charts), "a chart is missing"
    first, _ = texts_of(cell_with(notebook, "--epochs 2"))
    second, _ = texts_of(cell_with(notebook, "--resume"))
    assert "Epoch 1 test end" in first and "Epoch 2 test end" in first and "Epoch 3" not in first, first
    assert "Epoch 3 test end" in second and "Epoch 4 test end" in second and "Epoch 2 train end" not in second, second
    losses = [float(loss) for loss in re.findall(r"Step=\d+ Loss=([\d.]+)", first + second)]
    assert len(losses) == 16, losses
    assert sum(losses[-4:]) < sum(losses[:4]) * 0.7, f"the loss did not fall: {losses}"
    last, _ = texts_of(cell_with(notebook, "losses, accuracy = show_curves"))
    accuracy = re.fullmatch(r"accuracy after 2 epochs: ([\d.]+) %, after 4: ([\d.]+) %\n", last)
    assert accuracy and float(accuracy[2]) > 30, last
    assert (folder / "run/last/model.safetensors").exists()
    print(last, end="")


def main(program, path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        run(program, notebook, Path(folder))
        print(f"{time.monotonic() - started:.0f} s")
        check(notebook, Path(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
