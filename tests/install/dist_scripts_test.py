"""scripts/check_dist.py refuses each thing that would keep a bundle from running elsewhere; scripts/make_wheel.py packs one
that pip installs. On a bundle of three files, made by the C compiler. scripts/image refuses wrong usage."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


HARDENED = ["-O2", "-fstack-protector-strong", "-D_GLIBCXX_ASSERTIONS", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now"]
# It has something to guard for each of these options.
PROGRAM = """#include <string.h>
#include <vector>
extern "C" void greet(const char*);
int main(int n, char** a) {
  char text[64];
  std::vector<char*> words(a, a + n);
  greet(strcpy(text, words[n - 1]));
  return 7;
}
"""


def compile_text(compiler, text, output, *options):
    language = "c++" if compiler == "c++" else "c"
    subprocess.run([compiler, "-x", language, "-", "-x", "none", "-o", str(output), *options], input=text, text=True,
                   check=True)


def compile_c(text, output, *options):
    compile_text("cc", text, output, *options)


def make_bundle(prefix):
    for folder in ("bin", "lib", "share/doc/sluice/licenses/greeting", "share/doc/sluice/licenses/sluice"):
        (prefix / folder).mkdir(parents=True)
    compile_c('#include <stdio.h>\nvoid greet(const char* w) { printf("hello %s\\n", w); }\n',
              prefix / "lib/libgreet.so.1", "-shared", "-fPIC", "-Wl,-soname,libgreet.so.1")
    compile_text("c++", PROGRAM, prefix / "bin/sluice", str(prefix / "lib/libgreet.so.1"), "-Wl,-rpath,$ORIGIN/../lib",
                 *HARDENED)
    documents = prefix / "share/doc/sluice"
    (documents / "libraries.txt").write_text(
        "# file, licence, origin\nbin/sluice\tsluice\tSluice\nlib/libgreet.so.1\tgreeting\tgreeting 1.0\n")
    (documents / "licenses/greeting/copyright").write_text("free\n")
    (documents / "licenses/sluice/LICENSE").write_text("free\n")


class Image(unittest.TestCase):
    def run_image(self, *arguments):
        return subprocess.run([str(SCRIPTS / "image"), *arguments], capture_output=True, text=True)

    def test_help_says_what_it_needs(self):
        done = self.run_image("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("umoci", done.stdout)
        self.assertNotIn("set -euo", done.stdout)

    def test_wrong_usage_ends_before_anything_is_made(self):
        done = self.run_image("--tag", "x")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("unknown option --tag", done.stderr)
        done = self.run_image("--archive", "no-such-file.tar.zst")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("no-such-file.tar.zst", done.stderr)


class DistScripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        make_bundle(Path(cls.work.name) / "good")

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def setUp(self):
        self.prefix = Path(self.work.name) / self.id()
        shutil.copytree(Path(self.work.name) / "good", self.prefix, symlinks=True)

    def check(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPTS / "check_dist.py"), str(self.prefix), *arguments],
                              capture_output=True, text=True)

    def assert_refused(self, text, *arguments):
        done = self.check(*arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(text, done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)

    def test_a_good_bundle_passes(self):
        done = self.check("--forbid", "/no/such/folder")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 ELF files", done.stdout)

    @unittest.skipIf(platform.libc_ver()[1] in ("2.34", "2.35"), "this C library has nothing that is too new")
    def test_a_program_without_hardening(self):
        compile_text("c++", PROGRAM, self.prefix / "bin/sluice", str(self.prefix / "lib/libgreet.so.1"),
                     "-Wl,-rpath,$ORIGIN/../lib", *(option for option in HARDENED if option != "-D_FORTIFY_SOURCE=2"))
        self.assert_refused("bin/sluice: has not checked copies (-D_FORTIFY_SOURCE=2)")

    def test_symbols_of_a_newer_c_library(self):
        compile_c("#include <stdlib.h>\nvoid greet(const char* w) { (void)w; (void)arc4random(); }\n",
                  self.prefix / "lib/libgreet.so.1", "-shared", "-fPIC", "-Wl,-soname,libgreet.so.1")
        self.assert_refused("lib/libgreet.so.1: needs GLIBC_2.36 of libc.so.6; Ubuntu 22.04 has GLIBC_2.35")

    def test_a_library_that_is_not_there(self):
        (self.prefix / "lib/libgreet.so.1").unlink()
        self.assert_refused("bin/sluice: needs libgreet.so.1, which is neither in the bundle nor in the base system")

    def test_a_library_that_is_not_found(self):
        (self.prefix / "elsewhere").mkdir()
        (self.prefix / "lib/libgreet.so.1").rename(self.prefix / "elsewhere/libgreet.so.1")
        table = self.prefix / "share/doc/sluice/libraries.txt"
        table.write_text(table.read_text().replace("lib/lib", "elsewhere/lib"))
        self.assert_refused("bin/sluice: does not find libgreet.so.1 in its run path '$ORIGIN/../lib'")

    def test_an_absolute_run_path(self):
        compile_c("int unused;\n", self.prefix / "lib/libgreet.so.1", "-shared", "-Wl,-rpath,/opt/build",
                  "-Wl,-soname,libgreet.so.1")
        self.assert_refused("lib/libgreet.so.1: has the run path /opt/build")

    def test_no_licence(self):
        (self.prefix / "share/doc/sluice/licenses/greeting/copyright").unlink()
        self.assert_refused("lib/libgreet.so.1: has no licence in share/doc/sluice/licenses/greeting")

    def test_a_library_of_unknown_origin(self):
        compile_c("int unused;\n", self.prefix / "lib/libother.so", "-shared")
        self.assert_refused("lib/libother.so: is not in share/doc/sluice/libraries.txt")

    def test_a_path_of_the_machine_that_built_it(self):
        (self.prefix / "lib/user.cmake").write_text('set(root "/some/builder/sluice")\n')
        self.assert_refused("lib/user.cmake: holds the path /some/builder", "--forbid", "/some/builder")

    def test_a_link_that_leads_nowhere(self):
        (self.prefix / "lib/libgreet.so").symlink_to("libgreet.so.2")
        self.assert_refused("lib/libgreet.so: a link to libgreet.so.2")

    def wheel(self, out):
        out.mkdir()
        done = subprocess.run([sys.executable, str(SCRIPTS / "make_wheel.py"), str(self.prefix), "1.2.3", str(out)],
                              capture_output=True, text=True, check=True)
        return Path(done.stdout.strip())

    def test_the_wheel_is_the_same_each_time_and_pip_installs_it(self):
        wheel = self.wheel(self.prefix.with_suffix(".1"))
        again = self.wheel(self.prefix.with_suffix(".2"))
        self.assertEqual(wheel.name, f"sluice-1.2.3-py3-none-manylinux_2_35_{os.uname().machine}.whl")
        self.assertEqual(hashlib.sha256(wheel.read_bytes()).digest(), hashlib.sha256(again.read_bytes()).digest())
        target = self.prefix.with_suffix(".installed")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir",
                        "--disable-pip-version-check", "--target", str(target), str(wheel)], check=True)
        environment = {**os.environ, "PYTHONPATH": str(target)}
        done = subprocess.run([str(target / "bin/sluice"), "the wheel"], env=environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (7, "hello the wheel\n"), done.stderr)
        said = subprocess.run([sys.executable, "-c", "import sluice; print(sluice.cmake_prefix, sluice.__version__)"],
                              env=environment, capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.split(), [str(target / "sluice"), "1.2.3"])


if __name__ == "__main__":
    unittest.main()
