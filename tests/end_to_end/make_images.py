"""Makes a folder of classes with small images that a net can tell apart: stripes of another width for each class.

Usage: make_images.py FOLDER CLASSES IMAGES_OF_EACH
"""
import os
import random
import sys

SIDE = 12


def image(label, number):
    rng = random.Random(1000 * label + number)
    shift = rng.randrange(SIDE)
    pixels = bytearray()
    for y in range(SIDE):
        for x in range(SIDE):
            bright = ((x + shift) // (label + 1)) % 2
            pixels += bytes(min(255, 160 * bright + rng.randrange(80)) for _ in range(3))
    return b"P6\n%d %d\n255\n" % (SIDE, SIDE) + bytes(pixels)


def main(folder, classes, count):
    for label in range(classes):
        path = os.path.join(folder, f"class{label}")
        os.makedirs(path)
        for number in range(count):
            with open(os.path.join(path, f"{number:04d}.ppm"), "wb") as out:
                out.write(image(label, number))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
