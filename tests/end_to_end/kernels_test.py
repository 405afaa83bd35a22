"""kernels_test.py SLUICE: a training with the CPU's kernels: the same losses as without them, and no activation of the
optimized program is transposed."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SLUICE = str(Path(sys.argv.pop(1)).resolve())


def train(folder, *arguments, **environment):
    run = subprocess.run(
        [SLUICE, "train", "--model", "cifar_resnet8", "--fake-data", "--classes", "10", "--train-size", "256", "--test-size", "64",
         "--batch-size", "64", "--epochs", "1", "--log-steps", "1", "--lr", "0.01", "--logdir", folder, *arguments],
        env={**os.environ, "SLUICE_CACHE": "0", **environment}, text=True, capture_output=True, timeout=600)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return run.stdout + run.stderr


def losses(log):
    return [float(loss) for loss in re.findall(r"Loss=([0-9.]+)", log)]


class Kernels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def test_the_losses_are_those_of_the_compiler(self):
        on = train(self.path / "on")
        off = train(self.path / "off", "--cpu-kernels", "off")
        self.assertGreaterEqual(len(losses(on)), 3)
        self.assertEqual(len(losses(on)), len(losses(off)))
        for with_kernels, without in zip(losses(on), losses(off)):
            self.assertAlmostEqual(with_kernels, without, delta=2e-3)

    def test_without_the_library(self):
        (self.path / "libdnnl.so.2").touch()  # which the loader finds first, and which is none
        with_library = os.environ.get("LD_LIBRARY_PATH", "")
        log = train(self.path / "run", LD_LIBRARY_PATH=f"{self.path}:{with_library}".rstrip(":"))
        self.assertEqual(log.count("no library's CPU kernels, only XLA's own"), 1)
        self.assertGreaterEqual(len(losses(log)), 3)

    def test_no_activation_is_transposed(self):
        dump = self.path / "dump"
        train(self.path / "run", XLA_FLAGS=f"--xla_dump_to={dump} --xla_dump_hlo_as_text")
        programs = [path.read_text() for path in dump.glob("*cpu_after_optimizations.txt")]
        step = max(programs, key=len)
        convolutions = step.count('custom_call_target="sluice_convolution"')
        if convolutions < 17 and "avx512bw" not in Path("/proc/cpuinfo").read_text().split():
            self.skipTest("this CPU has kernels for some of the convolutions only")
        self.assertGreaterEqual(convolutions, 17)  # 9 forward, 8 or 9 backward
        self.assertNotRegex(step, r" transpose\(")
        self.assertEqual(step.count('custom_call_target="sluice_update"'), 1)  # of all weights, in their own memory
        copied = re.findall(r" = f32\[(\d+)[^ ]* copy\(%Arg", step)
        self.assertFalse([size for size in copied if int(size) > 64], copied)
        # Images become channels-last where they come in; nothing else with four dimensions changes its layout.
        entry = step[step.index("\nENTRY"):]
        copies = re.findall(r"= (f32\[\d+,\d+,\d+,\d+\]\{[\d,]+\}) copy\(%(\w+)", entry)
        changed = [copy for copy in copies if copy[0].endswith("{1,3,2,0}")]
        self.assertLessEqual(len(changed), 1, changed)


if __name__ == "__main__":
    unittest.main()
