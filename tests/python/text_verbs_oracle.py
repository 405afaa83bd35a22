"""text_verbs_oracle.py SLUICE: what `sluice text` learns and writes is what Python's tokenizers learn, load and encode.

Merges are compared with BpeTrainer's, token files are read by struct as Megatron-LM's format is documented, nanoGPT's and
llm.c's as those programs read them. Packing ten times as much takes no more memory. Exit status 77 when the packages are missing.
"""

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import tokenizers_oracle as oracle


def check(condition, what):
    print(f"{'ok' if condition else 'DIFFERS'}: {what}")
    if not condition:
        check.failures += 1


check.failures = 0


def sluice(program, *arguments):
    done = subprocess.run([program, "text", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"sluice text {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def learn(files, size, pattern, specials, min_frequency=0):
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tokenizer.pre_tokenizer = byte_level if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_frequency, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(file) for file in files], trainer)
    return tokenizer


def learnt(program, folder, files):
    for name, size, pattern, specials, frequency in [("gpt2", 3000, None, ["<|endoftext|>"], 0),
                                                     ("llama3", 1500, oracle.LLAMA3, ["<s>", "the"], 2),
                                                     (r"\w+|\W", 100000, r"\w+|\W", [], 20)]:
        out = folder / f"{size}.json"
        sluice(program, "tokenizer", "::".join(map(str, files)), "--out", out, "--vocab-size", size, "--pattern", name,
               "--min-frequency", frequency, *(word for token in specials for word in ("--special-token", token)))
        expected = json.loads(learn(files, size, pattern, specials, frequency).to_str())
        found = json.loads(Tokenizer.from_file(str(out)).to_str())
        check(found["model"]["merges"] == expected["model"]["merges"], f"{len(expected['model']['merges'])} merges of {name}")
        check(found["model"]["vocab"] == expected["model"]["vocab"], f"the vocabulary of {name}")
        check(found["added_tokens"] == expected["added_tokens"], f"the special tokens of {name}")
    return folder / "3000.json"


def megatron(name):
    """The documents of NAME.bin and NAME.idx."""
    index = Path(f"{name}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, starts = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    at = 9 + 8 + 1 + 8 + 8
    lengths = numpy.frombuffer(index, numpy.int32, sequences, at)
    places = numpy.frombuffer(index, numpy.int64, sequences, at + lengths.nbytes)
    documents = numpy.frombuffer(index, numpy.int64, starts, at + lengths.nbytes + places.nbytes)
    assert list(documents) == list(range(sequences + 1))
    kind = {8: numpy.uint16, 4: numpy.int32}[code]
    data = Path(f"{name}.bin").read_bytes()
    return [numpy.frombuffer(data, kind, length, place).tolist() for length, place in zip(lengths, places)]


def packed(program, folder, tokenizer_file, lines):
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    end = tokenizer.token_to_id("<|endoftext|>")
    source = folder / "lines.jsonl.gz"
    source.write_bytes(gzip.compress("".join(json.dumps({"n": 1, "content": line}) + "\n" for line in lines).encode()))
    sluice(program, "pack", source, folder / "set", "--tokenizer", tokenizer_file, "--field", "content", "--end-token", "<|endoftext|>",
           "--shard-tokens", 10000)
    names = sorted(str(file)[:-4] for file in (folder / "set").glob("train-*.bin"))
    check(len(names) > 2, f"{len(names)} files")
    expected = [encoding.ids + [end] for encoding in tokenizer.encode_batch(lines, add_special_tokens=False)]
    check([ids for name in names for ids in megatron(name)] == expected, f"the ids of {len(lines)} documents")
    flat = [token for ids in expected for token in ids]
    tokens = folder / "set" / "train-*.bin"
    sluice(program, "export", tokens, folder / "nano.bin", "--format", "nanogpt")
    check(numpy.memmap(folder / "nano.bin", numpy.uint16, "r").tolist() == flat, "nanoGPT's file")
    sluice(program, "export", tokens, folder / "llmc.bin", "--format", "llmc")
    header = numpy.fromfile(folder / "llmc.bin", numpy.int32, 256)
    check(header[:3].tolist() == [20240520, 1, len(flat)] and not header[3:].any(), "llm.c's header")
    check(numpy.fromfile(folder / "llmc.bin", numpy.uint16, offset=1024).tolist() == flat, "llm.c's ids")
    sluice(program, "export", tokens, folder / "one", "--format", "megatron")
    check(megatron(folder / "one") == expected, "one file of Megatron-LM")


def memory(program, folder, tokenizer_file, lines):
    """KiB at the peak of a run that packs so many copies of the lines."""
    def peak(copies):
        source = folder / "copies.txt"
        with source.open("w") as file:
            for _ in range(copies):
                file.write("\n".join(lines) + "\n")
        command = [program, "text", "pack", source, folder / f"copies{copies}", "--tokenizer", tokenizer_file, "--workers", "2"]
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        check(status == 0, f"{copies} copies packed")
        return used.ru_maxrss
    if b"__asan_init" in Path(program).read_bytes():
        return  # which keeps what was freed
    few, many = peak(8), peak(80)
    check(many < few + (16 << 10) and many < 300 << 10, f"{few >> 10} MiB for 8 copies, {many >> 10} MiB for 80")


def main(program):
    lines = (oracle.bible() or oracle.made_verses())[:6000]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = [folder / "a.txt", folder / "b.txt"]
        files[0].write_text("\n".join(lines[:4000]) + "\n")
        files[1].write_text("\r\n".join(lines[4000:]) + "\n\n  \u00e9\u4e2d\u0301 no end of the line")
        tokenizer_file = learnt(program, folder, files)
        packed(program, folder, tokenizer_file, lines)
        memory(program, folder, tokenizer_file, lines)
    sys.exit(check.failures > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
