"""files_test.py PROGRAM: what a folder that somebody else made may try, on the whole program: libraries in the current folder,
names that are commands, bytes for the terminal, configuration files, archives that lead out of their folder, documents
that are too deep.

What would have happened leaves a file, and each attack is also made in a way that must succeed, so that it is one.
"""

import io
import json
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
# What a terminal obeys: C0 but for tab, newline and carriage return, and C1 as UTF-8.
OBEYED = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;bHMK\x07"


class Attack(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.folder = Path(self.work.name)
        self.addCleanup(self.work.cleanup)

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=120)

    def shard(self, name, members):
        """A tar with these members, (name, bytes) each."""
        with tarfile.open(self.folder / name, "w", format=tarfile.PAX_FORMAT) as archive:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return name

    def assert_untouched(self):
        self.assertFalse((self.folder / "touched").exists())

    def assert_plain(self, done):
        for stream in (done.stdout, done.stderr):
            self.assertIsNone(OBEYED.search(stream), stream)


class Libraries(Attack):
    def test_the_current_folder_brings_none(self):
        source = self.folder / "evil.c"
        source.write_text('#include <stdio.h>\n__attribute__((constructor)) static void run(void) {'
                          ' fclose(fopen("touched", "w")); }\n')
        needed = re.findall(r"NEEDED +(\S+)", subprocess.run(["objdump", "-p", PROGRAM], capture_output=True, text=True,
                                                             check=True).stdout)
        names = [name for name in needed if re.match(r"lib(z|spng|curl|tiff|webp|avif|torch_cpu|c10)\b", name)]
        self.assertGreater(len(names), 3)
        for name in ["libtorch_cpu.so", "libc10.so", "libdnnl.so.2", "xla_cpu_pjrt.so", "libtpu.so", *names]:
            subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(self.folder / name)], check=True)
        for arguments in (["--version"], ["devices", "--plugin", "cpu"]):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_untouched()
        subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('./libc10.so')"], cwd=self.folder, check=True)
        self.assertTrue((self.folder / "touched").exists())


class Commands(Attack):
    COMMAND = "pipe:touch touched; cat good.tar"

    def setUp(self):
        super().setUp()
        self.shard("good.tar", [("a.cls", b"1"), ("a.txt", b"x")])

    def test_what_a_glob_finds_is_a_file(self):
        (self.folder / self.COMMAND).write_bytes((self.folder / "good.tar").read_bytes())
        for argument in ("*", "pipe*", self.COMMAND):
            done = self.run_program("data", "ls", argument)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_untouched()

    def test_a_list_holds_none(self):
        (self.folder / "list").write_text(self.COMMAND + "\n")
        for verb in ("ls", "verify", "cat", "stats"):
            done = self.run_program("data", verb, "@list")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"give --allow-pipe", done.stderr)
            self.assert_untouched()
        self.assertEqual(self.run_program("data", "ls", "@list", "--allow-pipe").returncode, 0)
        self.assertTrue((self.folder / "touched").exists())

    def test_a_configuration_names_no_program(self):
        (self.folder / "list").write_text(self.COMMAND + "\n")
        for text in (f'train = "{self.COMMAND}"', f'test = "good.tar::{self.COMMAND}"', 'plugin = "./evil.so"',
                     'train = "@list"\nallow-pipe = true', "trust-config = true"):
            (self.folder / "run.toml").write_text(text + "\n")
            done = self.run_program("train", "--config", "run.toml", "--logdir", "out")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assert_untouched()


class Terminal(Attack):
    def test_names_and_values_are_written_out(self):
        name = f"a{TITLE}{CLIPBOARD}"
        self.shard("evil.tar", [(f"{name}.cls", b"1"), (f"{name}.txt", (TITLE + "\x9b2J").encode()),
                                (f"{name}.json", json.dumps({TITLE: CLIPBOARD}, ensure_ascii=False).encode()),
                                (f"{name}.jpg", b"no image")])
        for arguments in (["ls", "evil.tar", "--keys"], ["ls", "evil.tar", "--keys", "--json"], ["verify", "evil.tar"],
                          ["cat", "evil.tar"], ["stats", "evil.tar"], ["cat", "evil.tar", "--where", f"cls = {TITLE}"]):
            with self.subTest(arguments=arguments):
                self.assert_plain(self.run_program("data", *arguments))

    def test_errors_quote_what_they_name(self):
        for arguments in (["data", "ls", f"missing{TITLE}.tar"], ["data", TITLE], [TITLE], ["data", "ls", f"--{TITLE}"],
                          ["train", "--config", f"{TITLE}.toml"], ["train", "--model", TITLE], ["compile", "--topology", TITLE],
                          ["devices", "--plugin", TITLE]):
            with self.subTest(arguments=arguments):
                done = self.run_program(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assert_plain(done)

    def test_a_configuration_file(self):
        (self.folder / "run.toml").write_text('"\\u001b]0;owned\\u0007" = 1\n')
        done = self.run_program("train", "--config", "run.toml")
        self.assertEqual(done.returncode, 2)
        self.assert_plain(done)


class Names(Attack):
    def test_members_stay_in_the_folder(self):
        outside = self.folder / "touched"
        for name in ("../touched", str(outside), "x/../../touched", "./../touched"):
            self.shard("evil.tar", [(f"{name}.txt", b"x")])
            self.run_program("data", "cat", "evil.tar", "--count", "9", "--out", "out")
            self.assertEqual([path for path in self.folder.rglob("touched*")
                              if not path.is_relative_to(self.folder / "out")], [])
        self.shard("good.tar", [("touched.txt", b"x")])
        self.run_program("data", "cat", "good.tar", "--out", "out")
        self.assertTrue((self.folder / "out/touched.txt").exists())


class Depth(Attack):
    """Documents that open a bracket too often, and sizes that a file does not have."""
    DEEP = b"[" * 200_000

    def assert_error(self, done):
        self.assertEqual(done.returncode, 1, done.stderr[-2000:])
        self.assertNotIn(b"AddressSanitizer", done.stderr)

    def test_a_member_of_a_shard(self):
        self.shard("evil.tar", [("a.cls", b"1"), ("a.json", self.DEEP)])
        self.assert_error(self.run_program("data", "cat", "evil.tar", "--where", "json:split = train"))

    def test_weights(self):
        header = b'{"__metadata__":' + b'{"a":' * 100_000
        (self.folder / "evil.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
        (self.folder / "huge.safetensors").write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
        sizes = b'{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
        (self.folder / "sizes.safetensors").write_bytes(struct.pack("<Q", len(sizes)) + sizes)
        with zipfile.ZipFile(self.folder / "evil.pt", "w") as archive:
            archive.writestr("evil/data.pkl", b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b".")
            archive.writestr("evil/version", b"3\n")
        self.shard("good.tar", [("a.cls", b"1"), ("a.png", b"x")])
        for name in ("evil.safetensors", "huge.safetensors", "sizes.safetensors", "evil.pt"):
            with self.subTest(name=name):
                self.assert_error(self.run_program(
                    "train", "--model", "cifar_resnet8", "--classes", "10", "--train", "good.tar", "--device", "cpu",
                    "--weights", name, "--logdir", "out"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
