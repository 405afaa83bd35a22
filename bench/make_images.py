"""Shards for bench_decode and webdataset_decode.py: make_images.py CIFAR_SHARD FOLDER

Writes FOLDER/png32.tar (the images of a CIFAR-10 shard as PNG files of 32×32) and FOLDER/jpeg500.tar (200 JPEG files
of 500×375, each of about 112 kB: enlarged images of the shard with noise at several sizes over them). Needs Pillow,
NumPy and webdataset.
"""
import io
import os
import sys

import numpy
import webdataset
from PIL import Image

HEIGHT, WIDTH, BYTES = 375, 500, 112_000


def textured(small, random):
    """An image with structure at all sizes, as photographs have."""
    pixels = numpy.asarray(small.resize((WIDTH, HEIGHT), Image.BICUBIC)).astype(numpy.float32)
    for side in (2, 4, 8, 16, 64):
        grain = random.normal(0, 9, (HEIGHT // side + 1, WIDTH // side + 1, 3)).astype(numpy.float32)
        for c in range(3):
            layer = Image.fromarray(grain[:, :, c]).resize((WIDTH, HEIGHT), Image.BICUBIC)
            pixels[:, :, c] += numpy.asarray(layer)
    pixels += random.normal(0, 6, (HEIGHT, WIDTH, 1))
    return Image.fromarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8))


def jpeg_of(image):
    """With the highest quality that stays within BYTES."""
    low, high, best = 1, 100, b""
    while low < high:
        quality = (low + high) // 2
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality)
        if len(buffer.getvalue()) <= BYTES:
            low, best = quality + 1, buffer.getvalue()
        else:
            high = quality
    return best


def main(shard, folder):
    os.makedirs(folder, exist_ok=True)
    random = numpy.random.default_rng(1)
    samples = [(s["__key__"], s["jpg"], s["cls"]) for s in webdataset.WebDataset(shard, shardshuffle=False)]
    with webdataset.TarWriter(f"{folder}/png32.tar") as out:
        for key, jpeg, label in samples:
            buffer = io.BytesIO()
            Image.open(io.BytesIO(jpeg)).save(buffer, "PNG")
            out.write({"__key__": key, "png": buffer.getvalue(), "cls": label})
    sizes = []
    with webdataset.TarWriter(f"{folder}/jpeg500.tar") as out:
        for key, jpeg, label in samples[:200]:
            large = jpeg_of(textured(Image.open(io.BytesIO(jpeg)), random))
            sizes.append(len(large))
            out.write({"__key__": key, "jpg": large, "cls": label})
    print(f"jpeg500: {sum(sizes) / len(sizes):.0f} bytes on average")


if __name__ == "__main__":
    main(*sys.argv[1:])
