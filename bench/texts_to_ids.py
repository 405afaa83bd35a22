#!/usr/bin/env python3
"""How fast Sluice encodes texts on one thread, beside Python's tokenizers and tiktoken.

  python3 bench/texts_to_ids.py build/release/bench/bench_tokenize [--rounds 5] [--seconds 1] [--families GPT-2 BERT]

Trains tokenizers on the King James Bible (made sentences without Debian's package bible-kjv), encodes all of it, verse by verse,
with each program in turns, and prints JSON: medians over the rounds of megabytes of text per second of the processor, and how
many times as fast Sluice is. tokenizers gets all verses in one encode_batch, tiktoken one after the other; tiktoken has the same
merges and pattern, where it knows such a model, and the ids must be equal. The peers are in bench/peers.txt.
"""

import sys
from pathlib import Path

# The module tokenize of Python is wanted by others, and this folder has a file of that name.
sys.path[0] = str(Path(__file__).resolve().parent.parent / "tests/python")

import argparse  # noqa: E402
import importlib.metadata  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
import tokenizers_oracle as oracle  # noqa: E402

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def llama3(text):
    """With all of its merges, without which tiktoken cannot have the same ids."""
    split = oracle.pre_tokenizers.Sequence([
        oracle.pre_tokenizers.Split(oracle.Regex(oracle.LLAMA3), "isolated"),
        oracle.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return oracle.byte_level(text, split, ["<|begin_of_text|>", "<|end_of_text|>"])


# How each is made, and the pattern of those that tiktoken knows.
FAMILIES = {"GPT-2": (oracle.gpt2, GPT2), "Llama 3": (llama3, oracle.LLAMA3), "Llama 2": (oracle.llama2, None),
            "BERT": (oracle.bert, None), "T5": (oracle.t5, None)}


def rate(action, megabytes, seconds):
    passes, begin = 0, time.process_time()
    while passes == 0 or time.process_time() - begin < seconds:
        action()
        passes += 1
    return megabytes * passes / (time.process_time() - begin)


def alphabet_of_bytes():
    """What a byte-level model writes for a byte, and the byte."""
    characters, extra = {}, 256
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        characters[chr(byte if printable else extra)] = byte
        extra += not printable
    return characters


def tiktoken_of(model, pattern):
    """The same model for tiktoken, and what its ids are in the model. Its ranks are ids and the order of merges at once."""
    import tiktoken
    byte_of = alphabet_of_bytes()
    ranks = {bytes([byte]): byte for byte in range(256)}
    for first, second in model["merges"]:
        ranks.setdefault(bytes(byte_of[character] for character in first + second), len(ranks))
    ids = {bytes(byte_of[character] for character in token): id for token, id in model["vocab"].items()
           if all(character in byte_of for character in token)}
    return (tiktoken.Encoding("made", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}),
            {rank: ids[token] for token, rank in ranks.items()})


def measure(args, make, pattern, lines, folder):
    tokenizer = make(lines)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    file, texts = folder / "tokenizer.json", folder / "texts.txt"
    tokenizer.save(str(file))
    texts.write_text("\n".join(lines))
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    own = lambda: json.loads(subprocess.run([args.program, str(file), str(texts), str(args.seconds)], capture_output=True,
                                            text=True, check=True).stdout)
    batch = lambda: tokenizer.encode_batch(lines, add_special_tokens=False)
    sides = {"sluice": lambda: own()["megabytes_per_cpu_second"], "tokenizers": lambda: rate(batch, megabytes, args.seconds)}
    ids = [encoding.ids for encoding in batch()]
    first = own()
    if first["tokens"] != sum(map(len, ids)):
        sys.exit(f"{first['tokens']} tokens, and {sum(map(len, ids))} by tokenizers")
    if pattern:
        encoding, back = tiktoken_of(json.loads(tokenizer.to_str())["model"], pattern)
        if [[back[rank] for rank in encoding.encode_ordinary(line)] for line in lines] != ids:
            sys.exit("tiktoken's ids differ")
        sides["tiktoken"] = lambda: rate(lambda: [encoding.encode_ordinary(line) for line in lines], megabytes, args.seconds)
    rounds = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, measured in sides.items():
            rounds[side].append(measured())
    return {"megabytes_per_cpu_second": {side: round(statistics.median(values), 2) for side, values in rounds.items()},
            "first_pass": round(first["first_pass"], 2),
            "times_as_fast": {side: round(statistics.median(a / b for a, b in zip(rounds["sluice"], values)), 2)
                              for side, values in rounds.items() if side != "sluice"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    args = parser.parse_args()
    verses = oracle.bible()
    lines = verses or oracle.made_verses()
    with tempfile.TemporaryDirectory() as folder:
        families = {name: measure(args, *FAMILIES[name], lines, Path(folder)) for name in args.families}
    versions = {name: importlib.metadata.version(name) for name in ("tokenizers", "tiktoken")}
    print(json.dumps({"text": "King James Bible" if verses else "made sentences", "rounds": args.rounds, "versions": versions,
                      "families": families}))


if __name__ == "__main__":
    main()
