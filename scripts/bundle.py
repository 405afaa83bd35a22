"""scripts/bundle.py PREFIX [--link] [--system]: makes an installation whole: all that its program and library need comes
into it.

PREFIX is what `cmake --install` made. Added are LibTorch (lib/sluice/libtorch), XLA's CPU plugin (lib/sluice), every
shared library beyond the base system (lib), the examples and the handwritten digits (share/sluice), recipes/ where there
are some, and the documents and the licences of it all (share/doc/sluice). --link makes hard links of files that stay as
they are, where it can. --system leaves out what this machine's packages have: for an installation that stays on it.
Needs Debian's dpkg-query, binutils and, without --system, patchelf.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from elf import BASE_SYSTEM, Elf, elf_files, is_elf  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
# Loaded by name when a program runs (sluice/kernels/onednn.cc), so no file's headers name it.
LOADED_LATER = ["libdnnl.so.2"]
# Headers of other packages that Sluice's own include.
PUBLIC_HEADERS = ["tl/expected.hpp"]
# Wheels whose licences are not in them.
XLA_NOTE = """The plugin xla_cpu_pjrt.so is XLA (https://github.com/openxla/xla), Copyright The OpenXLA Authors, under the
Apache License 2.0 (../common-licenses/Apache-2.0). The wheel xla-cpu-pjrt, whose file it is, holds no licence texts of
what is linked into it (among others LLVM, Abseil, Protocol Buffers, Eigen and oneDNN): XLA's repository names them.
"""
DIGITS_NOTE = """digits.csv.gz is the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998,
UCI Machine Learning Repository, https://doi.org/10.24432/C50P49, CC BY 4.0), as scikit-learn (BSD-3-Clause) has it.
"""


def fail(text):
    sys.exit(f"bundle: {text}")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


class Bundle:
    def __init__(self, prefix, link, system):
        self.system = system
        self.prefix = prefix
        self.libraries = prefix / "lib"
        self.documents = prefix / "share/doc/sluice"
        self.licenses = self.documents / "licenses"
        self.copy_file = self.link_or_copy if link else self.copy
        self.origins = {}  # path in the prefix -> (folder of its licence, where it is from)

    @staticmethod
    def copy(source, target):
        shutil.copy2(source, target)

    @staticmethod
    def link_or_copy(source, target):
        try:
            os.link(os.path.realpath(source), target)
        except OSError:
            shutil.copy2(source, target)

    def copy_tree(self, source, target):
        shutil.copytree(source, target, copy_function=self.copy_file,
                        ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), dirs_exist_ok=True)

    @staticmethod
    def fresh(folder):
        """An empty folder: what an earlier installation left in it goes."""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder

    def add_torch(self, torch):
        """The libraries that libtorch.so needs, not those of its Python and its tests; all headers."""
        version = re.search(r'PACKAGE_VERSION "(\S+)"',
                            (torch / "share/cmake/Torch/TorchConfigVersion.cmake").read_text())[1]
        target = self.fresh(self.libraries / "sluice/libtorch")
        (target / "lib").mkdir()
        todo = ["libtorch.so"]
        while todo:
            name = todo.pop()
            if (torch / "lib" / name).exists() and not (target / "lib" / name).exists():
                self.copy_file(torch / "lib" / name, target / "lib" / name)
                # GCC's library, with the licence of Debian's package of it.
                folder = "libgomp1" if name.startswith("libgomp") else "libtorch"
                self.origins[target / "lib" / name] = (folder, f"LibTorch {version}")
                todo += Elf(target / "lib" / name).needed
        for folder in ("include", "share"):
            self.copy_tree(torch / folder, target / folder)
        licenses = torch_licenses(torch, version)
        if licenses:
            self.copy_tree(licenses, self.licenses / "libtorch")
        elif not self.system:  # what is given to others has them; a LibTorch of the user's own may come without
            fail(f"the licences of LibTorch {version} were not found: delete {DEPS / 'torch'} and run scripts/setup again")
        self.add_copyright("libgomp1")

    def add_plugin(self, folder):
        if not folder.is_dir():
            fail(f"{folder} is missing: run scripts/setup")
        target = self.fresh(self.libraries / "sluice/xla_cpu_pjrt")
        self.copy_tree(folder, target)
        for path in elf_files(target):
            self.origins[path] = ("xla_cpu_pjrt", "XLA's CPU plugin")
        self.note("xla_cpu_pjrt", XLA_NOTE)

    def add_libraries(self):
        """What the files in bin and lib need, and what that needs, under the name by which it is asked for."""
        own = [path for folder in ("bin", "lib") for path in sorted((self.prefix / folder).iterdir()) if is_elf(path)]
        for path in own:
            self.origins[path] = ("sluice", "Sluice")
        torch = {path.name for path in (self.libraries / "sluice/libtorch/lib").iterdir()}
        places = system_libraries()
        todo = LOADED_LATER + [name for path in own for name in Elf(path).needed]
        while todo:
            name = todo.pop()
            target = self.libraries / name
            if name in BASE_SYSTEM or name in torch or target.exists():
                continue
            if name not in places:
                fail(f"{name} is needed, and the loader of this machine does not know it")
            shutil.copy2(os.path.realpath(places[name]), target)
            target.chmod(0o755)
            package = package_of(places[name])
            self.origins[target] = (package, package)
            self.add_copyright(package)
            todo += Elf(target).needed
        for path in self.origins:
            if path.parent.name == "bin":
                set_run_path(path, "$ORIGIN/../lib:$ORIGIN/../lib/sluice/libtorch/lib")
            elif path.parent == self.libraries:
                set_run_path(path, "$ORIGIN:$ORIGIN/sluice/libtorch/lib")

    def add_header_libraries(self):
        """Of what is compiled into the program, the licences stand in the packages that it was compiled from."""
        for line in (ROOT / "scripts/packages.txt").read_text().splitlines():
            if re.fullmatch(r"lib\S+-dev|nlohmann-json3-dev", line):
                self.add_copyright(line)
        for header in PUBLIC_HEADERS:
            target = self.prefix / "include" / header
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path("/usr/include") / header, target)

    def add_data(self):
        share = self.prefix / "share/sluice"
        share.mkdir(parents=True, exist_ok=True)
        shutil.copy2(DEPS / "digits/digits.csv.gz", share)
        self.note("digits", DIGITS_NOTE)
        self.copy_tree(ROOT / "examples", share / "examples")
        self.copy_tree(ROOT / "docs", self.documents / "docs")
        shutil.copyfile(ROOT / "README.md", self.documents / "README.md")
        (self.licenses / "sluice").mkdir(parents=True)
        shutil.copyfile(ROOT / "LICENSE", self.licenses / "sluice/LICENSE")
        if (ROOT / "recipes").is_dir():
            self.copy_tree(ROOT / "recipes", self.prefix / "recipes")

    def add_copyright(self, package):
        source = Path("/usr/share/doc") / package / "copyright"
        if not source.exists():
            fail(f"{source} is missing: no licence of the package {package}")
        (self.licenses / package).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, self.licenses / package / "copyright")

    def note(self, folder, text):
        (self.licenses / folder).mkdir(parents=True, exist_ok=True)
        (self.licenses / folder / "NOTICE").write_text(text)

    def finish(self, whole):
        # Debian's notes name these files instead of repeating them.
        shutil.copytree("/usr/share/common-licenses", self.licenses / "common-licenses", dirs_exist_ok=True,
                        ignore=lambda folder, names: [n for n in names if (Path(folder) / n).is_symlink()])
        rows = [f"{path.relative_to(self.prefix)}\t{folder}\t{origin}\n"
                for path, (folder, origin) in sorted(self.origins.items())]
        (self.documents / "libraries.txt").write_text("# file, folder under licenses, where it is from\n" + "".join(rows))
        for path in self.prefix.rglob("*") if whole else []:
            if not path.is_symlink() and path.stat().st_nlink == 1:
                path.chmod(0o755 if path.is_dir() or is_elf(path) else 0o644)


def torch_licenses(torch, version):
    """The folder of LibTorch's licences, or None: of a wheel unpacked by setup, of a Python package, of an unpacked LibTorch."""
    packages = [torch.resolve().parent, *(DEPS / "python/lib").glob("python3*/site-packages")]
    of_packages = [found for package in packages for found in package.glob(f"torch-{version}*.dist-info/licenses")]
    for folder in [torch / "licenses", *of_packages]:
        if folder.is_dir():
            return folder
    return None


def system_libraries():
    """{name: path} of the libraries that this machine's loader knows, of its own machine type."""
    kinds = {"x86_64": "x86-64", "aarch64": "AArch64"}
    rows = re.findall(r"^\t(\S+) \(([^)]*)\) => (\S+)$", output_of("/sbin/ldconfig", "-p"), re.M)
    places = {}
    for name, kind, path in rows:
        if kinds[os.uname().machine] in kind:
            places.setdefault(name, path)
    return places


def package_of(path):
    """The Debian package that a file is from; /lib may be a link to /usr/lib."""
    for name in (path, os.path.realpath(path), re.sub("^/usr/lib/", "/lib/", os.path.realpath(path))):
        answer = output_of("dpkg-query", "-S", name)
        if answer:
            return answer.split(":")[0]
    fail(f"{path} belongs to no Debian package, so its licence is not known")


def set_run_path(path, folders):
    subprocess.run(["patchelf", "--set-rpath", folders, str(path)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--link", action="store_true")
    parser.add_argument("--system", action="store_true")
    parser.add_argument("--torch", type=Path, default=DEPS / "torch", help="default: .deps/torch")
    arguments = parser.parse_args()
    for tool in ("objdump", "dpkg-query", *([] if arguments.system else ["patchelf"])):
        if not shutil.which(tool):
            fail(f"{tool} was not found: run scripts/setup --dist")
    bundle = Bundle(arguments.prefix.resolve(), arguments.link, arguments.system)
    bundle.add_torch(arguments.torch)
    # For machines other than x86_64 no CPU plugin is published; they may have another one.
    if (DEPS / "xla_cpu_pjrt").is_dir() or not arguments.system:
        bundle.add_plugin(DEPS / "xla_cpu_pjrt")
    if not arguments.system:
        bundle.add_libraries()
        bundle.add_header_libraries()
        bundle.add_data()
    bundle.finish(whole=not arguments.system)


if __name__ == "__main__":
    main()
