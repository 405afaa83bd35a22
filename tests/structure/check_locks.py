"""check_locks.py FOLDER: the Python packages that scripts/setup and scripts/site install are locked: each list has a lock
with the same versions, in which every package has a hash, and they install by the lock alone."""

import re
import sys
from pathlib import Path

LISTS = {"python-test": "setup_test_python", "site-python": "site"}
FLAGS = ("--require-hashes", "--only-binary=:all:", "--disable-pip-version-check")


def name_of(requirement):
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", requirement)[0]).lower()


def stanzas(text):
    """{package: [(version, hashes)…]} of a lock; one with markers may stand there twice."""
    found = {}
    for stanza in re.findall(r"(?m)^[A-Za-z0-9].*(?:(?<=\\)\n.*)*", text):
        version = re.match(r"[A-Za-z0-9._-]+(?:\[[^]]*\])?==([^ ;\\]+)", stanza)
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", stanza)
        found.setdefault(name_of(stanza), []).append((version[1] if version else None, hashes))
    return found


def faults_of(scripts):
    faults = []
    for name, script in LISTS.items():
        locked = stanzas((scripts / f"{name}.lock").read_text())
        for package, entries in locked.items():
            if any(version is None or not hashes for version, hashes in entries):
                faults.append(f"{name}.lock: {package} has no version or no hash")
        for line in (scripts / f"{name}.txt").read_text().splitlines():
            if not line or line.startswith("#"):
                continue
            version = line.split("==")[1]
            if version not in [entry[0] for entry in locked.get(name_of(line), [])]:
                faults.append(f"{name}.lock has no {line}: run scripts/lock_python")
        text = (scripts / script).read_text()
        faults += [f"{script} installs without {flag}" for flag in FLAGS if flag not in text]
        if f"-r scripts/{name}.lock" not in text or f"-r scripts/{name}.txt" in text:
            faults.append(f"{script} does not install by {name}.lock")
    return faults


def main():
    faults = faults_of(Path(sys.argv[1]) / "scripts")
    print("\n".join(faults + [f"{len(faults)} faults"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
