"""azure_test.py PROGRAM: Azure Blob Storage as a user meets it, against a fake that computes each request's signature once
more with the signer of Microsoft's azure-storage-blob. Run by a Python with that package."""

import base64
import hashlib
import json
import sys
import tempfile
import threading
import urllib.parse
import xml.etree.ElementTree
from pathlib import Path
from types import SimpleNamespace
from xml.sax.saxutils import escape

try:
    from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
except ImportError:
    print("skipped: the Python package azure-storage-blob is not there (scripts/setup installs it)")
    sys.exit(77)

from support import Handler, Program, Server, check, closing, failures, logs_of_a_run, md5, part_of, random_file

ACCOUNT, CONTAINER = "account1", "box"
KEY = base64.b64encode(b"a key of 64 bytes, as Azure makes them " * 2).decode()
SAS, TOKEN = "sv=2021-12-02&sp=rwl&sig=a%2Bsecret%3D", "a bearer token"


class Fake(Handler):
    """Block blobs in memory."""

    def refusal(self):
        server, authorization = self.server, self.headers.get("Authorization", "")
        query = urllib.parse.urlsplit(self.path).query
        if authorization.startswith("SharedKey "):
            headers = {name: value for name, value in self.headers.items() if name.lower() != "authorization"}
            if headers.get("Content-Length") == "0":
                headers.pop("Content-Length")
            request = SimpleNamespace(method=self.command, url="http://host" + self.path, headers=headers,
                                      query=dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
            pipeline = SimpleNamespace(http_request=request, context=SimpleNamespace(transport=None))
            policy = SharedKeyCredentialPolicy(ACCOUNT, KEY)
            # As its on_request, which sends x-ms-range and so never signs a Range.
            names = ("content-encoding content-language content-length content-md5 content-type date if-modified-since "
                     "if-match if-none-match if-unmodified-since range").split()
            text = policy._get_verb(pipeline) + policy._get_headers(pipeline, names)
            text += policy._get_canonicalized_headers(pipeline) + policy._get_canonicalized_resource(pipeline)
            policy._add_authorization_header(pipeline, text + policy._get_canonicalized_resource_query(pipeline))
            return None if headers["Authorization"] == authorization else "AuthenticationFailed"
        if "sig=" in query:
            return None if query.endswith(SAS) else "AuthenticationFailed"
        if authorization:
            return None if authorization == "Bearer " + TOKEN else "AuthenticationFailed"
        return None if server.public else "NoAuthenticationInformation"

    def error(self, status, code):
        body = f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code} it is.\nRequestId:1</Message></Error>"
        self.reply(status, b"" if self.command == "HEAD" else body.encode(), [("x-ms-error-code", code)])

    def answer(self):
        server, body = self.server, self.body()
        refusal = self.refusal()
        if refusal:
            server.refused.append((self.command, self.path, refusal))
            return self.error(403, refusal)
        if "x-ms-version" not in self.headers:
            return self.error(400, "MissingRequiredHeader")
        with server.lock:
            fault = server.faults.pop(0) if server.faults else None
            if fault == 503:
                return self.error(503, "ServerBusy")
            if fault == "reset":
                self.close_connection = True
                return self.connection.close()
            answer = self.act(body)
        if fault == "lost":
            self.close_connection = True
            return self.connection.close()
        if isinstance(answer[1], str):
            return self.error(*answer)
        return self.reply(*answer)

    do_GET = do_PUT = do_HEAD = do_DELETE = answer

    def act(self, body):
        server = self.server
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        _, account, container, *name = urllib.parse.unquote(url.path).split("/", 3)
        if (account, container) != (ACCOUNT, CONTAINER):
            return 404, "ContainerNotFound"
        if query.get("comp") == "list":
            return self.listing(query)
        name = name[0]
        blob = server.blobs.get(name)
        tag = blob and blob["tag"]
        if blob and query.get("comp") == "blocklist" and self.command == "GET":
            # A blob that was put whole has no blocks.
            items = "".join(f"<Block><Name>{identity}</Name><Size>{len(part)}</Size></Block>"
                            for identity, part in blob["blocks"])
            text = f"<?xml version=\"1.0\"?><BlockList><CommittedBlocks>{items}</CommittedBlocks></BlockList>"
            return 200, text.encode(), [("ETag", tag)]
        if self.headers.get("If-Match", tag) != tag:
            return 412, "ConditionNotMet"
        if self.headers.get("If-None-Match") == "*" and blob and self.command == "PUT":
            return 409, "BlobAlreadyExists"
        if self.command == "PUT":
            return self.put(name, query, body)
        if not blob:
            return 404, "BlobNotFound"
        if self.command == "DELETE":
            del server.blobs[name]
            return 202, b""
        status, part, headers = part_of(blob["bytes"], self.headers.get("Range"))
        headers += [("ETag", tag), ("x-ms-copy-status", "success")]
        if blob["md5"]:
            headers.append(("Content-MD5" if status == 200 else "x-ms-blob-content-md5", blob["md5"]))
        return status, part, headers

    def put(self, name, query, body):
        server, given = self.server, self.headers.get("Content-MD5")
        computed = base64.b64encode(hashlib.md5(body).digest()).decode()
        if given and given != computed:
            return 400, "Md5Mismatch"
        if name.endswith(".log") and query.get("comp") != "blocklist":
            server.log_bytes += len(body)
        stored, blocks = computed, []
        if "x-ms-copy-source" in self.headers:
            source = urllib.parse.unquote(self.headers["x-ms-copy-source"].split("?")[0]).split("/", 5)[5]
            body, stored, blocks = (server.blobs[source][key] for key in ("bytes", "md5", "blocks"))
        elif query.get("comp") == "block":
            server.blocks[name, query["blockid"]] = body
            return 201, b""
        elif query.get("comp") == "blocklist":
            held = dict(server.blobs[name]["blocks"]) if name in server.blobs else {}
            fresh = {identity: part for (blob, identity), part in server.blocks.items() if blob == name}
            for node in xml.etree.ElementTree.fromstring(body):
                part = (held if node.tag == "Committed" else fresh).get(node.text)
                if part is None:
                    return 400, "InvalidBlockList"
                blocks.append((node.text, part))
                server.kept_blocks += node.tag == "Committed"
            body, stored = b"".join(part for _, part in blocks), self.headers.get("x-ms-blob-content-md5")
            server.blocks = {key: part for key, part in server.blocks.items() if key[0] != name}
        elif self.headers.get("x-ms-blob-type") != "BlockBlob":
            return 400, "MissingRequiredHeader"
        server.number += 1
        tag = f'"0x8D{server.number:04X}"'
        server.blobs[name] = {"bytes": body, "md5": stored, "tag": tag, "blocks": blocks}
        return 201, b"", [("ETag", tag), ("x-ms-copy-status", "success")]

    def listing(self, query):
        prefix, flat = query.get("prefix", ""), query.get("delimiter") == "/"
        names = sorted(name for name in self.server.blobs
                       if name.startswith(prefix) and not (flat and "/" in name[len(prefix):]))
        begin = int(query.get("marker") or 0)
        items = "".join(f"<Blob><Name>{escape(name)}</Name><Properties><Content-Length>"
                        f"{len(self.server.blobs[name]['bytes'])}</Content-Length>"
                        f"<Etag>{self.server.blobs[name]['tag'].strip(chr(34))}</Etag></Properties></Blob>"
                        for name in names[begin:begin + 3])
        more = f"<NextMarker>{begin + 3}</NextMarker>" if begin + 3 < len(names) else "<NextMarker />"
        return 200, f"<?xml version=\"1.0\"?><EnumerationResults><Blobs>{items}</Blobs>{more}</EnumerationResults>".encode()


class Identity(Handler):
    """An app's endpoint of managed identities."""

    def do_GET(self):
        if self.headers.get("X-IDENTITY-HEADER") != "an identity header":
            return self.reply(403)
        check("resource=https%3A%2F%2Fstorage.azure.com%2F" in self.path, "the resource in", self.path)
        return self.reply(200, json.dumps({"access_token": TOKEN, "expires_in": "3599"}).encode())


def start_fake():
    fake = Server(Fake)
    fake.lock, fake.refused, fake.faults, fake.blobs, fake.blocks = threading.Lock(), [], [], {}, {}
    fake.number, fake.public, fake.log_bytes, fake.kept_blocks = 0, False, 0, 0
    return fake


def there_and_back(run, fake, root, work):
    for number, name in enumerate(["plain.bin", "a b+c&d=é%20.bin", "deep/er/x.bin", "comma,(x)!'~.bin"]):
        source = random_file(work / "source.bin", 1000 + number, number)
        run("data", "cp", source, f"{root}/odd/{name}")
        check(fake.blobs.get("odd/" + name, {}).get("bytes") == source.read_bytes(), "stored under", name)
        run("data", "cp", f"{root}/odd/{name}", work / "back.bin", "--overwrite")
        check((work / "back.bin").read_bytes() == source.read_bytes(), "read back from", name)
    run("data", "cp", f"{root}/odd/**", f"{work}/all/")
    check(len(list((work / "all").iterdir())) == 4, "listed with **, in two pages")
    large = random_file(work / "large.bin", (40 << 20) + 7, 1)
    run("data", "cp", large, f"{root}/large.bin")
    run("data", "cp", f"{root}/large.bin", f"{root}/copies/")
    run("data", "cp", f"{root}/copies/large.bin", work / "large_back.bin")
    check(md5(work / "large_back.bin") == md5(large), "in blocks, copied, read in ranges")
    refused = run("data", "cp", large, f"{root}/large.bin", status=1)
    check("--overwrite" in refused, "over a blob that is there:", refused)
    check(not fake.refused, "signatures that azure-storage-blob computes differently:", fake.refused)
    missing = run("data", "cp", f"{root}/none", work / "none", status=1)
    check("no such blob" in missing, "a missing blob:", missing)


def faults(run, fake, root, work):
    large = work / "large.bin"
    for wanted in ([503], [None, "reset"], [None, 503, None, "reset"]):
        fake.faults = list(wanted)
        run("data", "cp", f"{root}/large.bin", work / "large_back.bin", "--overwrite")
        check(md5(work / "large_back.bin") == md5(large), "read in spite of", wanted)
    for fault in (503, "lost"):
        for place in range(6):
            fake.blobs.pop("up", None)
            fake.faults = [None] * place + [fault]
            run("data", "cp", large, f"{root}/up")
            check(fake.blobs["up"]["bytes"] == large.read_bytes(), "uploaded in spite of", fault, "at request", place)
    fake.faults = [None, "lost"]
    run("data", "cp", work / "source.bin", f"{root}/conditional")
    fake.faults = []
    kept = fake.blobs["large.bin"]["bytes"]
    fake.blobs["large.bin"]["bytes"] = kept[:99] + bytes([kept[99] ^ 1]) + kept[100:]
    said = run("data", "cp", f"{root}/large.bin", work / "damaged", status=1)
    check("do not fit its md5" in said, "a flipped bit:", said)
    fake.blobs["large.bin"]["bytes"] = kept


def credentials(run, fake, root, work):
    get = ("data", "cp", f"{root}/odd/plain.bin", work / "x", "--overwrite")
    endpoint = f"{fake.address}/{ACCOUNT}"
    bare = {"AZURE_STORAGE_CONNECTION_STRING": None, "AZURE_STORAGE_SERVICE_ENDPOINT": endpoint}
    run(*get, **bare, AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=KEY)
    run(*get, **bare, AZURE_STORAGE_SAS_TOKEN="?" + SAS)
    run("data", "cp", work / "source.bin", f"{root}/by_sas", **bare, AZURE_STORAGE_SAS_TOKEN=SAS)
    said = run(*get, **bare, AZURE_STORAGE_SAS_TOKEN="sig=x", status=1)
    check("AuthenticationFailed" in said and "shared access signature" in said, "a wrong signature:", said)
    said = run(*get, **bare, AZURE_STORAGE_ACCOUNT="other", AZURE_STORAGE_KEY=KEY, status=1)
    check("not account1's" in said, "another account's key:", said)
    said = run(*get, **bare, AZURE_STORAGE_KEY="not/base64!", status=1)
    check("not base64" in said, "a key that is none:", said)
    said = run(*get, **bare, status=1)
    check("AZURE_STORAGE_KEY" in said and "managed identity" in said, "no credentials:", said)
    fake.public = True
    run(*get, **bare)
    fake.public = False
    with closing(Server(Identity)) as identity:
        run(*get, **bare, IDENTITY_ENDPOINT=identity.address + "/token", IDENTITY_HEADER="an identity header")


def main(program):
    with tempfile.TemporaryDirectory() as folder, closing(start_fake()) as fake:
        work, root = Path(folder), f"az://{ACCOUNT}/{CONTAINER}"
        connection = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={fake.address}/{ACCOUNT};"
        run = Program(program, [KEY, "a%2Bsecret", TOKEN], AZURE_STORAGE_CONNECTION_STRING=connection, HOME=folder)
        there_and_back(run, fake, root, work)
        size = logs_of_a_run(run, root, work)
        # There are two copiers, and the later one sends its piece in vain.
        check(fake.kept_blocks > 0 and fake.log_bytes < 4 * size, "logs of", size, "bytes took", fake.log_bytes)
        faults(run, fake, root, work)
        credentials(run, fake, root, work)
    print(f"{len(failures)} failures" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
