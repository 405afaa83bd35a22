"""Reads with Python's packages what the program wrote. See readers_test.sh."""
import csv
import glob
import os
import sys

import safetensors.torch
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def same(a, b, what):
    check(set(a) == set(b), f"{what}: other names")
    for name in a:
        check(a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), f"{what}: {name} differs")


def read(work):
    for model, checkpoint in [("resnet", "last"), ("mlp", "best")]:
        exported = torch.load(os.path.join(work, model + ".pt"), weights_only=True)
        check(isinstance(exported, dict), "the export is no dict")
        same(exported, safetensors.torch.load_file(os.path.join(work, model, checkpoint, "model.safetensors")), model)
    resnet = torch.load(os.path.join(work, "resnet.pt"), weights_only=True)
    check(resnet["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1), "the export's shapes")
    check(resnet["bn1.num_batches_tracked"].item() == 1, "the export's integers")
    events(os.path.join(work, "mlp"))
    weights = torch.load(os.path.join(work, "mlp.pt"), weights_only=True)
    weights = {name: torch.randn_like(t) for name, t in weights.items()}

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = torch.nn.Linear(weights["fc1.weight"].shape[1], 1024)
            self.fc2 = torch.nn.Linear(1024, 1024)
            self.fc = torch.nn.Linear(1024, 3)

    net = Net()
    net.load_state_dict(weights)
    torch.save(net.state_dict(), os.path.join(work, "from_python.pt"))
    safetensors.torch.save_file(net.state_dict(), os.path.join(work, "from_python.safetensors"))


def events(folder):
    check(len(glob.glob(os.path.join(folder, "events.out.tfevents.*"))) == 1, "one event file")
    accumulator = EventAccumulator(folder)
    accumulator.Reload()
    tags = set(accumulator.Tags()["scalars"])
    wanted = {"Rate_step", "examples/sec", "LearningRate", "Accuracy/test", "Accuracy/train", "Global Rate", "Loss"}
    check(wanted <= tags, f"curves {wanted - tags} are missing")
    with open(os.path.join(folder, "metrics.csv")) as file:
        rows = list(csv.DictReader(file))
    for tag, split, column in [("Loss", "train", "loss"), ("Accuracy/test", "test", "accuracy"),
                               ("Accuracy/train", "train", "accuracy"), ("LearningRate", "train", "learning_rate")]:
        curve = [(e.step, e.value) for e in accumulator.Scalars(tag)]
        table = [(int(r["step"]), float(r[column])) for r in rows if r["split"] == split and r[column]]
        check(len(curve) == len(table) > 1, f"{tag}: {len(curve)} points, {len(table)} rows")
        for (step, value), (row_step, row_value) in zip(curve, table):
            check(step == row_step and abs(value - row_value) <= 1e-6 * max(1, abs(row_value)), f"{tag} at {step}")


if sys.argv[1] == "read":
    read(sys.argv[2])
else:
    same(torch.load(sys.argv[2], weights_only=True), torch.load(sys.argv[3], weights_only=True), sys.argv[3])
