"""scripts/release and scripts/verify: two runs give equal files, and each damage is named. On a small clone with this tree's
scripts and lists; the archive and the wheel, which need a build, are left out. Without minisign the signature is not tested."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ["CHANGELOG.md", "CMakeLists.txt", "LICENSE", "scripts"]
STEPS = "sources,sbom,notes,sums"
COMMITTED = 1_700_000_000
VERSION = re.search(r"^project\(sluice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
SOURCES, SBOM, NOTES = f"sluice-{VERSION}.tar.gz", f"sluice-{VERSION}.spdx.json", "RELEASE_NOTES.md"
HAS_MINISIGN = shutil.which("minisign") is not None
with_minisign = unittest.skipUnless(HAS_MINISIGN, "there is no minisign: the signature is not tested")
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "SOURCE_DATE_EPOCH"))},
               "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1",
               **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                  for what, value in (("NAME", "Somebody"), ("EMAIL", "somebody@localhost"), ("DATE", f"{COMMITTED} +0000"))}}


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=ENVIRONMENT, **more)


def must(*command, **more):
    done = run(*command, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def make_clone(folder):
    folder.mkdir(parents=True)
    for name in FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name, **({"ignore": shutil.ignore_patterns("__pycache__")} if (ROOT / name).is_dir() else {}))
    (folder / ".gitignore").write_text("/out/\n__pycache__/\n")
    must("git", "init", "-q", "-b", "main", folder)
    must("git", "add", "-A", cwd=folder)
    must("git", "commit", "-q", "-m", "All of it", cwd=folder)
    return folder


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def make_key(folder, name):
    """A key pair without a password, for this test alone."""
    must("minisign", "-G", "-W", "-f", "-p", folder / f"{name}.pub", "-s", folder / f"{name}.key")
    return folder / f"{name}.key"


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.work = Path(work.name)
        cls.clone = make_clone(cls.work / "one")
        cls.signing = []
        if HAS_MINISIGN:
            cls.signing = ["--key", make_key(cls.work, "right")]
            make_key(cls.work, "wrong")
        cls.said = must(cls.clone / "scripts/release", "--only", STEPS, *cls.signing)

    def setUp(self):
        self.folder = self.work / self.id()
        shutil.copytree(self.clone / "out/release", self.folder)

    def verify(self, key="right.pub"):
        how = ["--key", self.work / key] if HAS_MINISIGN else ["--no-signature"]
        return run(ROOT / "scripts/verify", self.folder, *how)

    def assert_refused(self, *faults, key="right.pub"):
        done = self.verify(key)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(faults), done.stdout)
        for line, fault in zip(lines, faults):
            self.assertIn(fault, line)

    def test_a_release_is_as_published(self):
        done = self.verify()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("3 files are as published", done.stdout)
        names = {SOURCES, SBOM, NOTES, "SHA256SUMS"} | ({"SHA256SUMS.minisig"} if HAS_MINISIGN else set())
        self.assertEqual(set(digests(self.folder)), names)
        self.assertIn(f"gh release create v{VERSION}", self.said)

    def test_the_sums_are_those_of_sha256sum(self):
        must("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=self.folder)

    def test_another_run_in_another_folder_gives_the_same_bytes(self):
        other = make_clone(self.work / "some where" / "else")
        os.utime(other / "LICENSE", (1, 1))
        (other / "LICENSE").chmod(0o600)
        must(other / "scripts/release", "--only", STEPS, "--out", other / "out/x", *self.signing)
        self.assertEqual(digests(other / "out/x"), digests(self.folder))

    def test_the_sources_have_fixed_owners_and_times(self):
        with tarfile.open(self.folder / SOURCES) as archive:
            members = archive.getmembers()
        self.assertEqual({(m.uid, m.gid, m.mtime) for m in members}, {(0, 0, COMMITTED)})
        names = [m.name for m in members]
        self.assertEqual(names, sorted(names))
        self.assertIn(f"sluice-{VERSION}/scripts/release", names)

    def test_the_notes_are_the_newest_section(self):
        notes = (self.folder / NOTES).read_text()
        self.assertTrue(notes.startswith(f"# Sluice {VERSION}\n\n"))
        newest = re.split(r"^## .*\n", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1]
        self.assertEqual(notes.split("\n", 2)[2].strip(), newest.strip())

    def test_a_changed_byte_is_named(self):
        for name in (SOURCES, SBOM, NOTES):
            data = bytearray((self.folder / name).read_bytes())
            data[len(data) // 2] ^= 1
            (self.folder / name).write_bytes(data)
            self.assert_refused(f"{name}: has changed")
            data[len(data) // 2] ^= 1
            (self.folder / name).write_bytes(data)

    def test_a_missing_file_is_named(self):
        (self.folder / NOTES).unlink()
        self.assert_refused(f"{NOTES}: missing")

    def test_an_additional_file_is_named(self):
        (self.folder / "evil.whl").write_text("x")
        self.assert_refused("evil.whl: is not part of the release")

    def test_without_sums_nothing_is_said_of_files(self):
        (self.folder / "SHA256SUMS").unlink()
        self.assert_refused("SHA256SUMS: missing")

    def test_a_sum_names_no_file_of_another_folder(self):
        with (self.folder / "SHA256SUMS").open("a") as sums:
            sums.write("0" * 64 + " *../one\n")
        done = run(ROOT / "scripts/verify", self.folder, "--no-signature")
        self.assertEqual(done.returncode, 1)
        self.assertIn("../one' is not a sum and a name", done.stdout)

    def test_without_a_key_the_sums_are_unsigned(self):
        said = must(self.clone / "scripts/release", "--only", STEPS, "--out", self.clone / "out/unsigned")
        self.assertIn("UNSIGNED", said)
        done = run(ROOT / "scripts/verify", self.clone / "out/unsigned", "--no-signature")
        self.assertEqual(done.returncode, 0)
        self.assertIn("SIGNATURE WAS NOT CHECKED", done.stdout)
        self.assertEqual(run(ROOT / "scripts/verify", self.clone / "out/unsigned").returncode, 2)  # a key must be named

    def test_changes_that_are_not_committed_are_refused(self):
        with (self.clone / "LICENSE").open("a") as file:
            file.write("x")
        self.addCleanup(must, "git", "checkout", "-q", "LICENSE", cwd=self.clone)
        done = run(self.clone / "scripts/release", "--only", STEPS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("M LICENSE", done.stderr)

    def test_a_folder_of_something_else_is_left_alone(self):
        (self.work / "home").mkdir()
        (self.work / "home/letter").write_text("dear")
        done = run(self.clone / "scripts/release", "--out", self.work / "home")
        self.assertIn("is not a release", done.stderr)
        self.assertTrue((self.work / "home/letter").exists())

    def test_wrong_words(self):
        self.assertIn("there is no step music", run(self.clone / "scripts/release", "--only", "music").stderr)
        self.assertEqual(run(self.clone / "scripts/release", "--sign").returncode, 2)

    @with_minisign
    def test_the_wrong_key_is_named(self):
        self.assert_refused("SHA256SUMS.minisig: was made with another key than", key="wrong.pub")

    @with_minisign
    def test_sums_that_were_made_again_are_refused(self):
        (self.folder / NOTES).write_text("lies")
        sums = (self.folder / "SHA256SUMS").read_text().splitlines()
        lie = hashlib.sha256(b"lies").hexdigest()
        (self.folder / "SHA256SUMS").write_text("".join(
            (f"{lie} *{NOTES}" if line.endswith(NOTES) else line) + "\n" for line in sums))
        self.assert_refused("SHA256SUMS: is not the file that was signed")

    @with_minisign
    def test_a_missing_signature_is_named(self):
        (self.folder / "SHA256SUMS.minisig").unlink()
        self.assert_refused("SHA256SUMS.minisig: missing")

    @with_minisign
    def test_what_is_no_key(self):
        self.assertEqual(self.verify("nothing.pub").returncode, 2)
        (self.work / "text.pub").write_text("hello\n")
        done = self.verify("text.pub")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not a public key", done.stderr)


class BillOfMaterials(unittest.TestCase):
    """What SPDX 2.3 requires of a document, its packages, files and relationships."""

    def make(self, *arguments):
        with tempfile.TemporaryDirectory() as work:
            file = Path(work) / "x.spdx.json"
            must(sys.executable, ROOT / "scripts/sbom.py", file, "--commit", "f" * 40, *arguments)
            return json.loads(file.read_text())

    def check(self, document):
        for name in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace"):
            self.assertTrue(document[name], name)
        self.assertEqual((document["spdxVersion"], document["dataLicense"], document["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
        self.assertRegex(document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(document["creationInfo"]["creators"][0], r"^Tool: \S+")
        parts = document["packages"] + document.get("files", [])
        identifiers = [part["SPDXID"] for part in parts]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for part in parts:
            self.assertRegex(part["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for checksum in part.get("checksums", []):
                digits = {"SHA1": 40, "SHA256": 64}[checksum["algorithm"]]
                self.assertRegex(checksum["checksumValue"], rf"^[0-9a-f]{{{digits}}}$")
        known = {"SPDXRef-DOCUMENT", *identifiers}
        for relation in document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        self.assertIn({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                       "relatedSpdxElement": "SPDXRef-Package-sluice"}, document["relationships"])
        referred = set(re.findall(r"LicenseRef-[\w.-]+", " ".join(one["licenseDeclared"] for one in document["packages"])))
        self.assertEqual(referred, {one["licenseId"] for one in document["hasExtractedLicensingInfos"]})
        for one in document["packages"]:
            self.assertTrue(one["name"] and one["downloadLocation"] and not one["filesAnalyzed"])

    def test_every_pin_is_there_with_its_hash_and_a_licence(self):
        document = self.make()
        self.check(document)
        by_file = {one["packageFileName"]: one for one in document["packages"] if "packageFileName" in one}
        pins = [line.split() for line in (ROOT / "scripts/pins.txt").read_text().splitlines() if line[:1] not in ("", "#")]
        self.assertEqual(len(by_file), len(pins))
        for _, requirement, file, digest in pins:
            one = by_file[file]
            self.assertEqual(f"{one['name']}=={one['versionInfo']}", requirement)
            self.assertEqual(one["checksums"], [{"algorithm": "SHA256", "checksumValue": digest}])
            self.assertNotEqual(one["licenseDeclared"], "NOASSERTION", f"scripts/licenses.txt has no row for {requirement}")

    def test_every_package_of_the_build_has_a_licence(self):
        without = [one["name"] for one in self.make()["packages"]
                   if one["SPDXID"].startswith("SPDXRef-Build-") and one["licenseDeclared"] == "NOASSERTION"]
        self.assertEqual(without, [], "scripts/licenses.txt has no row for these")

    def test_libraries_of_an_archive_are_files_with_their_origin(self):
        with tempfile.TemporaryDirectory() as work:
            bundle = Path(work)
            (bundle / "share/doc/sluice").mkdir(parents=True)
            (bundle / "lib").mkdir()
            table = "# file, folder under licenses, where it is from\n"
            for name, folder in (("lib/libsluice.so", "sluice"), ("lib/libtorch.so", "libtorch"), ("lib/libz.so.1", "zlib1g")):
                (bundle / name).write_text(name)
                table += f"{name}\t{folder}\t{folder}\n"
            (bundle / "share/doc/sluice/libraries.txt").write_text(table)
            document = self.make("--bundle", bundle)
        self.check(document)
        files = {one["fileName"]: one for one in document["files"]}
        self.assertEqual(sorted(files), ["./lib/libsluice.so", "./lib/libtorch.so", "./lib/libz.so.1"])
        self.assertIn({"algorithm": "SHA256", "checksumValue": hashlib.sha256(b"lib/libz.so.1").hexdigest()},
                      files["./lib/libz.so.1"]["checksums"])
        origins = {one["spdxElementId"]: one["relatedSpdxElement"] for one in document["relationships"]
                   if one["relationshipType"] == "GENERATED_FROM"}
        self.assertEqual(origins, {"SPDXRef-File-lib-libsluice.so": "SPDXRef-Package-sluice",
                                   "SPDXRef-File-lib-libtorch.so": "SPDXRef-Pinned-torch",
                                   "SPDXRef-File-lib-libz.so.1": "SPDXRef-Debian-zlib1g"})


if __name__ == "__main__":
    unittest.main()
