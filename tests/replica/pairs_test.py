"""pairs_test.py PROGRAM POD_PLUGIN [--all]: a run is saved in the middle of an epoch on one mesh, and goes on on another.

A small Llama trains on running text, whose batches are the same on any devices. So the losses of all steps must be those
of one device that was never stopped: a sample that is lost or repeated would change them. --all: twelve pairs, else two.
"""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from mesh_runs import check, failures, last, losses, position, same_values, train, work

HALF, WHOLE = 3, 6  # steps


class Devices(NamedTuple):
    mesh: str  # "": replicas, or one device
    processes: int = 1
    devices: int = 1  # of each process
    slices: int = 1

    def __str__(self):
        count = self.processes * self.devices
        what = self.mesh or ("one device" if count == 1 else f"{count} replicas")
        slices = f", {self.slices} slices" if self.slices > 1 else ""
        return what if count == 1 else f"{what} in {self.processes} of {self.devices}{slices}"


ONE = Devices("")
FSDP_1, FSDP_2, FSDP_4 = Devices("fsdp=4", 1, 4), Devices("fsdp=4", 2, 2), Devices("fsdp=4", 4)
TENSOR_1, TENSOR_2 = Devices("fsdp=2,tensor=2", 1, 4), Devices("fsdp=2,tensor=2", 2, 2)
TENSOR_SLICES = Devices("data=2,tensor=2", 4, slices=2)
SEQUENCE_1, SEQUENCE_2 = Devices("sequence=4", 1, 4), Devices("fsdp=2,sequence=2", 2, 2)
SEQUENCE_SLICES = Devices("data=2,sequence=2", 4, slices=2)
DATA_4, DATA_SLICES, DATA_SLICES_4 = Devices("data=4", 4), Devices("data=2,fsdp=2", 2, 2, 2), Devices("data=2,fsdp=2", 4, 1, 2)
REPLICAS_2, REPLICAS_4 = Devices("", 2, 2), Devices("", 4)

FEW = [(TENSOR_2, SEQUENCE_2), (REPLICAS_2, DATA_SLICES_4)]
PAIRS = FEW + [
    (ONE, FSDP_4), (FSDP_2, ONE), (FSDP_4, TENSOR_2), (TENSOR_SLICES, FSDP_1), (SEQUENCE_2, TENSOR_SLICES),
    (SEQUENCE_1, REPLICAS_2), (DATA_SLICES, SEQUENCE_SLICES), (DATA_4, DATA_SLICES), (REPLICAS_4, TENSOR_1),
    (DATA_SLICES_4, REPLICAS_4)]


def run(folder, on, until):
    replicas = on.processes * on.devices if not on.mesh else 1
    return train(folder, on.mesh, on.processes, on.devices, until, slices=on.slices, scenario="words", replicas=replicas)


def close(found, wanted):
    return bool(wanted) and found.keys() == wanted.keys() and all(
        abs(found[step] - wanted[step]) <= 1e-5 * abs(wanted[step]) for step in wanted)


whole = Path(work.name) / "whole"
status, output = run(whole, ONE, WHOLE)
check(status == [0] and list(losses(whole)) == list(range(1, WHOLE + 1)), "one device trains all steps", output)
wanted = losses(whole)
for number, (saved, going_on) in enumerate(PAIRS if "--all" in sys.argv else FEW):
    folder = Path(work.name) / str(number)
    status, output = run(folder, saved, HALF)
    epoch, batch, step = position(folder)
    check(status == [0] * saved.processes and (epoch, batch, step) == (0, HALF, HALF),
          f"{saved} saves in the middle of an epoch", (output, epoch, batch, step))
    status, output = run(folder, going_on, WHOLE)
    what = f"{saved} → {going_on}"
    check(status == [0] * going_on.processes and f"step {HALF}" in output, f"{what}: it goes on", output)
    check(close(losses(folder), wanted), f"{what}: the losses", (losses(folder), wanted))
    check(same_values(folder, whole) and position(folder) == position(whole),
          f"{what}: the weights, the optimizer's state and the next batch", (position(folder), position(whole)))
    shutil.rmtree(folder)

sys.exit(1 if failures else 0)
