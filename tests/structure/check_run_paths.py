"""check_run_paths.py ROOT PLACE…: no program or library looks for its libraries where another user may put some: each
entry of a run path is absolute or begins with $ORIGIN, and an absolute one lies in ROOT or in a folder that is given with
--also. A place is a file, or a folder with all that is below it.
"""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from elf import Elf, elf_files  # noqa: E402


def faults_of(path, entries, allowed):
    for entry in entries:
        if entry in ("$ORIGIN", "${ORIGIN}") or entry.startswith(("$ORIGIN/", "${ORIGIN}/")):
            continue
        if not entry.startswith("/"):
            yield f"{path}: the run path has the entry '{entry}', which the loader takes from the current folder"
        elif not any(Path(entry).is_relative_to(folder) for folder in allowed):
            yield f"{path}: the run path has {entry}, which is not in {', '.join(map(str, allowed))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--also", nargs="*", default=[], type=Path)
    options = parser.parse_args()
    allowed = [options.root.resolve(), *(path.resolve() for path in options.also), *options.also]
    files = [path for place in options.places for path in (elf_files(place) if place.is_dir() else [place])
             if not path.suffix == ".o"]
    faults = [fault for path in files for fault in faults_of(path, Elf(path).run_path, allowed)]
    print("\n".join(faults[:50]))
    print(f"{len(files)} files, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
