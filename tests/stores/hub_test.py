"""hub_test.py PROGRAM: hf:// as a user meets it, against a fake of the hub and of the servers that it points to."""

import hashlib
import json
import sys
import tempfile
import urllib.parse
from pathlib import Path

from support import Handler, Program, Server, check, closing, failures, md5, part_of, random_file

TOKEN, COMMIT = "hf_a_secret_token", "0123456789abcdef0123456789abcdef01234567"


class Store(Handler):
    """Where large files are: addresses that expire, and no token."""

    def do_GET(self):
        server = self.server
        url = urllib.parse.urlsplit(self.path)
        if "Authorization" in self.headers:
            server.tokens += 1
        server.asked += 1
        if url.query != f"signature={server.signature}":
            return self.reply(403, b"expired")
        if server.expire_after and server.asked == server.expire_after:
            server.signature += 1
        content = server.files[urllib.parse.unquote(url.path[1:])]
        return self.reply(*part_of(content, self.headers.get("Range")))


class Hub(Handler):
    def answer(self):
        server = self.server
        url = urllib.parse.urlsplit(self.path)
        parts = urllib.parse.unquote(url.path).split("/")
        if self.headers.get("Authorization", "") != f"Bearer {TOKEN}" and not server.public:
            return self.reply(401, b'{"error": "Repository not found"}')
        if url.path.startswith("/datasets/old/name/"):
            return self.reply(307, headers=[("Location", self.path.replace("old/name", "o/n"))])
        server.asked.append(self.path)
        if url.path.startswith("/api/datasets/o/n/tree/main"):
            return self.tree(url)
        prefix = next((p for p in ("/datasets/o/n/resolve/", "/o/model/resolve/") if url.path.startswith(p)), None)
        if prefix is None:
            return self.reply(404, b'{"error": "Repository not found"}')
        revision, path = url.path[len(prefix):].split("/", 1)
        path = urllib.parse.unquote(path)
        if revision not in ("main", COMMIT, "refs%2Fpr%2F1"):
            return self.reply(404, b'{"error": "Revision not found"}')
        if path not in server.store.files:
            return self.reply(404, b"Entry not found")
        content = server.store.files[path]
        headers = [("X-Repo-Commit", COMMIT)]
        if len(content) < 1000:  # a file of git itself
            return self.reply(200, content, headers + [("ETag", '"' + hashlib.sha1(content).hexdigest() + '"')])
        signed = f"{server.store.address}/{urllib.parse.quote(path)}?signature={server.store.signature}"
        return self.reply(302, b"", headers + [("Location", signed), ("X-Linked-Size", str(len(content))),
                                               ("X-Linked-Etag", '"' + server.sums[path] + '"')])

    do_GET = do_HEAD = answer

    def tree(self, url):
        folder = urllib.parse.unquote(url.path.removeprefix("/api/datasets/o/n/tree/main")).strip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        names = [name for name in sorted(self.server.store.files) if not folder or name.startswith(folder + "/")]
        if query.get("recursive") != "true":
            names = [name for name in names if "/" not in name[len(folder):].strip("/")]
        begin = int(query.get("cursor", 0))
        items = [{"type": "directory", "path": "a"}] if begin == 0 else []
        items += [{"type": "file", "path": name, "size": len(self.server.store.files[name]), "oid": "x"}
                  for name in names[begin:begin + 2]]
        query["cursor"] = begin + 2
        more = f'<http://{self.headers["Host"]}{url.path}?{urllib.parse.urlencode(query)}>; rel="next"'
        self.reply(200, json.dumps(items).encode(), [("Link", more)] if begin + 2 < len(names) else [])


def main(program):
    with tempfile.TemporaryDirectory() as folder, closing(Server(Store)) as store, closing(Server(Hub)) as hub:
        work = Path(folder)
        large = random_file(work / "large.bin", (40 << 20) + 7, 1)
        store.files = {"README.md": b"words", "a/b c+d.tar": large.read_bytes(), "a/second.tar": b"x" * 2000,
                       "a/deep/third.tar": b"y" * 2000, "top.tar": b"z" * 2000}
        store.tokens = store.asked = store.expire_after = 0
        store.signature, hub.store, hub.asked, hub.public = 1, store, [], False
        hub.sums = {name: hashlib.sha256(content).hexdigest() for name, content in store.files.items()}
        run = Program(program, [TOKEN], HF_ENDPOINT=hub.address, HF_TOKEN=TOKEN, HOME=folder)
        root = "hf://datasets/o/n"
        for name in (root, root + "@refs%2Fpr%2F1", f"{root}@{COMMIT}", "hf://o/model", "hf://datasets/old/name"):
            run("data", "cp", f"{name}/a/b c+d.tar", work / "back", "--overwrite")
            check(md5(work / "back") == md5(large), "read from", name)
        asked = [path for path in hub.asked if f"/resolve/{COMMIT}/" in path]
        check(asked, "the commit is pinned:", hub.asked)
        run("data", "cp", f"{root}/README.md", work / "readme")
        check((work / "readme").read_bytes() == b"words", "a small file")
        for number, (pattern, names) in enumerate((("/*.tar", {"top.tar"}), ("/a/*.tar", {"b c+d.tar", "second.tar"}),
                               ("/**.tar", {"b c+d.tar", "second.tar", "third.tar", "top.tar"}))):
            run("data", "cp", root + pattern, f"{work}/{number}/")
            found = {path.name for path in (work / str(number)).iterdir()}
            check(found == names, pattern, "gave", found)
        check(store.tokens == 0, "the token went to another host", store.tokens, "times")
        store.asked, store.expire_after = 0, 2
        run("data", "cp", f"{root}/a/b c+d.tar", work / "back", "--overwrite")
        check(md5(work / "back") == md5(large) and store.signature == 2, "an address that expired")
        store.expire_after = 0
        store.files["a/b c+d.tar"] = large.read_bytes()[:-1] + bytes([large.read_bytes()[-1] ^ 1])
        said = run("data", "cp", f"{root}/a/b c+d.tar", work / "damaged", status=1)
        check("do not fit its sha256" in said, "a flipped bit:", said)
        said = run("data", "cp", f"{root}/none.tar", work / "none", status=1)
        check("no such repository, revision or file" in said, "a missing file:", said)
        said = run("data", "cp", work / "readme", f"{root}/x", status=1)
        check("only read" in said, "writing:", said)
        said = run("data", "cp", f"{root}/top.tar", work / "x", status=1, HF_TOKEN=None)
        check("there is no token in HF_TOKEN and" in said, "no token:", said)
        (work / ".cache/huggingface").mkdir(parents=True)
        (work / ".cache/huggingface/token").write_text(TOKEN + "\n")
        run("data", "cp", f"{root}/top.tar", work / "by_file", HF_TOKEN=None)
        said = run("data", "cp", f"{root}/top.tar", work / "x", status=1, HF_ENDPOINT="http://192.0.2.1")
        check("unencrypted" in said, "a token over http:", said)
    print(f"{len(failures)} failures" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
