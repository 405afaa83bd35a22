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
    hyper_parameters(os.path.join(work, "mlp"))
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


def hyper_parameters(folder):
    """What TensorBoard's HPARAMS and TEXT pages have of the run."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
    from tensorboard.plugins.hparams import metadata

    infos, texts = {}, {}
    reader = PyRecordReader_New(glob.glob(os.path.join(folder, "events.out.tfevents.*"))[0])
    while True:
        try:
            reader.GetNext()
        except Exception:  # its way of saying that the file has ended
            break
        for value in event_pb2.Event.FromString(reader.record()).summary.value:
            plugin = value.metadata.plugin_data
            if plugin.plugin_name == "hparams":
                infos[value.tag] = plugin.content
            elif plugin.plugin_name == "text":
                texts[value.tag] = value.tensor.string_val[0].decode()
    start = metadata.parse_session_start_info_plugin_data(infos[metadata.SESSION_START_INFO_TAG])
    end = metadata.parse_session_end_info_plugin_data(infos[metadata.SESSION_END_INFO_TAG])
    check(start.hparams["model"].string_value == "mlp", f"the model of the parameters: {start}")
    check(start.hparams["lr"].number_value > 0 and start.start_time_secs > 1e9, f"numbers of the parameters: {start}")
    check(end.status == 1 and end.end_time_secs >= start.start_time_secs, f"the end of the run: {end}")
    check("model" in texts["options"], f"the options: {texts}")


if sys.argv[1] == "read":
    read(sys.argv[2])
else:
    same(torch.load(sys.argv[2], weights_only=True), torch.load(sys.argv[3], weights_only=True), sys.argv[3])
