"""decoders_oracle.py PRINT_SAMPLES: images of many formats against Pillow, sounds against soundfile, and the
orientation that Exif, XMP or the format says against ImageOps.exif_transpose. Run by a Python with webdataset, Pillow and soundfile."""

import binascii
import io
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import soundfile
    import webdataset
    from PIL import Image, ImageOps, PngImagePlugin
except ImportError:
    print("skipped: the Python packages webdataset, pillow and soundfile are not all there (scripts/setup installs them)")
    sys.exit(77)

MODES = {"l8": "L", "rgb8": "RGB", "rgba8": "RGBA"}
failures = []
random = numpy.random.default_rng(15)


def check(condition, *what):
    if not condition:
        failures.append(what)
        print("FAILED:", *what)


def noise(mode="RGB", height=37, width=53):
    channels = {"L": (), "RGB": (3,), "RGBA": (4,), "CMYK": (4,)}[mode]
    return Image.fromarray(random.integers(0, 256, (height, width) + channels, dtype=numpy.uint8), mode)


def smooth(mode="RGB", height=64, width=80):
    image = noise("RGB", 5, 6).resize((width, height), Image.BICUBIC)
    return image.convert(mode)


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def bmp(width, height, bits, compression, pixels, colors=0, behind=b""):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(pixels), 0, 0, colors, 0) + behind
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(pixels), 0, 0, 14 + len(head)) + head + pixels


def run_lengths(nibbles):
    """RLE of an image 9 wide and 4 high: runs, a literal piece, a jump, the ends of lines and of the image."""
    literal = bytes([0, 5, 0x12, 0x34, 0x50, 0]) if nibbles else bytes([0, 5, 1, 2, 3, 4, 5, 0])
    return bytes([9, 0x37, 0, 0]) + literal + bytes([4, 0x77, 0, 0, 0, 2, 2, 1, 7, 0x21, 0, 1])


def gifs():
    rgb = noise()
    yield "plain", saved(rgb.quantize(200), "GIF", interlace=0)
    yield "interlaced", saved(rgb.quantize(16), "GIF", interlace=1)
    yield "grey", saved(noise("L"), "GIF")
    yield "two", saved(noise("L").convert("1"), "GIF")
    yield "transparent", saved(rgb.quantize(16), "GIF", transparency=3)
    yield "animation", saved(rgb.quantize(64), "GIF", save_all=True, append_images=[noise().quantize(64)])
    # A frame that is smaller than its screen: the file's own numbers are changed.
    for transparent in (None, 2):
        options = {} if transparent is None else {"transparency": transparent}
        file = bytearray(saved(noise(height=8, width=9).quantize(8), "GIF", interlace=0, **options))
        file[6:10] = struct.pack("<HH", 20, 15)
        at = file.index(b",", 13 + 3 * 8)
        file[at + 1:at + 5] = struct.pack("<HH", 4, 3)
        yield f"small{transparent}", bytes(file)


def bmps():
    yield "rgb", saved(noise(), "BMP")
    yield "rgba", saved(noise("RGBA"), "BMP")
    yield "grey", saved(noise("L"), "BMP")
    yield "one", saved(noise("L").convert("1"), "BMP")
    yield "palette", saved(noise().quantize(256), "BMP")
    colors = random.integers(0, 256, 64, dtype=numpy.uint8).tobytes()
    pixels = random.integers(0, 256, 4096, dtype=numpy.uint8).tobytes()
    yield "four_bits", bmp(13, 9, 4, 0, pixels[:8 * 9], 16, colors)
    yield "top_down", bmp(13, -9, 24, 0, pixels[:40 * 9])
    yield "rle8", bmp(9, 4, 8, 1, run_lengths(False), 256, colors * 16)
    yield "rle4", bmp(9, 4, 4, 2, run_lengths(True), 16, colors)
    yield "555", bmp(7, 5, 16, 0, pixels[:16 * 5])
    yield "565", bmp(7, 5, 16, 3, pixels[:16 * 5], 0, struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    yield "bgrx", bmp(7, 5, 32, 0, pixels[:28 * 5])
    yield "masks", bmp(7, 5, 32, 3, pixels[:28 * 5], 0, struct.pack("<III", 0xFF0000, 0xFF00, 0xFF))


def tiffs():
    for name in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        yield name, saved(noise(), "TIFF", compression=name)
    yield "jpeg", saved(smooth(), "TIFF", compression="jpeg")
    yield "grey", saved(noise("L"), "TIFF")
    yield "rgba", saved(noise("RGBA"), "TIFF", compression="tiff_lzw")
    yield "palette", saved(noise().quantize(100), "TIFF")
    yield "group4", saved(noise("L").convert("1"), "TIFF", compression="group4")
    yield "one", saved(noise("L").convert("1"), "TIFF")
    yield "pages", saved(noise(), "TIFF", save_all=True, append_images=[noise()])


def webps():
    yield "lossy", saved(smooth(), "WEBP", save_all=True, append_images=[smooth(), smooth()], quality=70)
    yield "lossless", saved(noise("RGBA"), "WEBP", save_all=True, append_images=[noise("RGBA")], lossless=True)


def avifs():
    for subsampling in ("4:4:4", "4:2:0"):
        yield "rgb" + subsampling, saved(smooth(), "AVIF", quality=80, subsampling=subsampling)
    yield "rgba", saved(smooth("RGBA"), "AVIF", quality=90)
    yield "grey", saved(smooth("L"), "AVIF", quality=90)


def ours(program, folder, extension, files, spec, steps="none"):
    shard = os.path.join(folder, "one.tar")
    with webdataset.TarWriter(shard, encoder=False) as out:
        for number, (_, file) in enumerate(files):
            out.write({"__key__": f"{number:04}", extension: file})
    done = subprocess.run([program, shard, spec, steps, extension], capture_output=True, text=True)
    check(done.returncode == 0, extension, spec, steps, done.stderr)
    return [json.loads(line)["fields"][extension] for line in done.stdout.splitlines()]


def same(array, found, *what):
    array = numpy.ascontiguousarray(array if array.ndim != 2 else array[..., None])
    check(found["shape"] == list(array.shape) and found["crc32"] == binascii.crc32(array.tobytes()), *what,
          "differs; expected", array.shape, "found", found["shape"])


def compare_images(program, folder):
    for extension, make in (("gif", gifs), ("bmp", bmps), ("tiff", tiffs), ("webp", webps), ("avif", avifs)):
        files = list(make())
        for spec, mode in MODES.items():
            found = ours(program, folder, extension, files, spec)
            check(len(found) == len(files), extension, spec, len(found), "of", len(files))
            for (name, file), one in zip(files, found):
                same(numpy.asarray(Image.open(io.BytesIO(file)).convert(mode)), one, extension, name, spec)


def packet(orientation, element):
    tag = f"<tiff:Orientation>{orientation}</tiff:Orientation>" if element else ""
    attribute = "" if element else f' tiff:Orientation="{orientation}"'
    return (f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description rdf:about=""{attribute}>{tag}</rdf:Description>'
            "</x:xmpmeta>").encode()


def oriented(form, options):
    """(name, the image as it is stored, the file) by Exif, by XMP, by both, which then differ, and by neither."""
    def one(name, exif_of=None, xmp_of=None):
        image, more = noise(height=11, width=17), dict(options)
        if exif_of is not None:
            exif = Image.Exif()
            exif[0x10F] = "a maker"
            exif[0x112] = exif_of
            more["exif"] = exif
        if xmp_of is not None and form == "PNG":
            more["pnginfo"] = PngImagePlugin.PngInfo()
            more["pnginfo"].add_itxt("XML:com.adobe.xmp", xmp_of.decode())
        elif xmp_of is not None and form == "TIFF":
            more["tiffinfo"] = {**more.get("tiffinfo", {}), 700: xmp_of}
        elif xmp_of is not None:
            more["xmp"] = xmp_of
        return name, image, saved(image, form, **more)

    # Pillow writes to an AVIF only what its boxes can say.
    for orientation in range(1, 9) if form == "AVIF" else range(0, 10):
        yield one(f"exif {orientation}", exif_of=orientation)
        yield one(f"xmp {orientation}", xmp_of=packet(orientation, orientation % 2))
    if form != "TIFF":  # Pillow writes the one or the other
        yield one("both", exif_of=6, xmp_of=packet(3, True))
    yield one("none")


def compare_orientation(program, folder):
    count = 0
    for extension, form, options in (("jpg", "JPEG", {"quality": 90}), ("png", "PNG", {}), ("webp", "WEBP", {"lossless": True}),
                                     ("tiff", "TIFF", {}), ("tiff", "TIFF", {"big_tiff": True}), ("avif", "AVIF", {"quality": 90})):
        files = list(oriented(form, options))
        for steps in ("exif", "none"):
            found = ours(program, folder, extension, [(name, file) for name, _, file in files], "rgb8", steps)
            for (name, stored, file), one in zip(files, found):
                image = Image.open(io.BytesIO(file))
                if steps == "exif":
                    image = ImageOps.exif_transpose(image)
                elif form == "TIFF":  # which Pillow turns as it reads it
                    image = stored
                same(numpy.asarray(image.convert("RGB")), one, extension, options, name, steps)
                count += 1
            shapes = {tuple(one["shape"]) for one in found}
            check(shapes == ({(11, 17, 3), (17, 11, 3)} if steps == "exif" else {(11, 17, 3)}), extension, steps, shapes)
    print(f"{count} images with an orientation")


def compare_sounds(program, folder):
    for extension, kinds in (("wav", ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")),
                             ("flac", ("PCM_S8", "PCM_16", "PCM_24"))):
        files = []
        for kind in kinds:
            for channels in (1, 2, 5):
                out = io.BytesIO()
                samples = random.uniform(-1, 1, (5000, channels))
                soundfile.write(out, samples, 22050, format=extension.upper(), subtype=kind)
                files.append((f"{kind} {channels}", out.getvalue()))
        for (name, file), found in zip(files, ours(program, folder, extension, files, "rgb8")):
            samples, rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
            array = numpy.ascontiguousarray(samples.T)
            one = found["arrays"]["samples"]
            check(one["shape"] == list(array.shape) and one["crc32"] == binascii.crc32(array.tobytes()), extension, name)
            check(found["arrays"]["rate"]["crc32"] == binascii.crc32(numpy.int64(rate).tobytes()), extension, name, "rate")


def sound(form):
    def make():
        out = io.BytesIO()
        soundfile.write(out, random.uniform(-1, 1, (5000, 2)), 22050, format=form, subtype="PCM_16")
        yield form, out.getvalue()
    return make


def compare_damage(program, folder):
    """What is cut off is an error of the sample, never pixels or frames."""
    for extension, make in (("gif", gifs), ("bmp", bmps), ("tiff", tiffs), ("webp", webps), ("avif", avifs),
                            ("flac", sound("FLAC")), ("wav", sound("WAV")), ("wav", sound("RF64"))):
        _, file = next(iter(make()))
        for size in (len(file) // 2, len(file) * 9 // 10, len(file) - (1 if extension == "wav" else len(file) // 10)):
            shard = os.path.join(folder, "cut.tar")
            with webdataset.TarWriter(shard, encoder=False) as out:
                out.write({"__key__": "a", extension: file[:size]})
            done = subprocess.run([program, shard, "rgb8", "none", extension], capture_output=True, text=True)
            check(done.returncode == 1 and f"a.{extension}" in done.stderr, extension, "cut to", size, done.stdout, done.stderr)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        compare_images(program, folder)
        compare_orientation(program, folder)
        compare_sounds(program, folder)
        compare_damage(program, folder)
    print(f"{len(failures)} differences")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
