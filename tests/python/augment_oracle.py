"""augment_oracle.py CHANGE_IMAGES: the changes of ColorJitter, RandAugment and AutoContrast against Pillow, as torchvision's
functions call it, bit for bit; RandAugment's magnitudes against torchvision's formulas. Run by a Python with Pillow."""

import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    from PIL import Image, ImageEnhance, ImageOps
except ImportError:
    print("skipped: the Python package pillow is not there (scripts/setup installs it)")
    sys.exit(77)

MAGNITUDES = 31
failures = []
random = numpy.random.default_rng(24)


def with_hue(image, share):
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    levels = numpy.array(hue) + numpy.int32(share * 255).astype(numpy.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, value)).convert("RGB")


def moved(image, *numbers):
    return image.transform(image.size, Image.Transform.AFFINE, numbers, Image.Resampling.NEAREST)


# What torchvision's functions do with an image of Pillow.
CHANGES = {
    "Identity": lambda image, extent: image,
    "ShearX": lambda image, extent: moved(image, 1, math.tan(math.radians(math.degrees(math.atan(extent)))), 0, 0, 1, 0),
    "ShearY": lambda image, extent: moved(image, 1, 0, 0, math.tan(math.radians(math.degrees(math.atan(extent)))), 1, 0),
    "TranslateX": lambda image, extent: moved(image, 1, 0, -int(extent), 0, 1, 0),
    "TranslateY": lambda image, extent: moved(image, 1, 0, 0, 0, 1, -int(extent)),
    "Rotate": lambda image, extent: image.rotate(extent, Image.Resampling.NEAREST),
    "Brightness": lambda image, extent: ImageEnhance.Brightness(image).enhance(1 + extent),
    "Color": lambda image, extent: ImageEnhance.Color(image).enhance(1 + extent),
    "Contrast": lambda image, extent: ImageEnhance.Contrast(image).enhance(1 + extent),
    "Sharpness": lambda image, extent: ImageEnhance.Sharpness(image).enhance(1 + extent),
    "Posterize": lambda image, extent: ImageOps.posterize(image, int(extent)),
    "Solarize": lambda image, extent: ImageOps.solarize(image, extent),
    "AutoContrast": lambda image, extent: ImageOps.autocontrast(image),
    "Equalize": lambda image, extent: ImageOps.equalize(image),
    "Hue": with_hue,
}
SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")


class Program:
    def __init__(self, path, folder):
        self.pixels = os.path.join(folder, "pixels")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        assert answer, f"no answer to {words}"
        return answer

    def extent(self, name, magnitude, height, width):
        return float(self.ask("extent", name, magnitude, height, width))

    def change(self, array, name, extent):
        with open(self.pixels, "wb") as file:
            file.write(array.tobytes())
        height, width = array.shape[:2]
        self.ask("change", name, repr(float(extent)), height, width, 1 if array.ndim == 2 else array.shape[2], self.pixels)
        return numpy.fromfile(self.pixels, numpy.uint8).reshape(array.shape)


def compare(program, name, extent, image, what):
    expected = numpy.asarray(CHANGES[name](image, extent))
    found = program.change(numpy.asarray(image), name, extent)
    if not (expected == found).all():
        failures.append(name)
        worst = numpy.abs(expected.astype(int) - found).max()
        print(f"FAILED: {name} by {extent} of {what}: {(expected != found).sum()} levels differ, by at most {worst}")


def images():
    for mode, channels in (("L", ()), ("RGB", (3,))):
        for height, width in ((1, 1), (2, 5), (3, 3), (37, 53), (224, 224)):
            noise = random.integers(0, 256, (height, width) + channels, dtype=numpy.uint8)
            yield f"noise {mode} {height}x{width}", Image.fromarray(noise)
            dull = random.normal(110, 20, (height, width) + channels).clip(3, 240).astype(numpy.uint8)
            yield f"dull {mode} {height}x{width}", Image.fromarray(dull)
        yield f"one level {mode}", Image.new(mode, (20, 30), 77 if mode == "L" else (77, 0, 255))
    coarse = random.integers(0, 256, (9, 12, 3), dtype=numpy.uint8)
    yield "smooth", Image.fromarray(coarse).resize((256, 200), Image.Resampling.BICUBIC)


def compare_changes(program):
    for what, image in images():
        for name in CHANGES:
            if name == "Hue":
                extents = [-0.5, -0.31, -0.003, 0, 0.1, 0.5]
            else:
                extents = {program.extent(name, magnitude, image.height, image.width) for magnitude in (0, 1, 9, 15, 30)}
                extents |= {-extent for extent in extents} if name in SIGNED else set()
            if name in ("Brightness", "Contrast", "Color", "Sharpness"):
                extents |= {-1.0, 0.37, 3.5}
            for extent in extents:
                compare(program, name, extent, image, what)


def compare_every_color(program):
    """All 2^24 of them: hue and saturation are computed in floats."""
    levels = numpy.arange(1 << 24, dtype=numpy.uint32)
    colors = numpy.stack([levels >> 16, levels >> 8 & 255, levels & 255], axis=1).astype(numpy.uint8)
    image = Image.fromarray(colors.reshape(4096, 4096, 3))
    for name, extent in (("Hue", 0), ("Hue", 0.17), ("Color", -0.3), ("Color", 0.7)):
        compare(program, name, extent, image, "every colour")


def compare_magnitudes(program):
    def even(first, last):
        """torch.linspace: float32, counted from the nearer end, rounded once."""
        first, last = numpy.float32(first), numpy.float32(last)
        step, steps = float((last - first) / numpy.float32(MAGNITUDES - 1)), numpy.arange(MAGNITUDES)
        numbers = numpy.where(steps < MAGNITUDES // 2, first + step * steps, last - step * (MAGNITUDES - 1 - steps))
        return numbers.astype(numpy.float32)

    for height, width in ((224, 224), (32, 500)):
        expected = {name: even(0, 0.9) for name in ("Brightness", "Color", "Contrast", "Sharpness")}
        expected |= {"ShearX": even(0, 0.3), "ShearY": even(0, 0.3), "Rotate": even(0, 30), "Solarize": even(255, 0)}
        expected |= {"TranslateX": even(0, 150 / 331 * width), "TranslateY": even(0, 150 / 331 * height)}
        expected["Posterize"] = 8 - (numpy.arange(MAGNITUDES) / ((MAGNITUDES - 1) / 4)).round()
        for name in CHANGES.keys() - {"Hue"}:
            for magnitude in range(MAGNITUDES):
                found = program.extent(name, magnitude, height, width)
                if found != float(expected[name][magnitude] if name in expected else 0):
                    failures.append(name)
                    print(f"FAILED: {name} at magnitude {magnitude}: expected {expected[name][magnitude]}, found {found}")


def main(path):
    with tempfile.TemporaryDirectory() as folder:
        program = Program(path, folder)
        compare_magnitudes(program)
        compare_changes(program)
        compare_every_color(program)
        program.process.stdin.close()
        assert program.process.wait() == 0
    print(f"{len(failures)} differences")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
