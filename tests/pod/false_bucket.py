"""A bucket "b" of Cloud Storage and a machine's metadata service, for the tests of --sync-bucket: what this machine uploads
and what the hosts read is counted."""

import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "a-token-of-the-service-account"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def facts(self, name):
        return json.dumps({"name": name, "size": str(len(self.server.objects[name])), "generation": "7"}).encode()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        self.server.parts[query["name"]] = b""
        self.reply(200, Location=f"{self.server.address}/part/{urllib.parse.quote(query['name'])}")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.refuses_uploads:
            return self.reply(403, b'{"error": {"code": 403, "message": "storage.objects.create denied"}}')
        name = urllib.parse.unquote(self.path.removeprefix("/part/"))
        self.server.parts[name] += body
        self.server.uploaded += len(body)
        if self.headers["Content-Range"].rsplit("/", 1)[1] != str(len(self.server.parts[name])):
            return self.reply(308, Range=f"bytes=0-{len(self.server.parts[name]) - 1}")
        self.server.objects[name] = self.server.parts.pop(name)
        self.server.names.add(name)
        return self.reply(200, self.facts(name))

    def do_GET(self):
        if self.path.startswith("/computeMetadata/v1/instance/service-accounts/default/token"):
            ours = self.headers.get("Metadata-Flavor") == "Google" and self.server.has_token
            return self.reply(200 if ours else 404, json.dumps({"access_token": TOKEN, "expires_in": 3599}).encode())
        found = re.fullmatch(r"/(?:download/)?storage/v1/b/b/o/([^?]*)\??(.*)", self.path)
        name = urllib.parse.unquote(found.group(1)) if found else ""
        if name not in self.server.objects:
            return self.reply(404, b"{}")
        if "alt=media" not in found.group(2):
            return self.reply(200, self.facts(name))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401, b"{}")
        self.server.reads += 1
        content = self.server.objects[name]
        return self.reply(200, content[:-1] + bytes([content[-1] ^ 1]) if self.server.damages else content)

    def do_DELETE(self):
        if self.path.startswith("/part/"):
            return self.reply(499)  # an upload that is given up
        name = urllib.parse.unquote(self.path.split("/o/", 1)[1].split("?")[0])
        return self.reply(204 if self.server.objects.pop(name, None) is not None else 404)


class Bucket(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.objects, self.parts, self.names = {}, {}, set()
        self.uploaded = self.reads = 0
        self.has_token, self.damages, self.refuses_uploads = True, False, False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def variables(self):
        """Of this machine and of the hosts."""
        return {"STORAGE_EMULATOR_HOST": self.address, "GCE_METADATA_HOST": self.address.removeprefix("http://")}
