"""scripts/site_versions.py SITE FOLDER VERSION: puts a built site into FOLDER/VERSION, next to those of other versions.

FOLDER/versions.json lists all of them, newest first: the header of each page has a menu made from it. FOLDER/index.html
leads to the newest. A site of the same version is replaced; the others stay as they are.
"""

import json
import re
import shutil
import sys
from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Sluice</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">Sluice {newest}</a>
"""


def newest_first(names):
    """Folders that are named like versions; others, such as a server's own, are left out."""
    versions = [name for name in names if re.fullmatch(r"\d+(\.\d+)+", name)]
    return sorted(versions, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def publish(site, folder, version):
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{version}.part"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(site, fresh)
    shutil.rmtree(folder / version, ignore_errors=True)
    fresh.rename(folder / version)
    versions = newest_first(path.name for path in folder.iterdir() if path.is_dir())
    entries = [{"version": name, "title": name, "aliases": []} for name in versions]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (folder / "index.html").write_text(PAGE.format(newest=versions[0]))
    return versions


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print("versions:", ", ".join(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))
