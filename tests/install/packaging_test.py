"""The drafts in packaging/ and CITATION.cff have the version of the sources, and name packages that the sources ask for."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(sluice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
# Debian packages of scripts/packages.txt that the shard reader's build leaves out: an allocator, and LibTorch's rooms.
NOT_OF_THE_READER = {"libjemalloc-dev", "libdnnl-dev"}


def first(pattern, file):
    found = re.search(pattern, (ROOT / file).read_text(), re.M)
    return found[1] if found else None


class Packaging(unittest.TestCase):
    def test_all_have_the_version_of_the_sources(self):
        self.assertEqual(json.loads((ROOT / "packaging/vcpkg/vcpkg.json").read_text())["version-semver"], VERSION)
        for pattern, file in ((r"^version: (\S+)$", "CITATION.cff"),
                              (r'^  version: "(\S+)"$', "packaging/conda-forge/recipe.yaml"),
                              (r"^sluice \((\S+)-\d+\)", "packaging/debian/debian/changelog")):
            self.assertEqual(first(pattern, file), VERSION, file)

    def test_debian_asks_for_what_setup_installs(self):
        control = (ROOT / "packaging/debian/debian/control").read_text()
        asked = set(re.findall(r"[a-z][a-z0-9.+-]*-dev\b", re.search(r"^Build-Depends:(.*?)^\S", control, re.M | re.S)[1]))
        listed = {line for line in (ROOT / "scripts/packages.txt").read_text().split() if line.endswith("-dev")}
        listed = {"libjpeg-dev" if name == "libjpeg62-turbo-dev" else name for name in listed}
        self.assertEqual(asked, listed - NOT_OF_THE_READER)

    def test_the_options_that_they_set_exist(self):
        options = set(re.findall(r"^option\((\w+)", (ROOT / "CMakeLists.txt").read_text(), re.M))
        for file in ("vcpkg/portfile.cmake", "conda-forge/recipe.yaml", "debian/debian/rules", "fetchcontent/CMakeLists.txt"):
            named = set(re.findall(r"(?:-D|set\()(SLUICE_(?:TORCH|TESTS|WERROR|JEMALLOC)\w*)", (ROOT / "packaging" / file).read_text()))
            self.assertTrue(named and named <= options, (file, named))

    def test_each_has_a_page_that_says_what_was_tried(self):
        for folder in sorted(path for path in (ROOT / "packaging").iterdir() if path.is_dir()):
            self.assertIn("**What was tried.**", (folder / "README.md").read_text(), folder.name)


if __name__ == "__main__":
    unittest.main()
