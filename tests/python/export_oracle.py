"""export_oracle.py PROGRAM: transformers loads the folders that `sluice export` writes, and the other way round.

A Llama of transformers, trained for one step by `sluice train`, is exported in parts: transformers finds every weight, in
the files that huggingface_hub would choose. A folder that transformers has divided is read, too.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
    from huggingface_hub import split_torch_state_dict_into_shards
    from safetensors import safe_open
    from safetensors.torch import load_file
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs transformers for the tests")
    sys.exit(77)

MIB = 1 << 20
# Weights of 10 MiB; the table of words and the head are larger than a part of 1 MiB.
CONFIG = transformers.LlamaConfig(vocab_size=3000, hidden_size=128, num_hidden_layers=8, num_attention_heads=4,
                                  intermediate_size=256, bos_token_id=1, eos_token_id=2)


def check(condition, *what):
    if not condition:
        sys.exit(f"FAILED: {' '.join(map(str, what))}")


def sluice(program, *words, status=0):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    check(done.returncode == status, words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def same(found, wanted, what):
    check(found.keys() == wanted.keys(), what, found.keys() ^ wanted.keys())
    for name, tensor in wanted.items():
        check(found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), what, name)


def train_one_step(program, weights, root, logdir):
    tokens = [3 + i * 7 % 2900 for i in range(400)]
    with open(root / "train-0000.bin", "wb") as out:
        out.write(struct.pack("<400H", *tokens))
    with open(root / "train-0000.idx", "wb") as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", 400, 0, 0, 1))
    sluice(program, "train", "--task", "clm", "--weights", weights, "--train", root / "train-*.bin", "--length", 16,
           "--batch-size", 2, "--max-steps", 1, "--device", "cpu", "--logdir", logdir)


def check_parts(folder, wanted):
    """The parts have what huggingface_hub would put into them, in the order of the checkpoint's file."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    with safe_open(str(wanted), "pt") as file:
        order = list(file.offset_keys())
    weights = load_file(wanted)
    plan = split_torch_state_dict_into_shards({name: weights[name] for name in order}, max_shard_size=MIB)
    check(plan.is_sharded and index["weight_map"] == plan.tensor_to_filename, "the files of the weights")
    check(index["metadata"]["total_size"] == plan.metadata["total_size"], "the size of the weights")
    for part in sorted(set(index["weight_map"].values())):
        with safe_open(str(folder / part), "pt") as file:
            check(file.metadata() == {"format": "pt"}, part, file.metadata())
            names = set(file.keys())
        check(names == {name for name, of in index["weight_map"].items() if of == part}, part)
    check({path.name for path in folder.iterdir()} == {*index["weight_map"].values(), "config.json",
                                                      "model.safetensors.index.json"}, "the files of the folder")


def main(program):
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        model = transformers.LlamaForCausalLM(CONFIG)
        model.save_pretrained(root / "theirs", max_shard_size="1MB")
        check((root / "theirs/model.safetensors.index.json").exists(), "transformers has not divided the weights")
        # Their parts become one file, and a training starts from them.
        sluice(program, "export", root / "theirs", root / "one.safetensors")
        same(load_file(root / "one.safetensors"), dict(model.state_dict()), "one file of their parts")
        train_one_step(program, root / "theirs", root, root / "run")
        last = root / "run/last/model.safetensors"
        said = sluice(program, "export", root / "run/last", root / "ours", "--part-size", 1)
        check(" files\n" in said, said)
        check_parts(root / "ours", last)
        again, info = transformers.LlamaForCausalLM.from_pretrained(root / "ours", output_loading_info=True)
        check(not info["missing_keys"] and not info["unexpected_keys"], info)
        same(dict(again.state_dict()), load_file(last), "transformers reads our parts")
        # Our parts start a training, and become one file again.
        train_one_step(program, root / "ours", root, root / "again")
        sluice(program, "export", root / "ours", root / "back.safetensors")
        same(load_file(root / "back.safetensors"), load_file(last), "one file of our parts")
        # Few weights are one file.
        sluice(program, "export", root / "run/last", root / "whole")
        check(sorted(path.name for path in (root / "whole").iterdir()) == ["config.json", "model.safetensors"], "one file")
        same(load_file(root / "whole/model.safetensors"), load_file(last), "a folder with one file")
        check("has weights" in sluice(program, "export", root / "run/last", root / "whole", status=1), "a second export")
        check("--part-size" in sluice(program, "export", last, root / "x.pt", "--part-size", 1, status=2), "a part of one file")
    print("passed")


if __name__ == "__main__":
    main(sys.argv[1])
