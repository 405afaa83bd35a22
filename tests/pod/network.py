"""Several hosts on this machine: network namespaces on a bridge, a real sshd in each. Needs root."""

import os
import shutil
import subprocess
from pathlib import Path

from support import wait_for

COUNT = 3
NETWORK = "10.213.7"
NETWORK_6 = "fd5c:213:7:"


def why_not():
    """What is missing on this machine, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "ssh", "ssh-keygen", "/usr/sbin/sshd"):
        if not shutil.which(program):
            return f"{program} is not installed (Debian packages iproute2, openssh-client, openssh-server)"
    probe = f"slprobe{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if done.returncode != 0:
        return f"no network namespace can be made: {done.stderr.strip()}"
    links = [subprocess.run(["ip", "-n", probe, "link", "add", kind, "type", kind], capture_output=True, text=True)
             for kind in ("bridge", "veth")]
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    failed = [link.stderr.strip() for link in links if link.returncode != 0]
    return f"no bridge with cables can be made: {failed[0]}" if failed else None


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


class Network:
    """Hosts 1 to COUNT, by address(n), and by address_6(n) where the kernel has IPv6, seen from the namespace `client`. Each has a home and a state folder of its own;
    `mark` is in the environment of all that its sshd starts."""

    def __init__(self, work, mark):
        self.work, self.mark, self.daemons = Path(work), mark, {}
        self.names = [f"sl{os.getpid()}-{n}" for n in range(COUNT + 1)]
        self.client = self.names[0]
        self.has_ipv6 = Path("/proc/net/if_inet6").exists()
        try:
            self.make_namespaces()
            self.make_keys()
            for n in range(1, COUNT + 1):
                self.start_daemon(n)
        except BaseException:
            self.close()
            raise

    def address(self, n):
        return f"{NETWORK}.{n + 1}"

    def address_6(self, n):
        return f"{NETWORK_6}:{n + 1}"

    def all_addresses(self, n):
        return (self.address(n), self.address_6(n)) if self.has_ipv6 else (self.address(n),)

    def addresses(self):
        return ",".join(self.address(n) for n in range(1, COUNT + 1))

    def make_namespaces(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.client, "link", "add", "br0", "type", "bridge")
        ip("-n", self.client, "address", "add", f"{NETWORK}.1/24", "dev", "br0")
        ip("-n", self.client, "link", "set", "br0", "up")
        if self.has_ipv6:
            ip("-n", self.client, "address", "add", f"{NETWORK_6}:1/64", "dev", "br0", "nodad")
        for n in range(1, COUNT + 1):
            ip("-n", self.client, "link", "add", f"host{n}", "type", "veth", "peer", "name", "eth0", "netns",
               self.names[n])
            ip("-n", self.client, "link", "set", f"host{n}", "master", "br0", "up")
            ip("-n", self.names[n], "address", "add", f"{self.address(n)}/24", "dev", "eth0")
            if self.has_ipv6:
                ip("-n", self.names[n], "address", "add", f"{self.address_6(n)}/64", "dev", "eth0", "nodad")
            ip("-n", self.names[n], "link", "set", "eth0", "up")

    def cut(self, n):
        ip("-n", self.client, "link", "set", f"host{n}", "down")

    def make_keys(self):
        for name in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / name], check=True)
        host_key = (self.work / "host_key.pub").read_text().split()[:2]
        (self.work / "known_hosts").write_text("".join(
            f"{','.join(self.all_addresses(n))} {' '.join(host_key)}\n" for n in range(1, COUNT + 1)))
        (self.work / "ssh_config").write_text(
            f"Host *\n IdentityFile {self.work}/key\n IdentitiesOnly yes\n StrictHostKeyChecking yes\n"
            f" UserKnownHostsFile {self.work}/known_hosts\n")

    def home(self, n):
        return self.work / f"home{n}"

    def start_daemon(self, n):
        self.home(n).mkdir(exist_ok=True)
        config = self.work / f"sshd{n}"
        listen = f"ListenAddress {self.address(n)}:22\n"
        if self.has_ipv6:
            listen += f"ListenAddress [{self.address_6(n)}]:22\n"
        config.write_text(f"""{listen}HostKey {self.work}/host_key
AuthorizedKeysFile {self.work}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 3:100:3
SetEnv {self.mark} HOME={self.home(n)} XDG_STATE_HOME={self.home(n)}/state
""")
        Path("/run/sshd").mkdir(exist_ok=True)
        log = self.work / f"sshd{n}.log"
        with log.open("w") as file:
            self.daemons[n] = subprocess.Popen(
                ["ip", "netns", "exec", self.names[n], "/usr/sbin/sshd", "-D", "-e", "-f", str(config)], stderr=file)
        wait_for("sshd", lambda: log.read_text().count("listening") == 1 + self.has_ipv6)

    def sessions(self, n):
        """The processes that serve a connection to a host."""
        pid = self.daemons[n].pid
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def close(self):
        for daemon in self.daemons.values():
            daemon.terminate()
            daemon.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
