"""The metadata server of a machine in Google's cloud, for tests: point GCE_METADATA_HOST at its `host`."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MetadataServer:
    """`answers`: texts by their paths below /computeMetadata/v1/; all else is unknown. `date`: what its answers say, where
    the clock is to be wrong."""

    def __init__(self, answers, date=None):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def date_time_string(self, timestamp=None):
                return date or super().date_time_string(timestamp)

            def do_GET(self):
                path = self.path.removeprefix("/computeMetadata/v1/")
                text = answers.get(path, "" if path == "" else None)
                known = text is not None and self.headers.get("Metadata-Flavor") == "Google"
                self.send_response(200 if known else 404)
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("Content-Length", str(len(text or "")))
                self.end_headers()
                self.wfile.write((text or "").encode())
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
