"""check_hardening.py COMPILER SAMPLE FILE…: the programs and libraries have what cmake/sluice_hardening.cmake asks for.

SAMPLE is hardened.cc, compiled as a release is: it ends itself when it is made to write beyond an array or to read beyond a
vector. Compiled without the options it lacks what they give, so that the check can fail.
"""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from elf import hardening_faults  # noqa: E402

# Of the options that compilers have on by themselves, nothing is expected here.
WITHOUT = ["-O2", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-Wl,-z,lazy", "-Wl,-z,norelro", "-no-pie"]


def ends_itself(sample, *arguments):
    return subprocess.run([sample, *arguments], capture_output=True).returncode == -signal.SIGABRT


def main(compiler, sample, *files):
    faults = [f"{path}: {fault}" for path in (sample, *files) for fault in hardening_faults(path)]
    if subprocess.run([sample, "three"], capture_output=True, text=True).stdout != "three r\n":
        faults.append(f"{sample} does not work")
    if not ends_itself(sample, "a" * 100):
        faults.append(f"{sample} goes on after a copy of 100 characters into 64")
    if not ends_itself(sample, *["a"] * 40):
        faults.append(f"{sample} goes on after it read the 41st of two elements")
    with tempfile.TemporaryDirectory() as work:
        plain = Path(work) / "plain"
        source = Path(__file__).with_name("hardened.cc")
        subprocess.run([compiler, "-std=c++20", *WITHOUT, str(source), "-o", str(plain)], check=True)
        if len(hardening_faults(plain)) != 6:
            faults.append(f"of a program without the options only this is found: {hardening_faults(plain)}")
    print("\n".join(faults))
    print(f"{1 + len(files)} files, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
