"""Workers of the fake's nodes on this machine: a real sshd for each on a loopback address, in a network namespace of the
test's own, with process ids of its own. Needs root."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "common"))
from metadata_server import MetadataServer  # noqa: E402

SSHD = "/usr/sbin/sshd"


def why_not():
    """What is missing on this machine, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "unshare", "ssh", "scp", "ssh-keygen", "curl", SSHD):
        if not shutil.which(program):
            return f"{program} is not installed"
    done = subprocess.run(["unshare", "-n", "unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True)
    return f"no namespace can be made: {done.stderr.strip()}" if done.returncode != 0 else None


def enter_network():
    """This program again, in a network of its own."""
    if os.environ.get("SLUICE_TEST_NETWORK") != "own":
        os.environ["SLUICE_TEST_NETWORK"] = "own"
        os.execvp("unshare", ["unshare", "-n", sys.executable, "-B", *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Workers:
    """Hosts 0 … count-1, each at an address. The keys that a node's metadata has open them, as on a Cloud TPU, where an
    agent takes them over: call follow(google) for that."""

    def __init__(self, work, count, mark):
        self.work, self.count, self.mark, self.daemons = Path(work), count, mark, {}
        self.stopping = threading.Event()
        Path("/run/sshd").mkdir(exist_ok=True)
        for n in range(count):
            self.home(n).mkdir()
            self.keys_file(n).touch(mode=0o600)
            self.make_host_key(n)
            self.start(n)

    def address(self, n):
        return f"127.0.1.{n + 1}"

    def home(self, n):
        return self.work / f"home{n}"

    def keys_file(self, n):
        return self.work / f"authorized_keys{n}"

    def make_host_key(self, n):
        path = self.work / f"host_key{n}"
        for old in (path, path.with_suffix(".pub")):
            old.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)

    def start(self, n):
        config = self.work / f"sshd{n}"
        config.write_text(f"""ListenAddress {self.address(n)}:22
HostKey {self.work}/host_key{n}
AuthorizedKeysFile {self.keys_file(n)}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
Subsystem sftp internal-sftp -d {self.home(n)}
SetEnv {self.mark} HOME={self.home(n)} XDG_STATE_HOME={self.home(n)}/state
""")
        log = self.work / f"sshd{n}.log"
        end = time.monotonic() + 20
        daemon = None
        while "listening" not in (said := log.read_text() if daemon else ""):
            if time.monotonic() > end:
                raise AssertionError(f"sshd {n}: {said}")
            # One that was stopped just now may still hold the port: the end of a namespace takes a moment.
            if daemon is None or daemon.poll() is not None and "already in use" in said:
                with log.open("w") as file:
                    daemon = self.daemons[n] = subprocess.Popen(
                        ["unshare", "-pf", "--mount-proc", "--kill-child", SSHD, "-D", "-e", "-f", str(config)],
                        stderr=file)
            time.sleep(0.02)

    def stop(self, n):
        """Takes the machine away, with all that runs on it."""
        daemon = self.daemons.pop(n, None)
        if daemon:
            daemon.kill()
            daemon.wait()

    def described(self, numbers):
        """As the fake's configuration wants hosts."""
        return [{"ip": self.address(n), "external": self.address(n),
                 "host_keys": dict([(self.work / f"host_key{n}.pub").read_text().split()[:2]])} for n in numbers]

    def follow(self, google):
        """The agent: a thread that takes the keys of all nodes' metadata over."""
        def run():
            while not self.stopping.wait(0.1):
                try:
                    entries = [keys_of(thing["body"].get("metadata", {})) for kind in ("tpu.nodes", "compute.instances")
                               for thing in google.things(kind).values()]
                except Exception:
                    continue
                lines = [line.split(":", 1)[1] for entry in entries for line in entry.splitlines() if ":" in line]
                for n in range(self.count):
                    if self.keys_file(n).read_text().splitlines() != lines:
                        # At once: sshd may look at any time.
                        whole = self.keys_file(n).with_suffix(".new")
                        whole.write_text("".join(line + "\n" for line in lines))
                        whole.replace(self.keys_file(n))
        self.agent = threading.Thread(target=run, daemon=True)
        self.agent.start()

    def close(self):
        self.stopping.set()
        for n in list(self.daemons):
            self.stop(n)


def keys_of(metadata):
    """Of a node, or of an instance of Compute Engine."""
    items = {item["key"]: item["value"] for item in metadata.get("items", [])} if "items" in metadata else metadata
    return items.get("ssh-keys", "")


class Metadata(MetadataServer):
    """That of a machine with a service account."""
    TOKEN = "ya29.of-the-machine"

    def __init__(self):
        account = "instance/service-accounts/default/"
        super().__init__({account + "token": json.dumps({"access_token": Metadata.TOKEN, "expires_in": 3000,
                                                         "token_type": "Bearer"}),
                          account + "email": "machine@p.iam.gserviceaccount.com"})
