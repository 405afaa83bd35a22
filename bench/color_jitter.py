"""color_jitter.py BENCH_DECODE SHARD [ROUNDS [SECONDS]]: ColorJitter(0.4, 0.4, 0.4, 0.1), beside Pillow called as torchvision
calls it. SHARD is any with images: bench_decode reads it first. Each round runs both sides on one core, one after the
other, on an image of 224×224 whose pixels are all unlike; the medians are printed as JSON. Seconds are the processor's."""

import json
import os
import random
import statistics
import subprocess
import sys
import time

import numpy
from PIL import Image, ImageEnhance


def with_rotated_hue(image, share):
    hue, saturation, value = image.convert("HSV").split()
    levels = numpy.array(hue) + numpy.int32(share * 255).astype(numpy.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, value)).convert("RGB")


def jittered(image):
    changes = [lambda image: ImageEnhance.Brightness(image).enhance(random.uniform(0.6, 1.4)),
               lambda image: ImageEnhance.Contrast(image).enhance(random.uniform(0.6, 1.4)),
               lambda image: ImageEnhance.Color(image).enhance(random.uniform(0.6, 1.4)),
               lambda image: with_rotated_hue(image, random.uniform(-0.1, 0.1))]
    random.shuffle(changes)
    for change in changes:
        image = change(image)


def pillow_rate(image, seconds):
    done, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        jittered(image)
        done += 1
    return done / (time.process_time() - start)


def program_rate(program, shard, seconds):
    command = [program, shard, "jitter", str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["per_second"]


def main(program, shard, rounds=5, seconds=1.0):
    os.sched_setaffinity(0, {0})
    random.seed(1)
    image = Image.fromarray(numpy.random.default_rng(1).integers(0, 256, (224, 224, 3), dtype=numpy.uint8))
    pairs = [(program_rate(program, shard, float(seconds)), pillow_rate(image, float(seconds)))
             for _ in range(int(rounds))]
    ours, pillow = (statistics.median(side) for side in zip(*pairs))
    print(json.dumps([{"set": "ColorJitter of 224×224", "per_second": {"jitter": ours, "Pillow": pillow},
                       "ratios": {"jitter ÷ Pillow": statistics.median(a / b for a, b in pairs)}}], ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
