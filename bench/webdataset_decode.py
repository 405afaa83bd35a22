"""webdataset_decode.py BENCH_DECODE CIFAR_SHARD FOLDER [ROUNDS [SECONDS]]: decoding, beside Python's webdataset.

FOLDER holds what make_images.py wrote. Each round runs every side for some seconds on one core, one after the other;
the medians over the rounds are printed as JSON. Seconds are the processor's.

"webdataset" is its pipeline in one process, from the file over its own decoders to NumPy arrays of 128 rows, "batches"
ours to the same; "handler" is its decoder alone, on members that are in memory. Its RandomResizedCrop is Pillow's crop
and resize (torchvision's calls the same), on the parts that torchvision's procedure draws.
"""

import io
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

import numpy
import webdataset
from PIL import Image
from webdataset import autodecode


def members(shard, extension):
    return [s[extension] for s in webdataset.WebDataset(shard, shardshuffle=False)]


def part(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    return 0, 0, width, height


def resized_crop(image):
    return numpy.asarray(image.crop(part(*image.size)).resize((224, 224), Image.BILINEAR))


def handler_rate(images, extension, crop, seconds):
    decode = autodecode.ImageHandler("pilrgb" if crop else "rgb8")
    done, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for _ in range(8):
            value = decode("." + extension, images[done % len(images)])
            if crop:
                value = resized_crop(value)
            done += 1
    return done / (time.process_time() - start)


def pipeline_rate(shard, extension, crop, seconds):
    dataset = webdataset.WebDataset(shard, shardshuffle=False).decode("pilrgb" if crop else "rgb8")
    dataset = dataset.to_tuple(extension, "cls")
    if crop:
        dataset = dataset.map_tuple(resized_crop)
    dataset = dataset.batched(128)
    done, start = 0, time.process_time()
    while True:
        for images, _ in dataset:
            done += len(images)
            if time.process_time() - start >= seconds:
                return done / (time.process_time() - start)


def program_rate(program, shard, mode, seconds):
    line = subprocess.run([program, shard, mode, str(seconds)], check=True, capture_output=True, text=True).stdout
    return json.loads(line)["per_second"]


def main(program, cifar, folder, rounds=5, seconds=1.0):
    os.sched_setaffinity(0, {0})
    random.seed(1)
    whole, part_of_it = ["batches", "decode"], ["batches_crop", "crop"]
    sets = [("PNG 32×32", f"{folder}/png32.tar", "png", [*whole, "general"]),
            ("JPEG 32×32", cifar, "jpg", [*whole, "bare"]),
            ("JPEG 500×375 → RandomResizedCrop 224", f"{folder}/jpeg500.tar", "jpg",
             [*part_of_it, "bare", "bare_crop"])]
    result = []
    for name, shard, extension, modes in sets:
        images, crop = members(shard, extension), modes[1] == "crop"
        rates = {side: [] for side in ["webdataset", "handler", *modes]}
        for _ in range(int(rounds)):
            rates["webdataset"].append(pipeline_rate(shard, extension, crop, float(seconds)))
            rates["handler"].append(handler_rate(images, extension, crop, float(seconds)))
            for mode in modes:
                rates[mode].append(program_rate(program, shard, mode, float(seconds)))
        medians = {side: statistics.median(values) for side, values in rates.items()}
        pairs = [(modes[0], "webdataset"), (modes[1], "handler"), *((modes[1], side) for side in modes[2:])]
        ratios = {f"{ours} ÷ {side}": statistics.median(a / b for a, b in zip(rates[ours], rates[side]))
                  for ours, side in pairs}
        result.append({"set": name, "per_second": medians, "ratios": ratios})
        print(json.dumps(result[-1], ensure_ascii=False), file=sys.stderr)
    print(json.dumps(result, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
