#!/usr/bin/env python3
"""How fast Python's webdataset reads shards, and how bench_data_read compares with it.

  python3 bench/webdataset_read.py make FOLDER [--jpeg] [--samples N] [--plain]
  python3 bench/webdataset_read.py read MODE SHARDS [--seconds S]
  python3 bench/webdataset_read.py compare MODE SHARDS --program PATH [--rounds N] [--cores 0]

`make` writes shards of 2,000 with webdataset's own TarWriter: images of 32×32 as PNG of about 2.2 kB, or of 500×375
as JPEG of about 110 kB. TarWriter gives each member a PAX header, unless --plain. `compare` runs both programs in turns
on the same cores and prints JSON with the medians. Needs the packages webdataset, numpy and pillow.
MODE: tar, png, jpeg or imagenet, as in data_read.cc.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import time


def images(count, jpeg):
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    height, width = (375, 500) if jpeg else (32, 32)
    for index in range(count):
        low = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(low).resize((width, height), Image.BICUBIC), dtype=np.int16)
        noise = random.integers(-20, 21, (height, width, 3), dtype=np.int16)
        image = Image.fromarray(np.clip(smooth + noise * (1 if jpeg else 0.45), 0, 255).astype(np.uint8))
        data = io.BytesIO()
        if jpeg:
            image.save(data, "JPEG", quality=88)
        else:
            image.save(data, "PNG")
        yield index, data.getvalue()


def make(args):
    import webdataset

    os.makedirs(args.folder, exist_ok=True)
    extension = "jpg" if args.jpeg else "png"
    writer = None
    for index, data in images(args.samples, args.jpeg):
        if index % 2000 == 0:
            if writer:
                writer.close()
            path = os.path.join(args.folder, f"train-{index // 2000:04d}.tar")
            writer = webdataset.TarWriter(path, mtime=0 if args.plain else None)
        writer.write({"__key__": f"{index:07d}", extension: data, "cls": str(index % 10)})
    writer.close()


def dataset(mode, shards):
    import numpy as np
    import webdataset

    data = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    if mode == "tar":
        return data.to_tuple("png;jpg", "cls")
    data = data.decode("rgb8" if mode != "imagenet" else "pil").to_tuple("jpg;png;jpeg", "cls")
    if mode == "imagenet":
        from PIL import Image

        random = np.random.default_rng(0)

        def crop(image):
            width, height = image.size
            side = int(random.integers(128, min(width, height)))
            x, y = random.integers(0, width - side + 1), random.integers(0, height - side + 1)
            image = image.crop((x, y, x + side, y + side)).resize((224, 224), Image.BILINEAR)
            return np.asarray(image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image)

        data = data.map_tuple(crop, lambda label: label)
    return data.batched(128)


def read(args):
    samples, start, begun = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < args.seconds:
        for item in dataset(args.mode, args.shards):
            samples += 1 if args.mode == "tar" else len(item[1])
            if time.perf_counter() - start >= args.seconds:
                break
    rate = samples / (time.perf_counter() - start)
    print(json.dumps({"program": "webdataset", "mode": args.mode, "samples_per_second": rate,
                      "samples_per_cpu_second": samples / (time.process_time() - begun)}))


def compare(args):
    bind = ["taskset", "-c", args.cores] if args.cores else []
    threads = str(len(args.cores.split(","))) if args.cores else "1"
    ours = [args.program, args.mode, args.shards, "--threads", threads]
    theirs = [sys.executable, __file__, "read", args.mode, args.shards]
    rates, cpu_rates = {"sluice": [], "webdataset": []}, {"sluice": [], "webdataset": []}
    for _ in range(args.rounds):
        for command in (ours, theirs):
            result = json.loads(subprocess.run(bind + command, check=True, capture_output=True).stdout)
            rates[result["program"]].append(round(result["samples_per_second"]))
            cpu_rates[result["program"]].append(round(result["samples_per_cpu_second"]))
    answer = {"mode": args.mode, "cores": args.cores, "rounds": rates}
    for name, values in (("samples_per_second", rates), ("samples_per_cpu_second", cpu_rates)):
        medians = {program: statistics.median(one) for program, one in values.items()}
        answer[name] = {**medians, "ratio": round(medians["sluice"] / medians["webdataset"], 1)}
    print(json.dumps(answer))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("make")
    one.add_argument("folder")
    one.add_argument("--samples", type=int, default=50000)
    one.add_argument("--jpeg", action="store_true")
    one.add_argument("--plain", action="store_true")
    one.set_defaults(run=make)
    for name, function in (("read", read), ("compare", compare)):
        one = verbs.add_parser(name)
        one.add_argument("mode", choices=("tar", "png", "jpeg", "imagenet"))
        one.add_argument("shards")
        one.set_defaults(run=function)
        if name == "read":
            one.add_argument("--seconds", type=float, default=3)
        else:
            one.add_argument("--program", required=True)
            one.add_argument("--rounds", type=int, default=5)
            one.add_argument("--cores", default="0")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
