#!/usr/bin/env python3
"""mesh_load.py PROGRAM POD_PLUGIN [--layers 32]: what loading a Llama costs that no process could hold, on an emulated pod.

PROGRAM is bench_mesh_load, POD_PLUGIN libsluice_pod_plugin.so. Writes safetensors of random bits in bf16 with the shapes of a
Llama of 7 billion parameters (13.5 GB; --work names a folder with room for them), and loads them in 4 processes of one device
each over fsdp=4, from the folder and from a server that stands for Cloud Storage. Prints JSON: of the processes, the most
host memory above their blocks in sizes of the largest tensor, and the most bytes read ÷ bytes of the blocks; of the server,
the requests and bytes of all processes.
"""

import argparse
import functools
import http.server
import json
import random
import struct
import tempfile
import threading
import urllib.parse
from pathlib import Path

import mesh_checkpoint

PROCESSES = 4
WIDTH, FEEDFORWARD, VOCABULARY, HEADS = 4096, 11008, 32000, 32
BLOCK = random.Random(1).randbytes(64 << 20)


def tensors(layers):
    """The name and the shape of each tensor, by file."""
    yield 0, "model.embed_tokens.weight", (VOCABULARY, WIDTH)
    for layer in range(layers):
        for name, shape in [("self_attn.q_proj", (WIDTH, WIDTH)), ("self_attn.k_proj", (WIDTH, WIDTH)),
                            ("self_attn.v_proj", (WIDTH, WIDTH)), ("self_attn.o_proj", (WIDTH, WIDTH)),
                            ("mlp.gate_proj", (FEEDFORWARD, WIDTH)), ("mlp.up_proj", (FEEDFORWARD, WIDTH)),
                            ("mlp.down_proj", (WIDTH, FEEDFORWARD)), ("input_layernorm", (WIDTH,)),
                            ("post_attention_layernorm", (WIDTH,))]:
            yield layer * 3 // layers, f"model.layers.{layer}.{name}.weight", shape
    yield 2, "model.norm.weight", (WIDTH,)
    yield 2, "lm_head.weight", (VOCABULARY, WIDTH)


def write_bits(out, size, start):
    while size > 0:
        piece = BLOCK[start:start + size]
        out.write(piece)
        size, start = size - len(piece), 0


def write_model(folder, layers):
    """A folder of transformers in three files; the bytes of its tensors."""
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": layers,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "intermediate_size": FEEDFORWARD, "hidden_act": "silu",
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0}))
    files, total, weight_map = {}, 0, {}
    for file, name, shape in tensors(layers):
        files.setdefault(f"model-{file + 1:05}-of-00003.safetensors", []).append((name, shape))
    for file, own in files.items():
        header, place = {}, 0
        for name, shape in own:
            size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
            weight_map[name], place = file, place + size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / file, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for number, (name, shape) in enumerate(own):
                begin, end = header[name]["data_offsets"]
                if len(shape) == 1:
                    out.write(b"\x80\x3f" * shape[0])  # ones
                else:
                    write_bits(out, end - begin, number * 65537 % len(BLOCK))
        total += place
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    return total


class Storage(http.server.BaseHTTPRequestHandler):
    """What a reader asks of Cloud Storage: the facts of an object, a list, and ranges of its bytes."""
    protocol_version = "HTTP/1.1"
    counts = {"requests": 0, "media_requests": 0, "media_bytes": 0}
    lock = threading.Lock()

    def __init__(self, folder, *arguments):
        self.folder = folder
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        self.send_response(status)
        for name, text in (*headers, ("Content-Length", len(body))):
            self.send_header(name, str(text))
        self.end_headers()
        self.wfile.write(body)

    def facts(self, name):
        return {"name": f"llama/{name}", "bucket": "b", "size": str((self.folder / name).stat().st_size), "generation": "1",
                "updated": "2026-01-01T00:00:00Z", "storageClass": "STANDARD"}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        names = sorted(path.name for path in self.folder.iterdir())
        with self.lock:
            self.counts["requests"] += 1
        name = urllib.parse.unquote(url.path.rsplit("/", 1)[-1]).rsplit("/", 1)[-1]
        if url.path.endswith("/o"):
            found = [self.facts(one) for one in names if f"llama/{one}".startswith(query.get("prefix", ""))]
            return self.reply(200, json.dumps({"items": found}).encode(), [("Content-Type", "application/json")])
        if name not in names:
            return self.reply(404, b"{}")
        if query.get("alt") != "media":
            return self.reply(200, json.dumps(self.facts(name)).encode(), [("Content-Type", "application/json")])
        size = (self.folder / name).stat().st_size
        begin, end = 0, size
        if asked := self.headers.get("Range"):
            first, last = asked.removeprefix("bytes=").split("-")
            begin, end = int(first), min(size, int(last) + 1 if last else size)
        with self.lock:
            self.counts["media_requests"] += 1
            self.counts["media_bytes"] += end - begin
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - begin))
        self.send_header("x-goog-generation", "1")
        self.end_headers()
        with open(self.folder / name, "rb") as file:
            file.seek(begin)
            while begin < end:
                piece = file.read(min(1 << 20, end - begin))
                self.wfile.write(piece)
                begin += len(piece)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("plugin")
    parser.add_argument("--layers", type=int, default=32, help="32 are 7 billion parameters")
    parser.add_argument("--work", help="a folder with room for the files")
    options = parser.parse_args()
    program, plugin = (str(Path(path).resolve()) for path in (options.program, options.plugin))
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=options.work) as work:
        total = write_model(Path(work), options.layers)
        result = {"weights_gb": total / 1e9, "processes": PROCESSES}
        result["folder"] = mesh_checkpoint.largest(mesh_checkpoint.run(program, plugin, PROCESSES, f"fsdp={PROCESSES}", work))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Storage, Path(work)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result["bucket"] = mesh_checkpoint.largest(mesh_checkpoint.run(
            program, plugin, PROCESSES, f"fsdp={PROCESSES}", "gs://b/llama",
            STORAGE_EMULATOR_HOST=f"127.0.0.1:{server.server_port}"))
        result["bucket"] |= Storage.counts
        result["bucket"]["media_bytes_over_weights"] = round(Storage.counts["media_bytes"] / total, 3)
        server.shutdown()
    print(json.dumps({"mesh_load": result}, indent=1))


if __name__ == "__main__":
    main()
