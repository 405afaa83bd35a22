"""Reads with Python's packages what the program wrote. See readers_test.sh."""
import csv
import glob
import io
import os
import sys
import urllib.parse

import PIL.Image
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
        check(isinstance(exported, dict), "the export is not a dict")
        same(exported, safetensors.torch.load_file(os.path.join(work, model, checkpoint, "model.safetensors")), model)
    resnet = torch.load(os.path.join(work, "resnet.pt"), weights_only=True)
    check(resnet["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1), "the export's shapes")
    check(resnet["bn1.num_batches_tracked"].item() == 1, "the export's integers")
    events(os.path.join(work, "mlp"))
    hyper_parameters(os.path.join(work, "mlp"))
    pages(os.path.join(work, "mlp"))
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


def once(folder):
    """Each step of each curve once, whatever was resumed how often, in both of TensorBoard's readers."""
    from tensorboard.backend.event_processing import plugin_event_accumulator

    check(len(glob.glob(os.path.join(folder, "events.out.tfevents.*"))) == 3, "three starts")
    accumulator = EventAccumulator(folder)
    accumulator.Reload()
    other = plugin_event_accumulator.EventAccumulator(folder)
    other.Reload()
    for tag in accumulator.Tags()["scalars"]:
        for steps in ([e.step for e in accumulator.Scalars(tag)], [e.step for e in other.Tensors(tag)]):
            check(steps == sorted(set(steps)) and steps[-1] == 18, f"{tag} has the steps {steps}")


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


def pages(folder):
    """What TensorBoard's own plugins show on the pages IMAGES, HISTOGRAMS and TEXT."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.histogram.histograms_plugin import HistogramsPlugin
    from tensorboard.plugins.histogram.summary_v2 import histogram_pb
    from tensorboard.plugins.image.images_plugin import ImagesPlugin
    from tensorboard.util import tensor_util

    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"images": 0, "histograms": 0, "text": 0})
    multiplexer.AddRun(folder, "run")
    multiplexer.Reload()
    context = base_plugin.TBContext(logdir=folder, multiplexer=multiplexer,
                                    data_provider=data_provider.MultiplexerDataProvider(multiplexer, folder))
    ask = RequestContext()

    plugin = HistogramsPlugin(context)
    weights = safetensors.torch.load_file(os.path.join(folder, "last", "model.safetensors"))
    shown = plugin.index_impl(ask, experiment="")["run"]
    check(set(shown) == {"weights/" + name for name in weights}, f"histograms: {set(shown)}")
    for name, weight in weights.items():
        series, _ = plugin.histograms_impl(ask, "weights/" + name, "run", experiment="", downsample_to=100)
        check([point[1] for point in series] == [0, 6, 12, 18], f"steps of the histograms: {[p[1] for p in series]}")
        wanted = tensor_util.make_ndarray(histogram_pb("", weight.numpy()).value[0].tensor)
        got = torch.tensor(series[-1][2], dtype=torch.float64)
        check(got.shape == wanted.shape and (got - torch.from_numpy(wanted)).abs().max() < 1e-9, f"the buckets of {name}")

    plugin = ImagesPlugin(context)
    images = plugin._index_impl(ask, experiment="")["run"]
    check(set(images) == {f"test/{i}" for i in range(5)}, f"images: {set(images)}")
    answers = {}
    for event in multiplexer.Tensors("run", "test/answers"):
        answers[event.step] = [[cell.strip() for cell in line.split("|")[1:-1]]
                               for line in event.tensor_proto.string_val[0].decode().splitlines()[2:]]
    check(sorted(answers) == [6, 12, 18] and all(len(rows) == 5 for rows in answers.values()), f"answers: {answers}")
    for i in range(5):
        entries = plugin._image_response_for_run(ask, "", "run", f"test/{i}", 0)
        check([entry["step"] for entry in entries] == [6, 12, 18], f"steps of the images: {entries}")
        for entry in entries:
            data = plugin._get_generic_data_individual_image(ask, urllib.parse.parse_qs(entry["query"])["blob_key"][0])
            with PIL.Image.open(io.BytesIO(data)) as image:
                check(image.mode == "RGB" and image.size == (36, 36), f"{image.mode} {image.size}")
                red, green, blue = image.getpixel((0, 0))
                check(image.getpixel((35, 35)) == (red, green, blue) != image.getpixel((18, 18)), "the frame")
            _, label, answer, share = answers[entry["step"]][i]
            check((green > red) == (label == answer) and 1 / 3 <= float(share) <= 1, f"image {i}: {label} {answer} {share}")


if sys.argv[1] == "read":
    read(sys.argv[2])
elif sys.argv[1] == "once":
    once(sys.argv[2])
else:
    same(torch.load(sys.argv[2], weights_only=True), torch.load(sys.argv[3], weights_only=True), sys.argv[3])
