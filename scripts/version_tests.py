"""What scripts/test_plugin and scripts/test_torch share: the tests whose answers depend on XLA's and LibTorch's versions,
and the tables of docs/versions.md.
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/versions.md"
# What computes on the device and says by itself whether the values are right.
TESTS = "^(conformance_|fuzz_programs$|sluice_device|sluice_generate|sluice_metrics|sluice_replica|language_)"
# Compiled for TPUs alone, or about the samples themselves.
NOT_THESE = "^conformance_(ahead|samples|sees)"


def build(torch, only):
    """Builds what the tests need with the LibTorch in the folder `torch`, without sanitizers. The build's folder."""
    version = re.search(r'PACKAGE_VERSION "([^"]+)"', (torch / "share/cmake/Torch/TorchConfigVersion.cmake").read_text())[1]
    folder = ROOT / f"build/torch-{version}"
    # The least optimised build that is quick enough: what is tested are values, and that messages name a line.
    subprocess.run(["cmake", "--preset", "dev", "-B", folder, "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1"], cwd=ROOT,
                   env=dict(os.environ, TORCH_DIR=str(torch)), check=True, stdout=subprocess.DEVNULL)
    # ctest lists no command for a program that is not built yet, so the files that it reads are read here.
    targets = set()
    for tests in folder.rglob("CTestTestfile.cmake"):
        for name, words in re.findall(r"^add_test\(\[=*\[(.+?)\]=*\] (.*)\)$", tests.read_text(), re.MULTILINE):
            if re.search(only, name) and not re.search(NOT_THESE, name):
                targets |= set(re.findall(rf'"{re.escape(str(folder))}/([^"]+)"', words))
    if targets:
        jobs = subprocess.run([ROOT / "scripts/jobs"], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["cmake", "--build", folder, "--parallel", jobs, "--target", *sorted(targets)], cwd=ROOT, check=True)
    return folder


def selection(only):
    return ["-LE", "perf|wide", "-R", only, "-E", NOT_THESE]


# Flags of XLA that tests of a build with sanitizers set, and that other versions refuse.
FLAGS_OF_ONE_VERSION = re.compile(r" ?--xla_cpu_use_fusion_emitters=\w+")


def lists_for_other_plugins(build, folder):
    """Copies a build's lists of tests into `folder`, without the flags that only the plugin of this version knows."""
    for tests in build.rglob("CTestTestfile.cmake"):
        copy = Path(folder) / tests.relative_to(build)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(FLAGS_OF_ONE_VERSION.sub("", tests.read_text()))


def run(folder, only, environment=None):
    """The names of the tests that passed and of those that failed; None and None where no test has such a name."""
    command = ["ctest", "--test-dir", str(folder), "-j", str(os.cpu_count()), "--output-on-failure", *selection(only)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {}))) as process:
        said = []
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    results = [re.search(r"Test +#\d+: (\S+) \.*\**\s*(\w+)", line) for line in said]
    results = [(found[1], found[2]) for found in results if found]
    if not results:
        return None, None
    return ([name for name, result in results if result == "Passed"],
            [name for name, result in results if result != "Passed" and "Skipped" not in result])


def write_row(head, key, row):
    """Puts a row into the table that begins with the line `head`, in the place of the row that has the text `key`."""
    lines = PAGE.read_text().splitlines()
    begin = lines.index(head) + 2
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    rows = [line for line in lines[begin:end] if key not in line] + [row]
    PAGE.write_text("\n".join(lines[:begin] + sorted(rows) + lines[end:]) + "\n")
