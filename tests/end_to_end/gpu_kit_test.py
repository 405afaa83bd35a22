"""gpu_kit_test.py ROOT BUILD LIBTORCH PYTHON: the GPU kit (bench/gpu_kit) on a machine without a GPU: a dry run with this
build's programs by PYTHON, which may have PyTorch, and what the kit says of machines that it cannot use, which are made of
a false nvidia-smi and false packages."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT, BUILD, LIBTORCH, PYTHON = (Path(argument) for argument in sys.argv[1:5])
del sys.argv[1:5]
sys.path.insert(0, str(ROOT / "bench/gpu_kit/scripts"))
import commands  # noqa: E402
import machine  # noqa: E402
import main as kit_main  # noqa: E402
import steps  # noqa: E402

VERSION = re.search(r'PACKAGE_VERSION "([\d.]+)',
                    (LIBTORCH / "share/cmake/Torch/TorchConfigVersion.cmake").read_text())[1]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)


def running(group):
    """The processes of a group that have not ended, whether or not somebody has waited for them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = entry.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(own) == group and state != "Z":
            found.append(int(entry.parent.name))
    return found


class Kit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name).resolve()
        self.kit, self.out = self.work / "kit", self.work / "out"
        shutil.copytree(ROOT / "bench/gpu_kit", self.kit)
        for name in ("torch_step.py", "jax_step.py"):
            shutil.copy(ROOT / "bench" / name, self.kit / "scripts")
        (self.kit / "kit.json").write_text(json.dumps({"sluice": "0", "commit": "test", "torch": VERSION}))
        (self.kit / "programs").mkdir()
        (self.work / "bin").mkdir()
        (self.work / "tmp").mkdir()
        # A Python that has the packages of this folder alone.
        self.packages = self.work / "packages"
        self.python = self.work / "bin/bare_python"
        script(self.python, f'exec {sys.executable} -S "$@"')
        self.variables = {"PATH": f"{self.work / 'bin'}:/usr/bin:/bin", "TMPDIR": str(self.work / "tmp"), "PYTHON": str(self.python),
                          "PYTHONPATH": str(self.packages), "HOME": str(self.work), "CUDA_HOME": str(self.work / "cuda")}
        for name in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
            (self.work / "cuda" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / "cuda" / name).touch()

    def add_torch(self, version=VERSION):
        folder = self.packages / "torch"
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "version.py").write_text(f"__version__ = '{version}+cu130'\n")
        (folder / "lib").symlink_to(LIBTORCH / "lib")

    def add_plugin(self, name="xla_cuda13"):
        folder = self.packages / "jax_plugins" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "xla_cuda_plugin.so").write_text("no library")
        (self.packages / "jax_cuda13_pjrt-9.8.7.dist-info").mkdir()

    def add_gpu(self, driver="580.159.04", capability="9.0"):
        script(self.work / "bin/nvidia-smi", f'echo "NVIDIA H100 80GB HBM3, {driver}, 81559, {capability}, 1980"')

    def run_kit(self, *arguments, status, **variables):
        done = subprocess.run([self.kit / "run", "--out", self.out, *arguments], env={**self.variables, **variables},
                              capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        self.assertEqual(list((self.work / "tmp").iterdir()), [], "it left something behind")
        return done.stdout + done.stderr

    def result(self, name="gpu"):
        return json.loads((self.out / f"{name}.json").read_text())

    # What it cannot use.

    def test_no_torch(self):
        self.assertIn("has no package torch", self.run_kit(status=2))

    def test_another_torch(self):
        self.add_torch("2.5.1")
        text = self.run_kit(status=2)
        self.assertIn(f"expected torch {'.'.join(VERSION.split('.')[:2])}", text)
        self.assertIn("found torch 2.5.1+cu130", text)

    def test_no_plugin(self):
        self.add_torch()
        self.assertIn("install jax-cuda13-pjrt", self.run_kit(status=2))
        self.assertIn("install xla-cpu-pjrt", self.run_kit("--dry", status=2))
        self.assertIn("expected a plugin's .so file", self.run_kit(status=2, SLUICE_PLUGIN="/nowhere/plugin.so"))

    def test_an_old_driver(self):
        self.add_torch()
        self.add_plugin()
        self.add_gpu(driver="550.54.15")
        text = self.run_kit(status=2)
        self.assertIn("the driver 550.54.15 is too old for the plugin xla_cuda13: expected 580", text)

    def test_no_whole_kit(self):
        (self.kit / "kit.json").unlink()
        self.assertIn("make gpu-kit", self.run_kit(status=2))

    def test_wrong_usage(self):
        self.assertIn("there is no step 'fast'", self.run_kit("--only", "fast", status=2))
        self.assertIn("expected more than 0", self.run_kit("--minutes", "0", status=2))
        self.assertIn("bench-gpt2-bf16", self.run_kit("--list", status=0))

    def test_cuda_tools(self):
        saved = dict(os.environ), machine.SYSTEM_CUDA, machine.folder_of
        plugin = self.packages / "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
        try:
            os.environ["CUDA_HOME"] = str(self.work / "cuda")
            self.assertEqual(machine.find_cuda_tools(plugin, self.work), self.work / "cuda")
            del os.environ["CUDA_HOME"]
            os.environ["PATH"], machine.SYSTEM_CUDA = str(self.work / "bin"), self.work / "nowhere"
            machine.folder_of = {"triton": None}.get
            self.assertIsNone(machine.find_cuda_tools(plugin, self.work / "none"))
            triton = self.packages / "triton"
            for name in ("bin/ptxas", "lib/libdevice.10.bc"):
                (triton / "backends/nvidia" / name).parent.mkdir(parents=True)
                (triton / "backends/nvidia" / name).write_text(name)
            machine.folder_of = {"triton": triton}.get
            made = machine.find_cuda_tools(plugin, self.work / "made")
            self.assertEqual((made / "nvvm/libdevice/libdevice.10.bc").read_text(), "lib/libdevice.10.bc")
        finally:
            os.environ.clear()
            os.environ.update(saved[0])
            machine.SYSTEM_CUDA, machine.folder_of = saved[1:]

    def test_a_full_disk(self):
        saved, machine.ROOM = machine.ROOM, 1 << 62
        try:
            self.assertRaisesRegex(machine.Unusable, "MB are free on the disk of", machine.check_room, self.work)
        finally:
            machine.ROOM = saved

    def test_a_gpu_without_bf16(self):
        kit = steps.Kit(self.work, self.work, self.work, self.work, None, None, False, 1,
                        [{"name": "Tesla V100", "capability": "7.0"}])
        for answer in (steps.conformance(kit, 9, "bf16"), steps.bench_step(kit, 9, steps.benches(False)[0])):
            self.assertEqual(answer[0], "left out")
            self.assertIn("Tesla V100 has no bf16", answer[1])

    # What happens on the way. A script stands for the program.

    def test_no_gpu(self):
        self.add_torch()
        self.add_plugin()
        script(self.kit / "programs/sluice", "echo 'sluice: CUDA error: no device' >&2; exit 1")
        text = self.run_kit("--only", "machine,digits", status=1)
        found = self.result()
        self.assertEqual(found["plugin"], "xla_cuda13 9.8.7")
        self.assertEqual(found["steps"]["machine"]["outcome"], "failed")
        self.assertIn("no visible GPU: nvidia-smi names none. The plugin says: sluice: CUDA error", text)
        self.assertEqual(found["steps"]["digits"], {"outcome": "left out", "seconds": 0.0, "said": "there is no GPU"})

    def test_a_plugin_of_another_version(self):
        self.add_torch()
        self.add_plugin()
        self.add_gpu()
        script(self.kit / "programs/sluice", "echo 'sluice: the plugin has PJRT version 1.0, expected 0.60' >&2; exit 1")
        self.assertIn("has PJRT version 1.0, expected 0.60", self.run_kit("--only", "machine", status=1))

    def test_killed_and_endless_steps(self):
        self.add_torch()
        self.add_plugin()
        self.add_gpu()
        script(self.kit / "programs/sluice", "kill -9 $$")
        script(self.kit / "programs/first_step", f"echo $$ >{self.work}/pid; sleep 1000 & wait")
        self.run_kit("--only", "first-step-highest,refusals,digits", "--minutes", "0.2", status=1)
        found = self.result()["steps"]
        self.assertIn("killed by SIGKILL; is the machine's memory full?", found["digits"]["said"])
        self.assertIn("stopped after its", found["first-step-highest"]["said"])
        self.assertEqual(self.result("digits"), found["digits"])
        self.assertEqual(running(int((self.work / "pid").read_text())), [])
        self.assertLess(self.result()["seconds"], 12)

    def test_a_stop_from_outside(self):
        self.add_torch()
        self.add_plugin()
        self.add_gpu()
        script(self.kit / "programs/sluice", f"echo $$ >{self.work}/pid; sleep 1000")
        process = subprocess.Popen([self.kit / "run", "--out", self.out, "--only", "machine"], env=self.variables,
                                   stderr=subprocess.DEVNULL)
        for _ in range(600):
            if (self.work / "pid").exists() and (self.work / "pid").read_text().strip():
                break
            time.sleep(0.05)
        process.terminate()
        self.assertEqual(process.wait(60), 143)
        self.assertEqual(running(int((self.work / "pid").read_text())), [])
        self.assertEqual(list((self.work / "tmp").iterdir()), [])

    def test_a_conformance_process_that_dies(self):
        rows = "FAIL pointwise:3: aten::add (f32): off\nnot begun in 9 s: 4 samples\nrows 9, samples 20, fallbacks 0, failures 1\n"
        done = [commands.Done(1, False, 1, rows, ""), commands.Done(-11, False, 1, "", "last words\n")]
        outcome, said, result = steps.conformance_answer(done, 2, 7)
        self.assertEqual(outcome, "failed")
        self.assertIn("20 samples, 1 differences, 4 samples not begun; 1 processes did not end: process 2: killed by SIGSEGV", said)
        self.assertEqual(result["lines"], ["FAIL pointwise:3: aten::add (f32): off"])
        whole = [commands.Done(0, False, 1, rows.replace("FAIL pointwise:3: aten::add (f32): off\n", ""), "")]
        self.assertEqual(steps.conformance_answer(whole, 1, 7)[0], "ok")

    def test_the_time_is_shared(self):
        names = [row[0] for row in kit_main.plan(False)]
        self.assertEqual(names[:2], ["machine", "first-step-highest"])
        self.assertEqual(len(names), len(set(names)))

    # With the programs of this build.

    def test_a_dry_run(self):
        for name in ("apps/sluice", "tests/conformance/sluice_conformance", "bench/first_step"):
            (self.kit / "programs" / Path(name).name).symlink_to(BUILD / name)
        (self.kit / "programs/samples").symlink_to(ROOT / "tests/conformance/samples")
        subprocess.run([BUILD / "apps/sluice", "data", "digits", ROOT / ".deps/digits/digits.csv.gz",
                        self.kit / "programs/digits"], check=True, stdout=subprocess.DEVNULL)
        plugins = [Path(os.environ.get("SLUICE_PLUGIN", "")),
                   ROOT / ".deps/xla_cpu_pjrt/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"]
        plugin = next((str(path) for path in plugins if path.is_file()), None)
        if plugin is None:
            self.skipTest("there is no CPU plugin")
        wanted = ["machine", "first-step-highest", "digits", "conformance-f32", "refusals"]
        variables = {"SLUICE_PLUGIN": plugin, **{name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}}
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0:
            variables |= {"PYTHON": str(PYTHON), "PYTHONPATH": ""}
            wanted.append("bench-transformer6-bf16")
        else:
            self.add_torch()
        text = self.run_kit("--dry", "--minutes", "8", "--seed", "3", "--only", ",".join(wanted), status=0, **variables)
        found = self.result()
        self.assertEqual({name: step["outcome"] for name, step in found["steps"].items()},
                         {name: "left out" if name == "refusals" else "ok" for name in wanted})
        self.assertTrue(found["dry"])
        for name in wanted:
            self.assertEqual(self.result(name), found["steps"][name])
        self.assertTrue(found["steps"]["first-step-highest"]["result"]["ok"])
        conformance = found["steps"]["conformance-f32"]["result"]
        self.assertGreater(conformance["samples"], 5)
        self.assertEqual((conformance["failures"], conformance["seed"], conformance["not_begun"]), (0, 3, 0))
        if "bench-transformer6-bf16" in wanted:
            speed = found["speed"]["transformer6-bf16"]
            self.assertGreater(speed["times_as_fast"]["eager"], 0)
            self.assertGreater(speed["captured_host_ms"], 0)
            self.assertIn("transformer6-bf16:", text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
