#!/usr/bin/env python3
"""How fast shards are read and decoded on one core, beside the readers that Python has.

  python3 bench/peers.py prepare FOLDER [--png 20000] [--jpeg 1500]
  python3 bench/peers.py compare MODE FOLDER --program build/release/bench/bench_data_read [--rounds 3] [--seconds 3]
  python3 bench/peers.py read PEER MODE FOLDER [--seconds 3]

MODE: tar   the members' bytes as they are: images of about 2.2 kB, and their classes
      pax   the same from archives that have a PAX header for each member, as webdataset's writers make them unless they
            are given a whole number as time
      png   PNG files of 32×32 to uint8 batches of 128
      crop  JPEG files of 500×375, about 110 kB, to RandomResizedCrop 224 and a mirror for half, uint8 batches of 128

`prepare` writes the same samples in the format of each peer that is there; `compare` runs all sides in turns, each in a
process of its own on core 0, and prints JSON: medians of samples per second of the processor (threads included, start
and import not), and how many times as fast Sluice is. The peers go into an environment of their own:

  python3 -m venv ~/peers && ~/peers/bin/pip install -r bench/peers.txt && ~/peers/bin/python bench/peers.py …
"""

import argparse
import importlib.metadata
import importlib.util
import io
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

BATCH = 128
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")


def kind(mode):
    return "jpg" if mode == "crop" else "png"


def decoded(data, mode):
    """As a NumPy array, by Pillow."""
    import numpy
    from PIL import Image
    from webdataset_decode import resized_crop

    image = Image.open(io.BytesIO(data)).convert("RGB")
    if mode == "crop":
        image = Image.fromarray(resized_crop(image))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
    return numpy.asarray(image)


def stacked(samples, mode):
    """From (bytes, class) to the number of samples in each batch, or in each sample where nothing is decoded."""
    import numpy

    images = []
    for data, label in samples:
        if mode == "tar":
            yield 1
            continue
        images.append(decoded(data, mode))
        int(label)
        if len(images) == BATCH:
            numpy.stack(images)
            yield BATCH
            images = []


class Webdataset:
    package = "webdataset"
    archives = True
    mtime = 0

    def write(self, folder, extension, samples):
        import webdataset

        with webdataset.ShardWriter(str(folder / "%04d.tar"), maxcount=2000, verbose=0, mtime=self.mtime) as writer:
            for index, (data, label) in enumerate(samples):
                writer.write({"__key__": f"{index:07d}", extension: data, "cls": str(label)})

    def epoch(self, folder, mode):
        import webdataset

        shards = sorted(str(path) for path in folder.glob("*.tar"))
        data = webdataset.WebDataset(shards, shardshuffle=False).to_tuple(kind(mode), "cls")
        return stacked(data, mode)


class Streaming:
    package = "streaming"

    def write(self, folder, extension, samples):
        from streaming import MDSWriter

        with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
            for data, label in samples:
                writer.write({"image": data, "label": label})

    def epoch(self, folder, mode):
        from streaming import StreamingDataset

        data = StreamingDataset(local=str(folder), shuffle=False, batch_size=BATCH)
        return stacked(((sample["image"], sample["label"]) for sample in data), mode)


class Grain:
    package = "grain"

    def write(self, folder, extension, samples):
        from array_record.python.array_record_module import ArrayRecordWriter

        writer = ArrayRecordWriter(str(folder / "0000.array_record"), "group_size:1")
        for data, label in samples:
            writer.write(bytes([label]) + data)
        writer.close()

    def epoch(self, folder, mode):
        import grain.python as grain

        source = grain.ArrayRecordDataSource([str(path) for path in folder.glob("*.array_record")])
        sampler = grain.SequentialSampler(len(source), shard_options=grain.NoSharding())
        loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=0)
        return stacked(((record[1:], record[0]) for record in loader), mode)


class TensorFlow:
    package = "tensorflow"

    def write(self, folder, extension, samples):
        import tensorflow as tf

        with tf.io.TFRecordWriter(str(folder / "0000.tfrecord")) as writer:
            for data, label in samples:
                features = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())

    def epoch(self, folder, mode):
        import tensorflow as tf

        def parsed(record):
            return tf.io.parse_example(record, {"image": tf.io.FixedLenFeature([], tf.string),
                                                "label": tf.io.FixedLenFeature([], tf.int64)})

        def image(one):
            if mode == "png":
                return tf.io.decode_png(one["image"], channels=3), one["label"]
            box = tf.image.sample_distorted_bounding_box(
                tf.io.extract_jpeg_shape(one["image"]), tf.zeros([0, 0, 4]), area_range=(0.08, 1),
                aspect_ratio_range=(3 / 4, 4 / 3), use_image_if_no_bounding_boxes=True)
            window = tf.concat([box[0][:2], box[1][:2]], 0)
            pixels = tf.io.decode_and_crop_jpeg(one["image"], window, channels=3)
            pixels = tf.image.random_flip_left_right(tf.image.resize(pixels, [224, 224]))
            return tf.cast(pixels, tf.uint8), one["label"]

        data = tf.data.TFRecordDataset([str(path) for path in folder.glob("*.tfrecord")])
        options = tf.data.Options()
        options.threading.private_threadpool_size = 1
        options.threading.max_intra_op_parallelism = 1
        if mode == "tar":
            data = data.batch(BATCH).map(parsed)
        else:
            data = data.map(lambda record: image(tf.io.parse_single_example(
                record, {"image": tf.io.FixedLenFeature([], tf.string),
                         "label": tf.io.FixedLenFeature([], tf.int64)}))).batch(BATCH)
        for batch in data.with_options(options):
            yield int((batch["label"] if mode == "tar" else batch[1]).shape[0])


class Dali(Webdataset):
    package = "nvidia.dali"

    def write(self, folder, extension, samples):
        super().write(folder, extension, samples)
        for shard in sorted(folder.glob("*.tar")):
            self.index(shard)

    def index(self, shard):
        """The file that DALI's wds2idx writes."""
        import tarfile

        samples = {}
        with tarfile.open(shard) as archive:
            for member in archive:
                key, extension = member.name.split(".", 1)
                samples.setdefault(key, []).append(f"{extension} {member.offset_data} {member.size} {member.name}")
        lines = [f"v1.2 {len(samples)}", *(" ".join(members) for members in samples.values())]
        shard.with_suffix(".idx").write_text("\n".join(lines) + "\n")

    def epoch(self, folder, mode):
        from nvidia.dali import fn, pipeline_def, types

        shards = sorted(str(path) for path in folder.glob("*.tar"))

        @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipeline():
            data, label = fn.readers.webdataset(paths=shards, index_paths=[shard[:-3] + "idx" for shard in shards],
                                                ext=[kind(mode), "cls"], name="reader", missing_component_behavior="error")
            if mode == "png":
                data = fn.decoders.image(data, device="cpu", output_type=types.RGB)
            elif mode == "crop":
                data = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB,
                                                     random_area=[0.08, 1], random_aspect_ratio=[3 / 4, 4 / 3])
                data = fn.resize(data, resize_x=224, resize_y=224, interp_type=types.INTERP_LINEAR)
                data = fn.flip(data, horizontal=fn.random.coin_flip())
            return data, label

        pipe = pipeline()
        pipe.build()
        for _ in range(pipe.reader_meta("reader")["epoch_size"] // BATCH):
            pipe.run()
            yield BATCH


class Litdata:
    package = "litdata"

    def write(self, folder, extension, samples):
        from litdata.streaming.writer import BinaryWriter

        writer = BinaryWriter(str(folder), chunk_bytes="32MB")
        for index, (data, label) in enumerate(samples):
            writer[index] = {"image": data, "label": label}
        writer.done()
        writer.merge()

    def epoch(self, folder, mode):
        from litdata import StreamingDataset

        data = StreamingDataset(str(folder), shuffle=False)
        return stacked(((sample["image"], sample["label"]) for sample in data), mode)


PEERS = {"webdataset": Webdataset, "MosaicML Streaming": Streaming, "Grain": Grain, "tf.data": TensorFlow,
         "DALI (CPU)": Dali, "litdata": Litdata}


def is_there(peer):
    try:
        return importlib.util.find_spec(PEERS[peer].package) is not None
    except ModuleNotFoundError:
        return False


def folder_of(folder, peer, mode):
    return Path(folder) / ("pax" if mode == "pax" else kind(mode)) / PEERS[peer].__name__.lower()


def peers_of(mode):
    """Those that are there, and have such files."""
    return [peer for peer in PEERS if is_there(peer) and (mode != "pax" or hasattr(PEERS[peer], "archives"))]


def prepare(args):
    import webdataset_read

    for mode, count in ("tar", args.png), ("pax", args.png), ("crop", args.jpeg):
        samples = [(data, index % 10) for index, data in webdataset_read.images(count, mode == "crop")]
        for peer in peers_of(mode):
            folder = folder_of(args.folder, peer, mode)
            if folder.exists():
                continue
            folder.mkdir(parents=True)
            writer = PEERS[peer]()
            if mode == "pax":
                writer.mtime = None
            writer.write(folder, kind(mode), samples)


def read(args):
    peer = PEERS[args.peer]()
    folder = folder_of(args.folder, args.peer, args.mode)
    if args.mode == "pax":
        args.mode = "tar"
    next(iter(peer.epoch(folder, args.mode)))  # imports, and files into the page cache
    samples, start, begun = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < args.seconds:
        for count in peer.epoch(folder, args.mode):
            samples += count
            if time.perf_counter() - start >= args.seconds:
                break
    print(json.dumps({"samples_per_cpu_second": samples / (time.process_time() - begun)}))


def rate(command):
    output = subprocess.run(["taskset", "-c", "0", *command], check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])["samples_per_cpu_second"]


def compare(args):
    shards = f"{folder_of(args.folder, 'webdataset', args.mode)}/*.tar"
    ours = {"tar": "tar", "pax": "tar", "png": "png", "crop": "imagenet"}[args.mode]
    sides = {"sluice": [args.program, ours, shards, "--threads", "1", "--seconds", str(args.seconds)]}
    for peer in args.peers or peers_of(args.mode):
        sides[peer] = [sys.executable, __file__, "read", peer, args.mode, args.folder, "--seconds", str(args.seconds)]
    rounds = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, command in sides.items():
            rounds[side].append(rate(command))
    rates = {side: statistics.median(values) for side, values in rounds.items()}
    packages = importlib.metadata.packages_distributions()
    versions = {peer: importlib.metadata.version(packages[PEERS[peer].package.split(".")[0]][0]) for peer in rates
                if peer != "sluice"}
    times = {peer: round(statistics.median(a / b for a, b in zip(rounds["sluice"], rounds[peer])), 2) for peer in versions}
    print(json.dumps({"peers_mode": args.mode, "rounds": args.rounds, "times_as_fast": times, "versions": versions,
                      "samples_per_cpu_second": {side: round(value) for side, value in rates.items()}}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("prepare")
    one.add_argument("folder")
    one.add_argument("--png", type=int, default=20000)
    one.add_argument("--jpeg", type=int, default=1500)
    one.set_defaults(run=prepare)
    for name, function in (("compare", compare), ("read", read)):
        one = verbs.add_parser(name)
        if name == "read":
            one.add_argument("peer", choices=PEERS)
        one.add_argument("mode", choices=("tar", "pax", "png", "crop"))
        one.add_argument("folder")
        one.add_argument("--seconds", type=float, default=3)
        if name == "compare":
            one.add_argument("--program", required=True)
            one.add_argument("--rounds", type=int, default=3)
            one.add_argument("--peers", nargs="*")
        one.set_defaults(run=function)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
