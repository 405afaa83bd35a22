"""scripts/fetch_wheels.py: what it refuses and what it says, against an index on this machine's loopback; scripts/setup:
which packages it names where."""

import contextlib
import functools
import hashlib
import http.server
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import fetch_wheels as setup  # noqa: E402

WHEEL = "sluicedemo-1.0+cpu-py3-none-any.whl"
REQUIREMENT = "sluicedemo==1.0+cpu"


@functools.cache  # the archive holds the time at which it was made
def wheel_bytes():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("sluicedemo/include/a.h", "// a\n")
        archive.writestr("sluicedemo/lib/liba.so", "so")
        archive.writestr("sluicedemo/other.py", "")
        archive.writestr("sluicedemo-1.0+cpu.dist-info/METADATA", "Metadata-Version: 2.1\nName: sluicedemo\nVersion: 1.0+cpu\n")
        archive.writestr("sluicedemo-1.0+cpu.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("sluicedemo-1.0+cpu.dist-info/RECORD", "")
    return packed.getvalue()


class Index(http.server.BaseHTTPRequestHandler):
    """A package index with one wheel, which may claim to be larger than it is."""

    claimed_size = None
    sent = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.endswith(".whl"):
            body, kind = wheel_bytes(), "application/octet-stream"
        else:
            body, kind = f'<a href="/{WHEEL.replace("+", "%2B")}">{WHEEL}</a>'.encode(), "text/html"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        large = Index.claimed_size if self.path.endswith(".whl") else None
        self.send_header("Content-Length", str(large or len(body)))
        self.end_headers()
        block = bytes(1 << 20)
        with contextlib.suppress(OSError):
            if not large:
                self.wfile.write(body)
                return
            for _ in range(large // len(block)):
                self.wfile.write(block)
                Index.sent += len(block)


class FetchWheels(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.deps = Path(work.name) / "deps"
        self.deps.mkdir()
        for name, value in (("DEPS", self.deps), ("FREE_BYTES", 0),
                            ("KEPT", {"demo": {"sluicedemo/include/": "include/", "sluicedemo/lib/": "lib/"}})):
            patch = unittest.mock.patch.object(setup, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        for name in [name for name in os.environ if name.startswith(("PIP_", "SLUICE_TORCH_INDEX", "TORCH_DIR"))]:
            patch = unittest.mock.patch.dict(os.environ)
            patch.start()
            self.addCleanup(patch.stop)
            del os.environ[name]
        os.environ["PIP_CONFIG_FILE"] = os.devnull
        self.index = [f"--index-url=http://127.0.0.1:{self.server.server_port}/simple", "--no-cache-dir"]
        Index.claimed_size, Index.sent = None, 0

    def fetch(self, sha256=None):
        pin = (REQUIREMENT, WHEEL, sha256 or hashlib.sha256(wheel_bytes()).hexdigest())
        with contextlib.redirect_stdout(io.StringIO()):
            setup.fetch("demo", pin, self.index)

    def test_a_wheel_is_unpacked_whole_and_only_what_is_kept(self):
        self.fetch()
        found = sorted(str(path.relative_to(self.deps)) for path in self.deps.rglob("*") if path.is_file())
        self.assertEqual(found, ["demo.pin", "demo/include/a.h", "demo/lib/liba.so"])

    def test_another_checksum_is_refused_and_nothing_is_left(self):
        with self.assertRaisesRegex(setup.Failure, "has sha256 .* expects 00"):
            self.fetch("00")
        self.assertEqual(list(self.deps.iterdir()), [])

    def test_a_large_wheel_is_refused_before_its_bytes_come(self):
        Index.claimed_size = 900_000_000
        with self.assertRaisesRegex(setup.Failure, "refused a wheel of 900 MB"):
            self.fetch()
        self.assertLess(Index.sent, 100_000_000)
        self.assertEqual(list(self.deps.iterdir()), [])

    def test_without_libtorch_one_message_names_every_way(self):
        os.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{self.server.server_port}/simple"
        pin = ("sluicemissing==2.0", "x.whl", "00")
        with unittest.mock.patch.object(setup, "PYTORCH_CPU_INDEX", os.environ["PIP_INDEX_URL"]), \
                contextlib.redirect_stdout(io.StringIO()), self.assertRaises(setup.Failure) as raised:
            setup.fetch_torch(pin)
        for name in ("TORCH_DIR", "SLUICE_TORCH_INDEX", "Python's torch", "sluicemissing==2.0"):
            self.assertIn(name, str(raised.exception))

    def test_torch_dir_without_libtorch_is_an_error(self):
        os.environ["TORCH_DIR"] = str(self.deps)
        with self.assertRaisesRegex(setup.Failure, "is not a LibTorch 2.11 to 2.14"):
            setup.set_up_torch(("torch", "x", "00"))

    def test_a_newer_libtorch_is_taken_with_a_word_and_an_older_one_refused(self):
        folder = self.deps.parent / "other"
        (folder / "share/cmake/Torch").mkdir(parents=True)
        os.environ["TORCH_DIR"] = str(folder)
        version_file = folder / "share/cmake/Torch/TorchConfigVersion.cmake"
        version_file.write_text('set(PACKAGE_VERSION "2.10.0")\n')
        with self.assertRaisesRegex(setup.Failure, "is not a LibTorch 2.11 to 2.14"):
            setup.set_up_torch(("torch", "x", "00"))
        version_file.write_text('set(PACKAGE_VERSION "2.16.0")\n')
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            setup.set_up_torch(("torch", "x", "00"))
        self.assertIn("LibTorch 2.16 was not tried: 2.11 to 2.14 were", said.getvalue())

    def test_a_libtorch_without_a_pin_is_named_with_those_that_have_one(self):
        with self.assertRaisesRegex(setup.Failure, "has no LibTorch 2.12, only 2.14"):
            setup.set_up_other_torch(setup.pins(), "2.12")

    def test_torch_dir_is_used_before_anything_else(self):
        folder = self.deps.parent / "mine"
        (folder / "share/cmake/Torch").mkdir(parents=True)
        (folder / "share/cmake/Torch/TorchConfigVersion.cmake").write_text('set(PACKAGE_VERSION "2.12.1")\n')
        os.environ["TORCH_DIR"] = str(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            setup.set_up_torch(("torch", "x", "00"))
        self.assertEqual((self.deps / "torch").resolve(), folder.resolve())

    def test_another_machine_type_is_told_what_is_missing(self):
        said = io.StringIO()
        with unittest.mock.patch.object(setup, "MACHINE", "aarch64"), \
                unittest.mock.patch.object(setup, "torch_of_python", lambda: None), contextlib.redirect_stdout(said):
            with self.assertRaisesRegex(setup.Failure, r"(?s)for x86_64, this is aarch64.*TORCH_DIR"):
                setup.set_up_torch(("torch", "x", "00"))
            with self.assertRaisesRegex(setup.Failure, "libtpu is published for x86_64 alone"):
                setup.set_up_libtpu(("libtpu", "x", "00"))
        with unittest.mock.patch.object(setup, "MACHINE", "riscv64"), unittest.mock.patch.dict(os.environ), \
                contextlib.redirect_stdout(said):
            os.environ.pop("SLUICE_PLUGIN", None)
            setup.set_up_plugin(None)  # the program can be built without
        self.assertRegex(said.getvalue(), "none is published for riscv64.*SLUICE_PLUGIN")
        self.assertEqual(list(self.deps.iterdir()), [])

    def test_licences_are_kept(self):
        with zipfile.ZipFile(self.deps.parent / "demo-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr("demo/a.h", "")
            archive.writestr("demo-1.0.dist-info/licenses/LICENSE", "as you like")
        wheel = Path(archive.filename)
        with unittest.mock.patch.object(setup, "pip_download", lambda *_: wheel), \
                unittest.mock.patch.object(setup, "KEPT", {"demo": {"demo/": ""}}), \
                contextlib.redirect_stdout(io.StringIO()):
            setup.fetch("demo", ("demo", wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()), [])
        self.assertEqual((self.deps / "demo/licenses/LICENSE").read_text(), "as you like")

    def test_libtpu_is_a_must_when_asked_for_and_else_left_out(self):
        os.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{self.server.server_port}/simple"
        pin = ("sluicemissing==2.0", "x.whl", "00")
        said = io.StringIO()
        with unittest.mock.patch.dict(os.environ), contextlib.redirect_stdout(said):
            os.environ.pop("TPU_LIBRARY_PATH", None)
            with self.assertRaisesRegex(setup.Failure, "set TPU_LIBRARY_PATH to a libtpu.so"):
                setup.set_up_libtpu(pin)
            setup.set_up_libtpu_for_tests(pin)
            self.assertIn("The tests that compile for TPUs are skipped.", said.getvalue())
            os.environ["TPU_LIBRARY_PATH"] = "/mine/libtpu.so"
            setup.set_up_libtpu_for_tests(pin)
            self.assertIn("libtpu: /mine/libtpu.so (TPU_LIBRARY_PATH)", said.getvalue())

    def test_versions(self):
        self.assertTrue(setup.was_tried((2, 11)))
        self.assertTrue(setup.was_tried((2, 13)))
        self.assertFalse(setup.was_tried((2, 10)))
        self.assertFalse(setup.was_tried((2, 15)))
        self.assertFalse(setup.was_tried(None))


class PythonPackages(unittest.TestCase):
    def test_another_file_of_the_same_version_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as work:
            root = Path(work)
            for folder in ("scripts", "wheels", ".deps"):
                (root / folder).mkdir()
            shutil.copy2(SCRIPTS / "setup_test_python", root / "scripts")
            (root / "wheels" / WHEEL).write_bytes(wheel_bytes())
            (root / "scripts/python-test.lock").write_text(f"{REQUIREMENT} --hash=sha256:{'0' * 64}\n")
            variables = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "SLUICE_TORCH"))}
            done = subprocess.run([str(root / "scripts/setup_test_python"), sys.executable], capture_output=True, text=True, env={
                **variables, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(root / "wheels"), "PIP_CONFIG_FILE": os.devnull})
            self.assertEqual(done.returncode, 0, done.stderr)  # the tests do without
            self.assertRegex(done.stdout, rf"(?s)refused.*{re.escape(REQUIREMENT)}.*0{{64}}.*"
                             + hashlib.sha256(wheel_bytes()).hexdigest())
            self.assertFalse((root / ".deps/python").exists())

    def test_no_script_installs_without_hashes(self):
        installs = []
        for script in sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.suffix != ".lock"):
            text = script.read_text().replace("\\\n", " ")
            installs += [(script.name, line) for line in text.splitlines() if re.search(r"-m pip install\b", line)]
        self.assertGreaterEqual({name for name, _ in installs}, {"site", "setup_test_python", "lock_python"})
        for name, line in installs:
            self.assertIn("--require-hashes", line, f"scripts/{name} installs what no lock has a hash of")
            self.assertIn("--only-binary=:all:", line, f"scripts/{name} may run code of a package while it installs it")

    def test_every_requirement_of_a_lock_has_a_hash(self):
        for lock in sorted(SCRIPTS.glob("*.lock")):
            requirements = re.findall(r"^\S+==\S+(?:.*\\\n)*.*", lock.read_text(), re.M)
            self.assertGreater(len(requirements), 10, lock.name)
            for requirement in requirements:
                self.assertRegex(requirement, r"--hash=sha256:[0-9a-f]{64}", lock.name)

    def test_every_pin_has_a_hash_and_names_one_file(self):
        for folder, (requirement, name, sha256) in setup.pins().items():
            self.assertRegex(sha256, r"^[0-9a-f]{64}$", folder)
            version = requirement.partition("==")[2]
            self.assertTrue(version and name.endswith(".whl") and name.split("-")[1] == version, folder)


class MachineTypes(unittest.TestCase):
    def said_of(self, library, built_for):
        """What CMake says of a LibTorch whose library has this ELF machine type."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "libc10.so").write_bytes(b"\x7fELF".ljust(18, b"\0") + library + bytes(44))
            script = Path(folder) / "check.cmake"
            script.write_text(f'include("{SCRIPTS.parent}/cmake/sluice_torch.cmake")\n'
                              f"set(CMAKE_SYSTEM_PROCESSOR {built_for})\n"
                              f'sluice_check_machine(wrong "{folder}/libc10.so")\nmessage("said: ${{wrong}}")\n')
            return subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True).stderr

    def test_a_libtorch_for_another_machine_type_is_refused(self):
        said = self.said_of(b"\x3e\x00", "aarch64")
        self.assertIn("libc10.so is for x86_64, this build for aarch64: set TORCH_DIR", said)
        self.assertIn("is for aarch64, this build for x86_64", self.said_of(b"\xb7\x00", "x86_64"))
        for library, machine in ((b"\x3e\x00", "x86_64"), (b"\xb7\x00", "aarch64"), (b"\x3e\x00", "riscv64")):
            self.assertEqual(self.said_of(library, machine).strip(), "said:")


class Packages(unittest.TestCase):
    def run_setup(self, system, *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".release") as file:
            file.write(system)
            file.flush()
            return subprocess.run([str(SCRIPTS / "setup"), *arguments], capture_output=True, text=True,
                                  env={**os.environ, "SLUICE_OS_RELEASE": file.name})

    def names(self, system, *arguments):
        return self.run_setup(system, "--list", *arguments).stdout.split()

    def test_debian_has_its_own_names(self):
        names = self.names('ID=debian\nVERSION_ID="12"\n', "--no-tests")
        self.assertIn("libjpeg62-turbo-dev", names)
        self.assertIn("cmake", names)
        self.assertNotIn("libgtest-dev", names)
        self.assertNotIn("patchelf", names)
        self.assertIn("patchelf", self.names("ID=debian\n", "--no-tests", "--dist"))

    def test_ubuntu_has_other_names(self):
        names = self.names('ID=ubuntu\nVERSION_ID="24.04"\n', "--no-tests")
        self.assertIn("libjpeg-turbo8-dev", names)
        self.assertNotIn("libjpeg62-turbo-dev", names)
        self.assertIn("cmake", names)

    def test_what_ubuntu_lacks_is_named_with_the_remedy(self):
        for release, absent in (("22.04", ("cmake: 3.22, at least 3.25", "g++: 11", "libcurl4-openssl-dev: 7.81",
                                           "libpcre2-dev: 10.39, at least 10.40",
                                           "libspng-dev: does not exist", "libtiff-dev: 4.3, at least 4.5",
                                           "libtomlplusplus-dev: does not exist")),
                                ("24.04", ("libdnnl-dev: 3.1, oneDNN 2",))):
            done = self.run_setup(f'ID=ubuntu\nVERSION_ID="{release}"\n', "--no-tests")
            self.assertNotEqual(done.returncode, 0)
            for text in (*absent, f"Ubuntu {release}", "make dist", "--no-packages", "libjpeg-turbo8-dev"):
                self.assertIn(text, done.stderr)
            self.assertEqual(len(re.findall(r"^  [a-z]\S*: ", done.stderr, re.M)), len(absent), done.stderr)


if __name__ == "__main__":
    unittest.main()
