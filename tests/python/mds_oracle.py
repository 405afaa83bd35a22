"""mds_oracle.py SLUICE: sets of MosaicML's Streaming become shards and token files with the same values.

The sets in tests/python/mds were written by the package's own MDSWriter (version 0.13.0), by `mds_oracle.py --make
FOLDER` where mosaicml-streaming is installed; samples() below says what is in them. Exit status 77 when webdataset or
numpy are missing.
"""

import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import types
from decimal import Decimal
from pathlib import Path

try:
    import numpy
    import webdataset
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

COUNT = 11
ARRAYS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
COLUMNS = {
    "text": "str", "raw": "bytes", "number": "int", "digits": "str_int", "real": "str_float", "exact": "str_decimal",
    "facts": "json", "photo": "jpeg", "drawing": "png", "grey": "pil", "colour": "pil", "any": "ndarray",
    "fixed": "ndarray:int16:2,3", "typed": "ndarray:float32", "photos": "jpegarray", "drawings": "list[png]",
    **{f"a_{name}": "ndarray" for name in ARRAYS}, **{f"s_{name}": name for name in ARRAYS},
}
SETS = {"plain": dict(size_limit=4500, hashes=["sha1", "xxh64"]), "zstd": dict(compression="zstd:7", size_limit=4500),
        "gz": dict(compression="gz", hashes=["md5"], size_limit=None)}
TOKEN_SETS = {"int64": "bytes", "uint16": "ndarray:uint16"}
WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
END = 7
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"DIFFERS: {what}")


def scalar(name, number):
    value = numpy.array(3 + 11 * number if name.startswith("u") else 5 - 5 * number, name)
    return value / numpy.array(8, name) if name.startswith("f") else value


def sample(number):
    """The values of a sample; jpeg and png are handed on as they are, so any bytes do."""
    random = numpy.random.default_rng(number)

    def array(name, *shape):
        return (random.random(shape) * 100).astype(name)

    one = array("uint8", 2 + number % 3, 4)
    return {
        "text": "Größe " * (number % 4), "raw": bytes(range(number)), "number": (1 << 40) - number, "digits": 10**number,
        "real": number / 7, "exact": f"{number}.{'0' * number}1", "facts": {"n": [number, None, "é"]},
        "photo": b"\xff\xd8\xff" + bytes([number] * number), "drawing": b"\x89PNG" + bytes([number]), "grey": one,
        "colour": array("uint8", 3, 2, 3), "any": array(ARRAYS[number % len(ARRAYS)], 1, 300 if number == 3 else 2),
        "fixed": array("int16", 2, 3), "typed": array("float32", 1 + number % 5),
        "photos": [b"\xff\xd8" + bytes([i]) for i in range(1 + number % 3)],
        "drawings": [b"\x89PNG" + bytes([i] * i) for i in range(number % 3)],
        **{f"a_{name}": array(name, 2, 2) for name in ARRAYS}, **{f"s_{name}": scalar(name, number) for name in ARRAYS},
    }


def tokens(number):
    """Rows of one length, in which documents end anywhere."""
    return numpy.random.default_rng(100 + number).integers(0, 20, 16)


def writer():
    """The package's MDSWriter, without the clouds and frameworks that the package imports."""
    base = os.path.dirname(importlib.util.find_spec("streaming").origin)
    for name, path in (("streaming", base), ("streaming.base", f"{base}/base")):
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__path__ = [path]
    from streaming.base.format.mds.writer import MDSWriter
    return MDSWriter


def make(folder):
    write = writer()
    for name, options in SETS.items():
        with write(columns=COLUMNS, out=f"{folder}/{name}", **options) as out:
            for number in range(COUNT):
                values = sample(number)
                values["exact"] = Decimal(values["exact"])
                for column in ("grey", "colour"):
                    values[column] = Image.fromarray(values[column])
                values["drawings"] = numpy.uint32([0, len(values["drawings"])]).tobytes() + numpy.uint32(
                    [len(one) for one in values["drawings"]]).tobytes() + b"".join(values["drawings"])
                out.write(values)
    for kind, encoding in TOKEN_SETS.items():
        with write(columns={"tokens": encoding}, out=f"{folder}/tokens_{kind}", size_limit=900) as out:
            for number in range(COUNT):
                row = tokens(number).astype(kind)
                out.write({"tokens": row.tobytes() if encoding == "bytes" else row})


def run(*command, status=0):
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == status, f"{command}: exit status {done.returncode}, {done.stderr}")
    return done.stdout + done.stderr


def same_array(found, expected, what):
    wanted = WIDER.get(str(expected.dtype), str(expected.dtype))
    check(str(found.dtype) == wanted and found.shape == expected.shape and numpy.array_equal(found, expected),
          f"{what}: {found.dtype} {found} and {expected.dtype} {expected}")


def compare(found, number, what):
    expected = sample(number)
    seen = {"__key__", "__url__", "__local_path__"}

    def take(name):
        seen.add(name)
        return found[name]

    check(found["__key__"] == f"{number:07d}", f"{what}: key {found['__key__']}")
    for column, encoding in COLUMNS.items():
        value, name = expected[column], f"{what} {column}"
        if encoding in ("int", "str_int"):
            check(take(f"{column}.cls") == value, name)
        elif encoding == "str":
            check(take(f"{column}.txt") == value, name)
        elif encoding in ("str_float", "str_decimal"):
            check(take(f"{column}.txt") == str(value), f"{name}: {found[f'{column}.txt']}")
        elif encoding == "json":
            check(take(f"{column}.json") == value, name)
        elif encoding == "bytes":
            check(take(f"{column}.bin") == value, name)
        elif encoding in ("jpeg", "png"):
            check(take(f"{column}.{encoding.replace('jpeg', 'jpg')}") == value, name)
        elif encoding == "pil":
            same_array(numpy.asarray(Image.open(io.BytesIO(take(f"{column}.png")))), value, name)
        elif encoding in ("jpegarray", "list[png]"):
            ending = "jpg" if encoding == "jpegarray" else "png"
            check([take(f"{column}.{i}.{ending}") for i in range(len(value))] == value, name)
        elif encoding.startswith("ndarray"):
            same_array(take(f"{column}.npy"), value, name)
        elif encoding.startswith("float"):
            same_array(take(f"{column}.npy"), value, name)
        else:
            check(take(f"{column}.cls") == int(value), name)
    check(set(found) == seen, f"{what}: also {sorted(set(found) - seen)}")


def decoded(shards):
    """By webdataset's own rules, without Pillow's: the jpg and png members of the sets are not images."""
    return list(webdataset.WebDataset(shards, shardshuffle=False).decode())


def compare_sets(program, sets, folder):
    for name in SETS:
        out = os.path.join(folder, name)
        run(program, "data", "mds", os.path.join(sets, name), out, "--shard-size", "6", "--prefix", "part")
        shards = sorted(str(path) for path in Path(out).glob("part-*.tar"))
        check(len(shards) == 2, f"{name}: {shards}")

        found = decoded(shards)
        check(len(found) == COUNT, f"{name}: {len(found)} samples")
        for number, one in enumerate(found):
            compare(one, number, f"{name} {number}")
    # Some columns, under other names.
    out = os.path.join(folder, "some")
    run(program, "data", "mds", os.path.join(sets, "plain"), out, "--column", "photo=jpg", "--column", "number=cls",
        "--column", "text")
    found = decoded(os.path.join(out, "train-0000.tar"))
    check(len(found) == COUNT, f"some: {len(found)} samples")
    for number, one in enumerate(found):
        expected = sample(number)
        values = {key: value for key, value in one.items() if not key.startswith("__")}
        check(values == {"jpg": expected["photo"], "cls": expected["number"], "text.txt": expected["text"]},
              f"some {number}: {values}")


def documents_of(path):
    """The documents of a Megatron set of one file of uint16."""
    ids = numpy.fromfile(f"{path}.bin", numpy.uint16)
    index = Path(f"{path}.idx").read_bytes()
    count = int(numpy.frombuffer(index, "<u8", 1, 18)[0])
    lengths = numpy.frombuffer(index, "<i4", count, 34)
    check(int(lengths.sum()) == len(ids), f"{path}: {lengths.sum()} and {len(ids)}")
    return [list(map(int, part)) for part in numpy.split(ids, numpy.cumsum(lengths)[:-1])]


def compare_tokens(program, sets, folder):
    rows = [list(map(int, tokens(number))) for number in range(COUNT)]
    text = [token for row in rows for token in row]
    documents, begin = [], 0
    for place, token in enumerate(text):
        if token == END or place + 1 == len(text):
            documents.append(text[begin:place + 1])
            begin = place + 1
    for kind, encoding in TOKEN_SETS.items():
        given = [program, "text", "import", os.path.join(sets, f"tokens_{kind}"), "--format", "mds", "--vocab-size", "20"]
        if encoding == "bytes":
            output = run(*given[:4], os.path.join(folder, "no"), *given[4:], status=1)
            check("--id-type" in output, f"no type: {output}")
            given += ["--id-type", kind]
        for name, more, expected in (("rows", [], rows), ("documents", ["--ends-with", str(END)], documents)):
            out = os.path.join(folder, f"{kind}-{name}")
            run(*given[:4], out, *given[4:], *more)
            found = documents_of(os.path.join(out, "train-0000"))
            check(found == expected, f"{kind} {name}: {found[:3]} and {expected[:3]}")
    output = run(program, "text", "import", os.path.join(sets, "tokens_uint16"), os.path.join(folder, "small"), "--format",
                 "mds", "--vocab-size", "19", status=1)
    check("not below the vocabulary's size 19" in output, output)


def main(program):
    sets = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mds")
    with tempfile.TemporaryDirectory() as folder:
        compare_tokens(program, sets, folder)
        compare_sets(program, sets, folder)
        if importlib.util.find_spec("streaming"):
            make(os.path.join(folder, "fresh"))
            compare_sets(program, os.path.join(folder, "fresh"), os.path.join(folder, "again"))
            compare_tokens(program, os.path.join(folder, "fresh"), os.path.join(folder, "again"))
    print(f"{len(failures)} differences")
    sys.exit(bool(failures))


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(sys.argv[2])
    else:
        main(sys.argv[1])
