"""webdataset_oracle.py PRINT_SAMPLES: what Python's webdataset decodes, Sluice decodes too, to the same values.

Writes a shard with webdataset's TarWriter, decodes it with both, and compares every field; then resizing and cropping
with Pillow's. Exit status 77 when the packages are missing.
"""

import binascii
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile

try:
    import msgpack
    import numpy
    import PIL
    import webdataset
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PLAIN = ["txt", "text", "transcript", "cls", "cls2", "index", "inx", "id", "json", "jsn", "npy", "npz", "mp", "msg",
         "bin", "a.b.cls", "txt.gz"]
IMAGES = ["jpg", "jpeg", "png", "ppm", "pgm", "pbm", "gray.png", "alpha.png", "palette.png", "cmyk.jpg"]
SPECS = ["l8", "rgb8", "rgba8", "l", "rgb", "rgba"]
TORCH_SPECS = ["torchl8", "torchrgb8", "torchrgb", "torchrgba"]
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"DIFFERS: {what}")


def image(number, channels, height, width):
    random = numpy.random.default_rng(number)
    smooth = numpy.linspace(0, 200, height)[:, None, None] + numpy.linspace(0, 50, width)[None, :, None]
    return numpy.clip(smooth + random.integers(0, 20, (height, width, channels)), 0, 255).astype(numpy.uint8)


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    numpy.savez_compressed(out, **arrays)
    return out.getvalue()


def sample(number):
    height, width = 20 + 7 * number, 50 - 5 * number
    rgb = Image.fromarray(image(number, 3, height, width))
    rgba = Image.fromarray(image(number, 4, height, width))
    return {
        "__key__": f"folder.x/{number:04d}", "txt": f"é {number}".encode(), "text": b"text", "transcript": b"t\n",
        "cls": b"7", "cls2": b" 8\n", "index": b"-3", "inx": b"12345678901", "id": b"+4",
        "json": json.dumps({"a": [1, 2.5, None], "number": number}).encode(), "jsn": b"[true]",
        "npy": npy(numpy.arange(6, dtype=numpy.float32).reshape(2, 3) + number),
        "npz": npz(one=numpy.arange(number + 1), two=numpy.zeros((2, 2), numpy.uint8)),
        "mp": msgpack.packb({"x": [1, "two", 3.0], "n": number}), "msg": msgpack.packb([None, True]),
        "bin": bytes(range(256)), "a.b.cls": b"3", "txt.gz": gzip.compress(b"packed"),
        "jpg": saved(rgb, "JPEG"), "jpeg": saved(rgb, "JPEG", progressive=True, subsampling=0),
        "png": saved(rgb, "PNG"), "ppm": saved(rgb, "PPM"), "pgm": saved(rgb.convert("L"), "PPM"),
        "pbm": saved(rgb.convert("1"), "PPM"), "gray.png": saved(rgb.convert("L"), "PNG"),
        "alpha.png": saved(rgba, "PNG"), "palette.png": saved(rgb.quantize(20), "PNG"),
        "cmyk.jpg": saved(rgb.convert("CMYK"), "JPEG"),
    }


def described(value):
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, numpy.ndarray):
        value = numpy.ascontiguousarray(value)
        return {"type": str(value.dtype), "shape": list(value.shape), "crc32": binascii.crc32(value.tobytes())}
    if isinstance(value, dict) and all(isinstance(v, numpy.ndarray) for v in value.values()):  # npz
        return {"arrays": {name: described(array) for name, array in value.items()}}
    if isinstance(value, bool) or not isinstance(value, int):
        if isinstance(value, str):
            value = value.encode()
        return {"hex": value.hex()} if isinstance(value, bytes) else {"json": value}
    return {"number": value}


def ours(program, shard, spec, steps, extensions):
    done = subprocess.run([program, shard, spec, steps, *extensions], capture_output=True, text=True)
    check(done.returncode == 0, f"{spec}: exit status {done.returncode}, {done.stderr}")
    return {line["key"]: line["fields"] for line in map(json.loads, done.stdout.splitlines())}


def same(theirs, found, what):
    if "json" in theirs and "hex" in found:  # handed on as text
        check(json.loads(bytes.fromhex(found["hex"])) == theirs["json"], what)
        return
    if theirs.get("type", "").startswith("float") and found.get("type") == "uint8":
        check(False, f"{what}: {theirs} and {found}")
    # webdataset gives grey images two extents, ours have one channel.
    if len(theirs.get("shape", [])) == 2 and len(found.get("shape", [])) == 3:
        theirs = dict(theirs, shape=[*theirs["shape"], 1])
    check(theirs == found, f"{what}: {theirs} and {found}")


def compare_decoders(program, shard):
    try:
        import torch  # noqa: F401
        specs = SPECS + TORCH_SPECS
    except ImportError:
        specs = SPECS
    for spec in specs:
        extensions = (PLAIN if spec == "rgb8" else []) + IMAGES
        found = ours(program, shard, spec, "none", extensions)
        expected = webdataset.WebDataset(shard, shardshuffle=False).decode(spec)
        count = 0
        for theirs in expected:
            count += 1
            for extension in extensions:
                value = theirs[extension]
                name = f"{spec} {theirs['__key__']}.{extension}"
                if spec.startswith("torch") and "l" in spec and hasattr(value, "shape") and len(value.shape) == 2:
                    value = value[None]
                same(described(value), found[theirs["__key__"]][extension], name)
        check(count == len(found) == 4, f"{spec}: {count} samples and {len(found)}")


def compare_resize(program, shard):
    for steps, size in [("resize=33", 33), ("resize=12", 12), ("resize=90,center=64", 90)]:
        found = ours(program, shard, "rgb8", steps, ["png"])
        for theirs in webdataset.WebDataset(shard, shardshuffle=False).decode("pilrgb"):
            image = theirs["png"]
            shorter = min(image.size)
            image = image.resize([extent * size // shorter for extent in image.size], Image.BILINEAR)
            if "center" in steps:
                left, top = (round((extent - 64) / 2.0) for extent in image.size)
                image = image.crop((left, top, left + 64, top + 64))
            same(described(numpy.asarray(image)), found[theirs["__key__"]]["png"], f"{steps} {theirs['__key__']}")


def compare_shapes(program, folder):
    """Pillow takes rows or columns first by how much each shrinks: shapes on both sides of its rule."""
    random = numpy.random.default_rng(24)
    shapes = [(int(height), int(width)) for height, width in random.integers(1, 200, (120, 2))]
    # At the border, for 33 of the shorter side: a height that loses twice as much as the width, and one more.
    shapes += [(33 + 2 * lost + more, 33 + lost) for lost in (3, 20, 60) for more in (0, 1)]
    shard = os.path.join(folder, "shapes.tar")
    with webdataset.TarWriter(shard, encoder=False) as out:
        for number, (height, width) in enumerate(shapes):
            noise = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
            out.write({"__key__": f"{number:04d}", "png": saved(Image.fromarray(noise), "PNG")})
    found = ours(program, shard, "rgb8", "resize=33", ["png"])
    for theirs in webdataset.WebDataset(shard, shardshuffle=False).decode("pilrgb"):
        image = theirs["png"]
        image = image.resize([extent * 33 // min(image.size) for extent in image.size], Image.BILINEAR)
        same(described(numpy.asarray(image)), found[theirs["__key__"]]["png"], f"resize of {theirs['png'].size}")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        shard = os.path.join(folder, "all.tar")
        with webdataset.TarWriter(shard, encoder=False) as out:
            for number in range(4):
                out.write(sample(number))
        compare_decoders(program, shard)
        compare_resize(program, shard)
        if int(PIL.__version__.split(".")[0]) >= 13:
            compare_shapes(program, folder)
    print(f"{len(failures)} differences")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
