"""scripts/sbom.py FILE --commit COMMIT [--bundle FOLDER]: writes what a release consists of, as SPDX 2.3 in JSON.

Packages are Sluice itself, the files that setup downloads (scripts/pins.txt, with their hashes), the Debian packages that
it is compiled with (scripts/packages.txt), and the Python packages of the tests (scripts/python-test.lock). With --bundle,
an unpacked archive of scripts/dist, also every library in it with its hash, and the package that it is from. Licences are
those of scripts/licenses.txt; a package that is not there has NOASSERTION, and its texts are in the archive. The time is
SOURCE_DATE_EPOCH. The format is https://spdx.github.io/spdx-spec/v2.3/.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTHING = "NOASSERTION"
OWN = "SPDXRef-Package-sluice"
# Pins that the archive has parts of: the folder of its licence there, and that of the pin.
IN_ARCHIVE = {"libtorch": "torch", "xla_cpu_pjrt": "xla_cpu_pjrt"}
# What else setup fetches, and for what: the usual ones are what Sluice is built with.
RELATIONS = {"digits": "DATA_FILE_OF", "libtpu": "OPTIONAL_DEPENDENCY_OF", "torch_gpu": "DEV_DEPENDENCY_OF",
             "torch_2.14": "TEST_DEPENDENCY_OF", "cuda_cupti": "TEST_DEPENDENCY_OF", "cuda_runtime": "TEST_DEPENDENCY_OF"}


def reference(kind, name):
    """An identifier of SPDX, of letters, digits, dots and dashes."""
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def rows(file):
    lines = (ROOT / file).read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def licenses():
    return {row[0]: " ".join(row[1:]) for row in rows("scripts/licenses.txt")}


def project_version():
    return re.search(r"^project\(sluice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def package(identifier, name, license_of, **more):
    return {"SPDXID": identifier, "name": name, "downloadLocation": NOTHING, "filesAnalyzed": False,
            "licenseConcluded": NOTHING, "licenseDeclared": license_of, "copyrightText": NOTHING, **more}


def purl(text):
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": text}]


def python_purl(name, version):
    return purl(f"pkg:pypi/{name.lower().replace('_', '-')}@{urllib.parse.quote(version)}")


def version_of_debian(name):
    return subprocess.run(["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True).stdout


class Bill:
    def __init__(self, commit):
        self.licenses = licenses()
        version = project_version()
        self.packages = [package(OWN, "sluice", "Apache-2.0", versionInfo=version, sourceInfo=f"git commit {commit}",
                                 primaryPackagePurpose="APPLICATION")]
        self.files, self.relations = [], [("SPDXRef-DOCUMENT", "DESCRIBES", OWN)]

    def license_of(self, name):
        return self.licenses.get(name, NOTHING)

    def add_pins(self):
        for folder, requirement, file, digest in rows("scripts/pins.txt"):
            name, version = requirement.split("==")
            identifier = reference("Pinned", folder)
            self.packages.append(package(
                identifier, name, self.license_of(name), versionInfo=version, packageFileName=file,
                checksums=[{"algorithm": "SHA256", "checksumValue": digest}], externalRefs=python_purl(name, version)))
            self.relations.append((identifier, RELATIONS.get(folder, "BUILD_DEPENDENCY_OF"), OWN))

    def add_build_packages(self):
        for (name,) in rows("scripts/packages.txt"):
            identifier = reference("Build", name)
            self.packages.append(package(identifier, name, self.license_of(name), externalRefs=purl(f"pkg:deb/debian/{name}"),
                                         comment="a package of Debian 12"))
            kind = "BUILD_DEPENDENCY_OF" if name.endswith("-dev") else "BUILD_TOOL_OF"
            self.relations.append((identifier, kind, OWN))

    def add_test_packages(self):
        for requirement in re.findall(r"^(\S+==\S+)", (ROOT / "scripts/python-test.lock").read_text(), re.M):
            name, version = requirement.split("==")
            identifier = reference("Test", f"{name}-{version}")  # of some, a machine or a Python has another version
            self.packages.append(package(identifier, name, self.license_of(name), versionInfo=version,
                                         externalRefs=python_purl(name, version),
                                         comment="the hashes of its files are in scripts/python-test.lock"))
            self.relations.append((identifier, "TEST_DEPENDENCY_OF", OWN))

    def add_bundle(self, bundle):
        """The libraries and programs of an archive, each with where it is from."""
        for line in (bundle / "share/doc/sluice/libraries.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            path, folder, _ = line.split("\t")
            owner = self.origin(folder)
            identifier = reference("File", path)
            sums = {"SHA1": hashlib.sha1, "SHA256": hashlib.sha256}
            data = (bundle / path).read_bytes()
            self.files.append({
                "SPDXID": identifier, "fileName": f"./{path}", "licenseConcluded": NOTHING, "copyrightText": NOTHING,
                "fileTypes": ["BINARY"],
                "checksums": [{"algorithm": name, "checksumValue": made(data).hexdigest()} for name, made in sums.items()]})
            # A package whose files are not all listed may not have CONTAINS.
            self.relations += [("SPDXRef-DOCUMENT", "DESCRIBES", identifier), (identifier, "GENERATED_FROM", owner)]

    def origin(self, folder):
        """The package of a licence's folder in the archive: Sluice, a pinned wheel, or a package of Debian."""
        if folder == "sluice":
            return OWN
        if folder in IN_ARCHIVE:
            return reference("Pinned", IN_ARCHIVE[folder])
        identifier = reference("Debian", folder)
        if all(one["SPDXID"] != identifier for one in self.packages):
            version = version_of_debian(folder)
            self.packages.append(package(
                identifier, folder, self.license_of(folder), **({"versionInfo": version} if version else {}),
                externalRefs=purl(f"pkg:deb/debian/{folder}" + (f"@{urllib.parse.quote(version)}" if version else "")),
                comment=f"its licence is in the archive: share/doc/sluice/licenses/{folder}"))
            self.relations.append((OWN, "DEPENDS_ON", identifier))
        return identifier


def extracted(packages):
    """The licences that SPDX's list does not have, which a document must explain."""
    names = sorted(set(re.findall(r"LicenseRef-[\w.-]+", " ".join(one["licenseDeclared"] for one in packages))))
    return [{"licenseId": name, "name": name.removeprefix("LicenseRef-"),
             "extractedText": "SPDX's list has no such licence. Its text is in the package that it applies to."}
            for name in names]


def document(bill, name, commit):
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    made = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    listed = {"packages": bill.packages, "relationships": [
        {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in bill.relations]}
    if bill.files:
        listed["files"] = bill.files
    content = hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{commit[:12]}-{content}",
            "creationInfo": {"created": made, "creators": ["Tool: sluice-sbom"]},
            "hasExtractedLicensingInfos": extracted(bill.packages), **listed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--bundle", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    bill = Bill(arguments.commit)
    bill.add_pins()
    bill.add_build_packages()
    bill.add_test_packages()
    if arguments.bundle:
        bill.add_bundle(arguments.bundle)
    name = arguments.file.name.removesuffix(".spdx.json")
    arguments.file.write_text(json.dumps(document(bill, name, arguments.commit), indent=1) + "\n")


if __name__ == "__main__":
    main()
