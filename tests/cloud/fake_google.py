"""A fake of Google's services on one port, for tests: fake_google.py [CONFIG.json | JSON] [--port N] [--log FILE].

It prints `listening PORT` as its first line and serves until it is told to stop (POST /_fake/stop) or its standard
input ends with --until-eof. README.md says what the configuration knows and what the fake does not do."""

import argparse
import json
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from google_fake.server import serve  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="a fake of Google's services, for tests")
    parser.add_argument("config", nargs="?", default="{}", help="a file, or the JSON itself")
    parser.add_argument("--port", type=int, default=None, help="0 (the default): a free one")
    parser.add_argument("--log", help="a file of JSON lines, one a request")
    parser.add_argument("--until-eof", action="store_true", help="ends when standard input does")
    arguments = parser.parse_args()
    text = arguments.config if arguments.config.lstrip().startswith("{") else Path(arguments.config).read_text()
    config = json.loads(text)
    if arguments.log:
        config["log"] = arguments.log
    port = arguments.port if arguments.port is not None else config.get("port", 0)
    server, fake = serve(config, port)
    fake.shutdown = server.shutdown
    print(f"listening {server.server_address[1]}", flush=True)
    if arguments.until_eof:
        def wait():
            sys.stdin.buffer.read()
            server.shutdown()
        threading.Thread(target=wait, daemon=True).start()
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
