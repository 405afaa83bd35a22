"""The HTTP server: each request is found in the discovery documents, checked, answered by the world and logged."""

import json
import socket
import struct
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from . import admin, discovery, gate, services, storage
from .calls import ANSWERS, Call
from .faults import Faults
from .refusal import Refusal, bad_request
from .world import stamp


class Fake:
    """The world, the faults and the log that the handlers of all connections share."""

    def __init__(self, config):
        self.log_lock = threading.Lock()
        self.log_path = config.get("log")
        self.log_file = open(self.log_path, "a", buffering=1) if self.log_path else None
        self.entries = []
        self.held = 0
        self.number = 0
        self.reset(config)

    def reset(self, config):
        """A new world; the log goes on."""
        self.config = config
        self.world = services.make_world(config)
        self.faults = Faults(config.get("faults", []))

    def next_number(self):
        with self.log_lock:
            self.number += 1
            return self.number

    def log(self, entry):
        with self.log_lock:
            self.entries.append(entry)
            if self.log_file:
                self.log_file.write(json.dumps(entry) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake = None

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass

    def answer(self, status, body, headers=None):
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json; charset=UTF-8"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def cut(self, reset):
        """Ends the connection without an answer; `reset`: with RST."""
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def any_method(self):
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path.startswith("/_fake/"):
            status, body = admin.answer(self.fake, self.command, url.path, dict(parse_qsl(url.query)), raw)
            self.answer(status, body)
            return
        if url.path.startswith("/download/storage/v1/"):  # where an object's mediaLink leads
            url = url._replace(path=url.path.removeprefix("/download"))
        self.google(url, raw)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = any_method

    def google(self, url, raw):
        fake = self.fake
        number = fake.next_number()
        method, service = discovery.find_method(self.command, url.path)
        entry = {"n": number, "time": time.time(), "clock": stamp(fake.world.now()), "method": self.command,
                 "path": url.path, "query": query_of(url.query), "body": None, "service": service,
                 "method_id": method.id if method else "", "faults": [], "status": None,
                 "had_authorization": "Authorization" in self.headers,
                 "user_project": self.headers.get("x-goog-user-project"), "user_agent": self.headers.get("User-Agent"),
                 "spoilt": None}
        if service == "storage" and self.command in ("PUT", "DELETE") and "upload_id" in entry["query"]:
            entry["method_id"] = "storage.objects.insert"  # a piece of a resumable upload
        spoil = fake.faults.of(number, self.command, url.path, entry["method_id"])
        kind = spoil["kind"] if spoil else None
        entry["spoilt"] = kind
        handled = kind not in ("status", "reset") and not (kind == "hold" and spoil.get("handled") is False)
        piece = entry["method_id"] == "storage.objects.insert" and method is None
        body, problem = (raw, []) if piece else parse_body(self.headers, raw, method)
        entry["body"] = body if not isinstance(body, bytes) else f"{len(raw)} bytes"
        if handled and piece:
            with fake.world.lock:
                status, answer, headers = storage.resume(fake.world, self.command, entry["query"]["upload_id"],
                                                         self.headers.get("Content-Range"), raw)
        elif handled:
            status, answer, headers = self.handled(method, service, url, body, raw, problem, entry)
        elif kind == "status":
            status, answer, headers = spoilt_status(spoil, service)
        else:
            status, answer, headers = None, None, {}
        entry["status"] = status
        fake.log(entry)
        if kind == "hold":
            self.hold()
        elif kind in ("reset", "lost"):
            self.cut(kind == "reset")
        else:
            if kind == "slow":
                time.sleep(spoil.get("seconds", 1))
            self.answer(status, answer, headers)

    def hold(self):
        """Till the client has gone."""
        self.fake.held += 1
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass
        self.fake.held -= 1
        self.cut(False)

    def handled(self, method, service, url, body, raw, problem, entry):
        world = self.fake.world
        try:
            if method is None:
                entry["faults"].append(f"no method of Google's services: {self.command} {url.path}")
                raise Refusal(404, f"The requested URL {url.path} was not found on this server.")
            parameters, faults = discovery.check_request(method, url.path, url.query, body)
            faults = problem + faults
            with world.lock:
                world.tick()
                gate.check(world, method, parameters, self.headers)
                if faults:
                    entry["faults"] += [fault["message"] for fault in faults]
                    raise bad_request(faults)
                call = Call(world, method, parameters, body, raw, self.headers)
                if method.id not in ANSWERS:
                    entry["faults"].append(f"the fake does not know how to answer {method.id}")
                    raise Refusal(501, f"{method.id} is not in this fake")
                answer = ANSWERS[method.id](call)
                status = call.answer_status or (204 if answer is None else 200)
                text = json.dumps(answer) if not isinstance(answer, bytes) else None
            own = discovery.response_faults(method, json.loads(text)) if text is not None else []
            if own:
                entry["faults"] += [f"the fake's answer: {fault['field']}: {fault['message']}" for fault in own]
            return status, answer if text is None else json.loads(text), call.answer_headers
        except Refusal as refusal:
            return refusal.code, refusal.body(service), refusal.headers
        except Exception:  # a mistake of the fake's own: seen in the log, never a hang
            entry["faults"].append("the fake: " + traceback.format_exc())
            return 500, Refusal(500, "a mistake of the fake").body(service), {}


def query_of(text):
    """{name: value}, a list where a name is repeated."""
    query = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        query[name] = value if name not in query else [*(query[name] if isinstance(query[name], list) else [
            query[name]]), value]
    return query


def parse_body(headers, raw, method):
    """(JSON, faults); uploads of objects stay bytes."""
    if not raw:
        return None, []
    if method is not None and method.upload:
        return raw, []
    try:
        return json.loads(raw), []
    except ValueError as error:
        return None, [{"field": "", "message": f"Invalid JSON payload received. {error}"}]


def spoilt_status(spoil, service):
    code = spoil.get("code", 503)
    headers = {"Retry-After": str(spoil["retry_after"])} if "retry_after" in spoil else {}
    refusal = Refusal(code, spoil.get("message", "spoilt on purpose"))
    return code, refusal.body(service), headers


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def serve(config, port):
    fake = Fake(config)
    handler = type("FakeHandler", (Handler,), {"fake": fake})
    return Server((config.get("address", "127.0.0.1"), port), handler), fake
