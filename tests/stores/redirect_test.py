"""redirect_test.py PROGRAM: what a server that was asked by https may lead on to, and what goes along: nothing."""

import io
import ssl
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from support import Handler, Program, Server, check, closing, failures, part_of

TOKEN = "hf_a_secret_token"


class Plain(Handler):
    """Where a redirect leads: it counts who comes, and with what."""

    def do_GET(self):
        if self.path.split("?")[0] not in ("/x", "/x.tar"):
            return self.reply(404, b"", [])
        self.server.asked += 1
        self.server.secrets += "Authorization" in self.headers or "Cookie" in self.headers
        status, content, headers = part_of(self.server.content, self.headers.get("Range"))
        self.reply(status, content, headers + [("ETag", '"1"')])

    do_HEAD = do_GET


class Leading(Handler):
    def do_GET(self):
        headers = [("Location", self.server.target + "/x?sig=hush")]
        if "/resolve/" in self.path:
            headers += [("X-Repo-Commit", "0" * 40), ("X-Linked-Size", str(self.server.size)), ("X-Linked-Etag", '"1"')]
        self.reply(302, b"", headers)

    do_HEAD = do_GET


def small_shard():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("0.txt", "1.txt"):
            member = tarfile.TarInfo(name)
            member.size = 5
            tar.addfile(member, io.BytesIO(b"words"))
    return out.getvalue()


def secured(server, context):
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.address = server.address.replace("http:", "https:")
    return server


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", work / "key.pem", "-out",
             work / "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
            capture_output=True, check=False)
        if made.returncode != 0:
            sys.exit(77)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(work / "cert.pem", work / "key.pem")
        with (closing(Server(Plain)) as plain, closing(secured(Server(Plain), context)) as other,
              closing(secured(Server(Leading), context)) as leading):
            plain.content = other.content = small_shard()
            leading.size = len(plain.content)
            plain.asked = plain.secrets = other.asked = other.secrets = 0
            run = Program(program, [TOKEN, "hush"], SSL_CERT_FILE=str(work / "cert.pem"), HF_ENDPOINT=leading.address,
                          HF_TOKEN=TOKEN, HOME=folder)
            for source in (leading.address + "/a.tar", "hf://datasets/o/n/a.tar"):
                (work / "x").unlink(missing_ok=True)
                leading.target = plain.address
                said = run("data", "cp", source, work / "x", status=1)
                check("from https on to an address without it" in said, "a redirect to http:", source, said)
                check(plain.asked == 0, "http was asked by", source)
                leading.target = other.address
                run("data", "cp", source, work / "x", "--overwrite")
                check((work / "x").read_bytes() == plain.content, "a redirect to https:", source)
            check(other.asked > 0 and other.secrets == 0, "a secret went along:", other.asked, other.secrets)
            # The program's own lists and complaints show no signature either: Program looks for it.
            for query in ("X-Amz-Signature=hush", "sv=1&sig=hush"):
                for verb in (("ls",), ("ls", "--json"), ("verify",), ("cat",), ("stats",)):
                    run("data", *verb, f"{other.address.replace('//', '//me:hush@')}/x.tar?{query}")
            run("data", "ls", "https://127.0.0.1:1/x.tar?sig=hush", status=1)
    print(f"{len(failures)} failures" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
