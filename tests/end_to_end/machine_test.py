"""machine_test.py SLUICE POD_PLUGIN: the program finds the machine's devices: on machines that a folder stands for
(SLUICE_MACHINE_ROOT), with the CPU's plugin and with the emulated TPU's (tests/pjrt)."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

POD_PLUGIN = sys.argv.pop(2)
SLUICE = str(Path(sys.argv.pop(1)).resolve())

VARIABLES = ("SLUICE_PLUGIN", "SLUICE_DEVICE", "SLUICE_DEVICES", "TPU_LIBRARY_PATH", "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES",
             "ALLOW_MULTIPLE_LIBTPU_LOAD", "CUDA_VISIBLE_DEVICES")


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name).resolve()
        self.root = self.work / "root"
        self.root.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.environment |= {"SLUICE_MACHINE_ROOT": str(self.root), "OMP_NUM_THREADS": "1"}

    def add_v3(self):
        """Four chips of a TPU v3, as its device files and its PCI bus show them."""
        (self.root / "dev").mkdir()
        for chip in range(4):
            (self.root / f"dev/accel{chip}").touch()
            device = self.root / f"sys/bus/pci/devices/0000:00:0{4 + chip}.0"
            device.mkdir(parents=True)
            for name, text in {"vendor": "0x1ae0", "device": "0x0027", "subsystem_device": "0x004f"}.items():
                (device / name).write_text(text + "\n")
        return f"4 chips of TPU v3 ({self.root}/dev/accel0…3)"

    def run_sluice(self, *arguments, status=0, **environment):
        done = subprocess.run([SLUICE, *arguments], env={**self.environment, **environment}, text=True,
                              capture_output=True, timeout=600)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return done

    def train_words(self):
        return ("train", "--model", "mlp", "--fake-data", "--classes", "4", "--image-size", "8", "--train-size", "64",
                "--test-size", "16", "--batch-size", "4", "--epochs", "1", "--log-steps", "2", "--logdir", str(self.work / "run"))

    def train(self, *arguments, **environment):
        return self.run_sluice(*self.train_words(), *arguments, **environment)

    def test_a_machine_without_accelerators(self):
        done = self.run_sluice("devices", "--json")
        shown = json.loads(done.stdout)
        self.assertEqual(shown["plugin"], "cpu")
        self.assertEqual(shown["machine"]["tpu_chips"], 0)
        self.assertEqual(shown["chosen"],
                         {"automatic": True, "reason": "this machine has no accelerator", "not_used": ""})
        self.assertEqual(len(shown["devices"]), 1)
        for text in ("plugin: ", "not used", "NOT USED"):  # there is nothing to say
            self.assertNotIn(text, done.stderr)

    def test_one_chosen_device(self):
        for flags in (("--devices", "[5]"), ("--devices", "5,"), ("--device-ids", "5")):
            lines = self.train(*flags).stdout.splitlines()
            self.assertRegex(lines[0], r"^plugin cpu \(xla_cpu_pjrt\.so\), platform cpu, 1 local device, id 5; "
                                       r"1 replica in 1 process(; peak of a replica .*)?$")
            self.assertIn("batch 4 × 1 replica × accumulate 1 = 4", lines[1])
            self.assertTrue(any("Epoch 1 train end" in line for line in lines), lines)

    def test_a_flag_counts_more_than_the_environment_and_that_more_than_the_file(self):
        config = self.work / "train.toml"
        config.write_text('devices = "2"\nplugin = "/no/such/plugin.so"\nstrict = true\n')
        given = ["--config", str(config)]
        for flags, environment, devices in (([], {}, 2), ([], {"SLUICE_DEVICES": "3"}, 3),
                                            (["--devices", "4"], {"SLUICE_DEVICES": "3"}, 4)):
            said = self.train(*given, *flags, SLUICE_PLUGIN="cpu", SLUICE_STRICT="maybe", **environment)
            self.assertIn(f"platform cpu, {devices} local devices; {devices} replicas", said.stdout)
        self.assertIn("give --trust-config if you trust this file", self.train(*given, status=2).stderr)
        self.assertIn("there is no plugin at /no/such/plugin.so", self.train(*given, "--trust-config", status=1).stderr)
        # What the environment says for all programs may be idle for this one; what a flag says may not.
        self.train("--plugin", "cpu", status=2, SLUICE_DEVICE="cpu")
        self.train(SLUICE_DEVICE="cpu", SLUICE_PLUGIN="cpu", SLUICE_CPU_KERNELS="off")

    def test_flags_that_disagree(self):
        said = self.train("--devices", "2", "--device-ids", "5", status=2).stderr
        self.assertIn("--device-ids names them: give one", said)
        self.assertIn("names device 3 twice", self.train("--devices", "[3,3]", status=2).stderr)
        self.assertIn("--devices: expected a number of devices", self.train("--devices", "few", status=2).stderr)

    def test_a_tpu_without_its_library_is_a_loud_warning(self):
        chips = self.add_v3()
        done = self.train(TPU_LIBRARY_PATH="/no/such/libtpu.so")
        self.assertIn("THE TPU IS NOT USED, this program runs on the cpu plugin: " + chips, done.stderr)
        self.assertIn("TPU_LIBRARY_PATH=/no/such/libtpu.so: there is no plugin", done.stderr)
        self.assertIn("plugin cpu (xla_cpu_pjrt.so), platform cpu, 1 local device; ", done.stdout)

    def test_the_cpu_on_a_tpu_machine_is_a_remark(self):
        chips = self.add_v3()
        done = self.run_sluice("devices", "--plugin", "cpu")
        self.assertIn("not used: " + chips, done.stderr)
        self.assertNotIn("THE TPU", done.stderr)
        self.assertIn("machine   " + chips + ", no GPU", done.stdout)

    def test_chips_that_a_process_holds(self):
        self.add_v3()
        library = self.work / "libtpu.so"
        library.touch()  # never loaded
        holder = subprocess.Popen([sys.executable, "-c", "import sys; f = open(sys.argv[1]); print(flush=True); sys.stdin.read()",
                                   self.root / "dev/accel1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        holder.stdout.readline()
        start = time.monotonic()
        done = self.train("--plugin", "tpu", status=1, TPU_LIBRARY_PATH=str(library))
        self.assertLess(time.monotonic() - start, 60)
        self.assertRegex(done.stderr, rf"the chips are held by process {holder.pid} \(python3.*\) of user .+, "
                                      rf"since .*\d\d:\d\d: wait for it, or end it with `kill {holder.pid}`")
        shown = self.run_sluice("devices", TPU_LIBRARY_PATH=str(library))
        self.assertRegex(shown.stdout, rf"held by process {holder.pid} ")
        self.assertRegex(shown.stderr, rf"THE TPU IS NOT USED.* held by process {holder.pid} ")
        self.assertIn("plugin    cpu ", shown.stdout)

    def test_a_client_that_fails_says_what_the_machine_shows(self):
        # A pod of two without a folder to meet in: the plugin is loaded and refuses.
        done = self.train("--plugin", "tpu", status=1, TPU_LIBRARY_PATH=POD_PLUGIN, EMULATED_POD_PROCESSES="2")
        self.assertRegex(done.stderr, r"cannot open the devices of the tpu plugin .*EMULATED_POD_DIR.*; this machine shows "
                                      r"no TPU: no chip on its PCI bus, no /dev/accelN")

    def test_all_devices_of_an_emulated_tpu(self):
        chips = self.add_v3()
        pod = {"TPU_LIBRARY_PATH": POD_PLUGIN, "EMULATED_POD_DEVICES": "8"}
        done = self.train(**pod)
        self.assertIn(f"plugin: tpu, {chips}, libtpu from {POD_PLUGIN}", done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^plugin tpu \(.*\.so\), platform tpu, 8 local devices \(TPU v3\); 8 replicas in 1 process; "
                                   r"peak of a replica 61\.5 TFLOP/s bf16 \(TPU v3, published\)$")
        self.assertIn("batch 4 × 8 replicas × accumulate 1 = 32", lines[1])
        self.assertTrue(any("Epoch 1 train end" in line for line in lines), lines)
        # A plugin that is given by its path counts by its platform.
        by_path = self.train("--plugin", POD_PLUGIN, "--device-ids", "5", EMULATED_POD_DEVICES="8")
        self.assertIn("1 local device (TPU v3), id 5; 1 replica in 1 process", by_path.stdout)
        missing = self.train("--device-ids", "9", status=1, **pod)
        self.assertRegex(missing.stderr, r"device 9\b.*0, 1, 2, 3, 4, 5, 6, 7")

    def test_one_process_for_each_chip_of_an_emulated_tpu(self):
        self.add_v3()
        done = self.run_sluice("run", "--processes-per-host", "4", "--", SLUICE, *self.train_words(),
                               TPU_LIBRARY_PATH=POD_PLUGIN, EMULATED_POD_CORES_PER_CHIP="2",
                               EMULATED_POD_DIR=str(self.work), XDG_STATE_HOME=str(self.work / "state"))
        self.assertRegex(done.stdout, r"\[0\] plugin tpu \(.*\.so\), platform tpu, 2 local devices \(TPU v3\); "
                                      r"8 replicas in 4 processes; peak of a replica [^\n]*\n")
        self.assertIn("[0] batch 4 × 8 replicas × accumulate 1 = 32", done.stdout)
        self.assertIn("[0] Epoch 1 train end", done.stdout)


if __name__ == "__main__":
    unittest.main()
