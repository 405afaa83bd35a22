#!/usr/bin/env python3
"""Compares the TPU programs of training steps with JAX's for the same model, as libtpu's compiler counts them.

  python3 bench/ahead.py --json bench/results/tpu_programs.json --jax-python jax/bin/python
  python3 bench/ahead.py --json ahead.json --recipes gpt2 --slices v5litepod-8,v6e-8 --program build/release/apps/sluice

Needs no TPU: libtpu (scripts/setup --libtpu, or TPU_LIBRARY_PATH) compiles for devices that are not here. `sluice compile
--no-compile` records Sluice's step; tpu_programs/side.py compiles it and the step of JAX, one after the other, in the Python
of --jax-python, which needs the packages jax, optax and flax. A row is written to the file when both sides are there. A row
that the file has is left out, so the same command continues; --again NAME measures a recipe again. All recipes together
take hours of one core. --table only prints the table of docs/performance.md.

What a row says of one device: flops and bytes_accessed, the compiler's count; hbm_bytes, what the instructions of the
optimized program move to and from HBM (tpu_programs/hlo.py); memory, arguments + outputs - what is overwritten +
temporaries; code, what is loaded onto the device; the collectives and the bytes that they exchange; and the processor
seconds of this machine for compiling. "ratio" has Sluice's figures divided by JAX's. A "note" that is written into a row by
hand, such as the cause of a ratio above 1, is printed behind it.
"""

import argparse
import array
import datetime
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# libtpu's names of the slices.
SLICES = {"v3-8": "v3:2x2", "v5litepod-8": "v5e:2x4", "v5p-8": "v5p:2x2x1", "v6e-8": "v6e:2x4"}
FIGURES = ["flops", "hbm_bytes", "bytes_accessed", "memory", "code", "exchanged", "processor_seconds"]


def model(title, name, batch, *flags, jax=None, **options):
    """A model of `sluice compile`, and the options of JAX's step of it."""
    return {"title": title, "sluice": ["--model", name, "--batch-size", str(batch), *flags], "jax": jax or name,
            "batch": batch, "options": options}


def training(title, task, config, rows, *flags, jax, batch, **options):
    """A command of `sluice train`."""
    command = ["--task", task, "--model", f"{config}.json", *rows, "--train", "tokens-*.bin", "--precision", "bf16",
               "--device", "xla", "--logdir", "run", *flags]
    return {"title": title, "command": command, "jax": jax, "batch": batch, "options": options}


def clm(length, batch):
    return ["--length", str(length), "--batch-size", str(batch)]


RECIPES = {
    "transformer6": model("transformer6, 64×128", "transformer6", 64),
    "lstm": model("LSTM, 64×128", "lstm", 64, "--length", "128"),
    "dcgan": model("DCGAN, 128", "dcgan", 128),
    "vit": model("ViT-B/16, 64, bf16", "vit_b_16", 64, "--precision", "bf16", jax="vit"),
    "resnet50": model("ResNet-50, 128, bf16", "resnet50", 128, "--precision", "bf16", side=224, bf16=True),
    "resnet50-f32": model("ResNet-50, 128", "resnet50", 128, side=224),
    "gpt2": training("GPT-2, 8×1024, bf16", "clm", "gpt2", clm(1024, 8), jax="gpt2", batch=8),
    "gpt2-dropout": training("GPT-2 with dropout", "clm", "gpt2-dropout", clm(1024, 8), jax="gpt2", batch=8, rate=0.1),
    "gpt2-recompute": training("GPT-2, recomputed", "clm", "gpt2", clm(1024, 8), "--recompute", jax="gpt2", batch=8,
                               recompute=True),
    "roberta": training("RoBERTa, 16×512, bf16", "mlm", "roberta", ["--shapes", "16x512"], "--tokenizer",
                        "tokenizer.json", jax="roberta", batch=16),
    "llama": training("Llama 1.1B, 1×2048, bf16", "clm", "llama", clm(2048, 1), jax="llama", batch=1),
}
GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "activation_function": "gelu_new"}
CONFIGS = {
    "gpt2": {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "gpt2-dropout": {**GPT2, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1},
    "llama": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 22,
              "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632, "hidden_act": "silu",
              "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0},
    "roberta": {"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
                "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1,
                "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
                "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
}


def run(command, folder, environment=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def write_tokens(folder, documents=2000, length=500):
    """Token files of random words (docs/text.md has their format), the models' configs, and a tokenizer with a mask."""
    draw = random.Random(1)
    ids = array.array("H", (draw.randrange(10, 30000) for _ in range(documents * length)))
    if sys.byteorder == "big":
        ids.byteswap()
    (folder / "tokens-0000.bin").write_bytes(ids.tobytes())
    (folder / "tokens-0000.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1) + struct.pack(f"<{documents}i", *[length] * documents)
        + struct.pack(f"<{documents}q", *range(0, 2 * documents * length, 2 * length))
        + struct.pack(f"<{documents + 1}q", *range(documents + 1)))
    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3, "a": 4}
    added = [{"id": place, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for word, place in words.items() if word != "a"]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": None, "post_processor": None,
        "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "<pad>"}}))
    for name, config in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(config))


def record(program, recipe, slice_, folder):
    """The text of Sluice's step for the devices of the slice."""
    if "command" in recipe and not (folder / "tokenizer.json").exists():
        write_tokens(folder)
    more = ["--", program, "train", *recipe["command"]] if "command" in recipe else []
    run([program, "compile", "--topology", slice_, "--no-compile", "--dump", "step.mlir", *recipe.get("sluice", []), *more], folder)
    return folder / "step.mlir"


def compiled(options, slice_, arguments, keep):
    # libtpu looks for a slice around it unless it is told that there is none; only the named topology counts.
    environment = dict(os.environ, TPU_LIBRARY_PATH=str(options.libtpu), TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1",
                       TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE="v3-8", TPU_LOG_DIR="disabled", JAX_PLATFORMS="cpu")
    for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS"):
        environment.pop(name, None)
    more = ["--hlo", options.hlo.resolve() / keep] if options.hlo else []
    side = ROOT / "bench/tpu_programs/side.py"
    return json.loads(run([options.jax_python, side, "--topology", SLICES[slice_], *arguments, *more], None,
                          environment).splitlines()[-1])


def measure(options, name, slice_, folder):
    recipe = RECIPES[name]
    ours = compiled(options, slice_, ["--text", record(options.program, recipe, slice_, folder)], f"{name}-{slice_}-sluice.hlo")
    theirs = compiled(options, slice_, ["--model", recipe["jax"], "--batch", recipe["batch"], "--options",
                                        json.dumps(recipe["options"])], f"{name}-{slice_}-jax.hlo")
    row = {"recipe": name, "slice": slice_, "date": datetime.date.today().isoformat(), "commit": commit(),
           "jax_version": theirs.pop("jax"), "sluice": ours, "jax": theirs}
    ours.pop("jax")
    if "does_not_fit" not in ours and "does_not_fit" not in theirs:
        row["ratio"] = {figure: round(ours[figure] / theirs[figure], 3) for figure in FIGURES if theirs[figure]}
    return row


def commit():
    return run(["git", "rev-parse", "--short=8", "HEAD"], ROOT).strip()


def read(path):
    return json.loads(path.read_text()) if path.is_file() else []


def write(path, rows):
    """One row a line, in the order of the recipes and slices."""
    order = lambda row: (list(RECIPES).index(row["recipe"]), list(SLICES).index(row["slice"]))
    lines = ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in sorted(rows, key=order))
    path.write_text(f"[\n{lines}\n]\n")


def cell(row):
    """"0.93/0.88": the bytes of HBM and the memory beside JAX's."""
    if row is None:
        return ""
    sides = [side for side in ("sluice", "jax") if "does_not_fit" in row[side]]
    if sides:
        return "no room" if len(sides) == 2 else f"no room ({'Sluice' if sides[0] == 'sluice' else 'JAX'})"
    return f"{row['ratio']['hbm_bytes']:.2f}/{row['ratio']['memory']:.2f}"


def both(row, figure, unit):
    """"12.3 / 13.4 (0.92)"."""
    text = " / ".join(f"{row[side][figure] / unit:.3g}" if figure in row[side] else "no room" for side in ("sluice", "jax"))
    return f"{text} ({row['ratio'][figure]:.2f})" if figure in row.get("ratio", {}) else text


def all_rows(rows):
    """The table of bench/results/README.md."""
    columns = {"GFLOP": ("flops", 1e9), "HBM, GB": ("hbm_bytes", 1e9), "accessed, GB": ("bytes_accessed", 1e9),
               "memory, GB": ("memory", 1e9), "code, MB": ("code", 1e6), "exchanged, MB": ("exchanged", 1e6),
               "compiling, s": ("processor_seconds", 1)}
    lines = ["| step | slice | " + " | ".join(columns) + " | remarks |", "|" + " --- |" * (len(columns) + 3)]
    for row in rows:
        cells = [RECIPES[row["recipe"]]["title"], row["slice"], *(both(row, *column) for column in columns.values()),
                 "; ".join(filter(None, [row.get("note"), row["date"], f"JAX {row['jax_version']}"]))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(rows):
    found = {(row["recipe"], row["slice"]): row for row in rows}
    slices = [slice_ for slice_ in SLICES if any(key[1] == slice_ for key in found)]
    lines = ["| step | " + " | ".join(slices) + " |", "|" + " --- |" * (len(slices) + 1)]
    for name, recipe in RECIPES.items():
        if any(key[0] == name for key in found):
            lines.append(f"| {recipe['title']} | " + " | ".join(cell(found.get((name, slice_))) for slice_ in slices) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="the file of the rows, which is continued")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="of " + ", ".join(RECIPES))
    parser.add_argument("--slices", default=",".join(SLICES))
    parser.add_argument("--again", default="", help="recipes whose rows of the file are measured again")
    parser.add_argument("--program", type=lambda path: Path(path).resolve(), default=ROOT / "build/release/apps/sluice")
    parser.add_argument("--jax-python", default=sys.executable)
    parser.add_argument("--libtpu", type=Path,
                        default=os.environ.get("TPU_LIBRARY_PATH", ROOT / ".deps/libtpu/libtpu/libtpu.so"))
    parser.add_argument("--hlo", type=Path, help="keep the optimized programs in this folder, to look for causes")
    parser.add_argument("--table", action="store_true", help="only print the table of the file")
    options = parser.parse_args()
    recipes, slices = options.recipes.split(","), options.slices.split(",")
    for kind, given, known in (("recipe", recipes + options.again.split(",") * bool(options.again), RECIPES), ("slice", slices, SLICES)):
        if unknown := set(given) - set(known):
            parser.error(f"there is no {kind} {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    rows = [row for row in read(options.json) if options.table or row["recipe"] not in options.again.split(",")]
    done = {(row["recipe"], row["slice"]) for row in rows}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, slice_ in [] if options.table else [(name, slice_) for name in recipes for slice_ in slices]:
            if (name, slice_) in done:
                continue
            try:
                rows.append(measure(options, name, slice_, Path(folder)))
            except RuntimeError as error:  # the other rows do not depend on this one
                print(error, file=sys.stderr)
                failed = True
                continue
            write(options.json, rows)
            print(f"{name} on {slice_}: {cell(rows[-1])}", file=sys.stderr, flush=True)
    print(table(rows))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
