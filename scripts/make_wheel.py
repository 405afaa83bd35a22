"""scripts/make_wheel.py BUNDLE VERSION OUT: packs a bundle (scripts/bundle.py) as a Python wheel; prints its path.

The same bundle gives the same bytes. Links are left out: a wheel cannot hold them, and nothing needs the bundle's.
"""

import base64
import hashlib
import os
import shutil
import sys
import time
import zipfile
from pathlib import Path

METADATA = """Metadata-Version: 2.1
Name: sluice
Version: {version}
Summary: Trains LibTorch (C++) models on Cloud TPU slices
License: Apache-2.0
Requires-Python: >=3.8
"""
WHEEL = """Wheel-Version: 1.0
Generator: sluice
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = "[console_scripts]\nsluice = sluice:main\n"
EARLIEST = 315532800  # 1980: what a ZIP file can say


class Wheel:
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.record = []
        seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST)
        self.time = time.gmtime(seconds)[:6]

    def add(self, name, source):
        """source: the bytes, or the path of a file, whose permission to be executed is kept."""
        info = zipfile.ZipInfo(name, self.time)
        info.compress_type = zipfile.ZIP_DEFLATED
        executable = isinstance(source, Path) and os.access(source, os.X_OK) and source.stat().st_mode & 0o111
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        if isinstance(source, bytes):
            self.archive.writestr(info, source)
            self.note(name, hashlib.sha256(source), len(source))
            return
        digest, size = hashlib.sha256(), source.stat().st_size
        info.file_size = size
        with source.open("rb") as plain, self.archive.open(info, "w") as packed:
            while block := plain.read(1 << 20):
                digest.update(block)
                packed.write(block)
        self.note(name, digest, size)

    def note(self, name, digest, size):
        text = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={text},{size}\n")

    def finish(self, folder):
        name = f"{folder}/RECORD"
        self.archive.writestr(zipfile.ZipInfo(name, self.time), "".join(self.record) + f"{name},,\n")
        self.archive.close()


def main(bundle, version, out):
    tag = f"py3-none-manylinux_2_35_{os.uname().machine}"
    path = Path(out) / f"sluice-{version}-{tag}.whl"
    fresh = path.with_suffix(".part")
    wheel = Wheel(fresh)
    wheel.add("sluice/__init__.py", Path(__file__).with_name("wheel_module.py").read_bytes())
    for file in sorted(Path(bundle).rglob("*")):
        if file.is_file() and not file.is_symlink():
            wheel.add(f"sluice/{file.relative_to(bundle)}", file)
    folder = f"sluice-{version}.dist-info"
    wheel.add(f"{folder}/METADATA", METADATA.format(version=version).encode())
    wheel.add(f"{folder}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.add(f"{folder}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.finish(folder)
    shutil.move(fresh, path)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
