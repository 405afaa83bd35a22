"""tokenizers_oracle.py PRINT_TOKENS [STRINGS [VERSES]]: a tokenizer.json gives the ids, offsets, tokens and texts of Python's
tokenizers.

Trains tokenizers of five families (GPT-2 and RoBERTa, Llama 3, Llama 2, BERT, T5) and some of single components, encodes
VERSES verses of the King James Bible (made sentences where the package bible-kjv is missing) and STRINGS strings of odd
characters for each with both, and compares. With VERSES=0, the ids
of the whole Bible and of the strings are, and nothing else. Exit status 77 when the
packages are missing.
"""

import base64
import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

try:
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                            trainers)
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|"
          r"\s+")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def bible():
    """The verses, one a line."""
    if shutil.which("bible") is None:
        return None
    done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    return lines if len(lines) > 1000 else None


def made_verses():
    """Sentences of made words, as often as words are: some of them all the time."""
    draw = random.Random(1)
    syllables = [a + b for a in "bcdfghlmnprst" for b in ("a", "e", "i", "o", "u", "ea", "en", "or")]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(3000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    return [" ".join(draw.choices(words, weights, k=draw.randint(5, 30))).capitalize() + draw.choice([".", "?", "!", ";"])
            for _ in range(6000)]


# Characters whose properties Unicode has not changed for long.
RANGES = [(0x20, 0x7E)] * 6 + [(0x00, 0x1F), (0x7F, 0xA0), (0xA1, 0x24F), (0x300, 0x34E), (0x370, 0x373), (0x391, 0x3C9),
          (0x410, 0x44F), (0x5D0, 0x5EA), (0x620, 0x64A), (0x660, 0x669), (0x900, 0x94D), (0xE01, 0xE3A), (0x1100, 0x1112),
          (0x1161, 0x1175), (0x11A8, 0x11C2), (0x1E00, 0x1EFF), (0x1F00, 0x1F15), (0x2000, 0x206F), (0x20AC, 0x20AC),
          (0x2150, 0x2160), (0x2460, 0x2473), (0x2581, 0x2581), (0x3000, 0x3029), (0x3041, 0x3096), (0x30A1, 0x30FA),
          (0x4E00, 0x4EFF), (0xAC00, 0xAC80), (0xFB00, 0xFB06), (0xFB1D, 0xFB36), (0xFE30, 0xFE4F), (0xFEFF, 0xFEFF),
          (0xFF01, 0xFF5E), (0xFFFD, 0xFFFD), (0x1D400, 0x1D454), (0x1F600, 0x1F640), (0x20000, 0x20010), (0x2F800, 0x2F81D)]
SINGLES = ["\u0130", "\u180e", "\u0085", "\u1680", "\u200b", "\u200d", "\u212b", "\u1e9b\u0323", "\u0344", "\u0f73", "e\u0301",
           "\u0345\u0301", "  ", "   ", "\n\n", " \n ", "\r\n", "\t", "'s", "'LL", "don't", "123456", "\u2581\u2581", "[SEP]", "<s>",
           "</s>", "<mask>", " <mask> ", "<|endoftext|>", "<unk>", "<0x41>", "Day", "aDayb", "<extra>", "\u00e9\u00e8", "##ing", "Ġthe"]


def odd_string(draw):
    parts = []
    for _ in range(draw.randint(0, 12)):
        kind = draw.random()
        if kind < 0.15:
            parts.append(draw.choice(SINGLES))
        elif kind < 0.3:
            parts.append(draw.choice(["the", " the", " beginning", "God", " 1999", "lord ", "unto", "...", "Hello", "WORLD"]))
        else:
            low, high = draw.choice(RANGES)
            for _ in range(draw.randint(1, 4)):
                character = chr(draw.randint(low, high))
                parts.append(character if unicodedata.category(character) != "Cn" else "?")
    return "".join(parts)


def charsmap(pairs):
    """SentencePiece's table: a double array in which each node has a block of 256 units, then the texts."""
    texts, nodes = b"", [{}]
    values = {}
    for key, text in pairs.items():
        node = 0
        for byte in key.encode():
            if byte not in nodes[node]:
                nodes[node][byte] = len(nodes)
                nodes.append({})
            node = nodes[node][byte]
        values[node] = len(texts)
        texts += text.encode() + b"\0"
    units = [0] * (256 * (len(nodes) + 1))
    base = lambda node: 256 * (node + 1)
    unit = lambda place, node, label: (place ^ base(node)) << 10 | (node in values) << 8 | label
    units[0] = unit(0, 0, 0)
    for node, children in enumerate(nodes):
        if node in values:
            units[base(node)] = values[node] | 1 << 31
        for byte, child in children.items():
            units[base(node) ^ byte] = unit(base(node) ^ byte, child, byte)
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + texts


def trained(model, trainer, text, normalizer=None, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def byte_level(text, pre_tokenizer, specials, size=4000):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer = trained(models.BPE(), trainer, text, pre_tokenizer=pre_tokenizer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(text):
    tokenizer = byte_level(text, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta(text):
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = byte_level(text, pre_tokenizers.ByteLevel(add_prefix_space=True), specials)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("Day", single_word=True, normalized=True)])
    tokenizer.add_tokens([AddedToken("<extra>", rstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.enable_truncation(24)
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>", length=16)
    return tokenizer


def llama3(text):
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(text, split, ["<|begin_of_text|>", "<|end_of_text|>"])
    written = json.loads(tokenizer.to_str())
    written["model"]["ignore_merges"] = True
    del written["model"]["merges"][100:120]  # words that merges do not make
    tokenizer = Tokenizer.from_str(json.dumps(written))
    template = processors.TemplateProcessing("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                             [("<|begin_of_text|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def llama2(text, first=False):
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=["<unk>", "<s>", "</s>", *BYTES], show_progress=False)
    model = models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = trained(model, trainer, text, pre_tokenizer=pre_tokenizers.Metaspace())
    written = json.loads(tokenizer.to_str())
    written["added_tokens"] = written["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(written))
    if first:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    else:
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return tokenizer


def bert(text, **settings):
    trainer = trainers.WordPieceTrainer(vocab_size=3000, show_progress=False,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"), trainer, text, normalizers.BertNormalizer(**settings),
                        pre_tokenizers.BertPreTokenizer())
    tokenizer.decoder = decoders.WordPiece()
    if settings:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        tokenizer.enable_truncation(12, strategy="longest_first", direction="left")
        tokenizer.enable_padding(direction="left", pad_to_multiple_of=8)
    else:
        tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                                                                 [("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def t5(text, fallback=False):
    trainer = trainers.UnigramTrainer(vocab_size=2000, special_tokens=["<pad>", "</s>", "<unk>"] + (BYTES if fallback else []),
                                      unk_token="<unk>", show_progress=False)
    table = {"ﬁ": "fi", "Ａ": "A", "\u00a0": " ", "\u200b": "", "e\u0301": "é", "①": "1", "…": "...", "\u3000": " ", "ｶ": "カ"}
    normalizer = normalizers.NFKC() if fallback else normalizers.Sequence(
        [normalizers.Precompiled(charsmap(table)), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer = trained(models.Unigram(), trainer, text, normalizer, pre_tokenizers.Metaspace())
    tokenizer.decoder = decoders.Metaspace()
    if fallback:
        written = json.loads(tokenizer.to_str())
        written["added_tokens"] = written["added_tokens"][:3]
        written["model"]["byte_fallback"] = True
        tokenizer = Tokenizer.from_str(json.dumps(written))
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return tokenizer


def components(text):
    """A tokenizer for each component that the families have not, with GPT-2's bytes behind it."""
    behind = byte_level(text, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), [], size=600)
    written = behind.to_str()
    bytes_last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def made(normalizer=None, pre_tokenizer=None, decoder=None):
        tokenizer = Tokenizer.from_str(written)
        tokenizer.add_tokens([AddedToken("Day", normalized=True)])
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizer, bytes_last]) if pre_tokenizer else bytes_last
        if decoder is not None:
            tokenizer.decoder = decoder
        return tokenizer

    for normalizer in [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(),
                       normalizers.StripAccents(), normalizers.Strip(), normalizers.Strip(left=False), normalizers.Nmt(),
                       normalizers.Replace(Regex(r"[aeiou]+|\d"), "é"), normalizers.Prepend("xy"),
                       normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])]:
        yield type(normalizer).__name__, made(normalizer)
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    for pre_tokenizer in [pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(True),
                          pre_tokenizers.Digits(False), pre_tokenizers.CharDelimiterSplit("e"),
                          *(pre_tokenizers.Punctuation(behavior) for behavior in behaviors),
                          *(pre_tokenizers.Split(Regex(r"\s*\w"), behavior) for behavior in behaviors),
                          *(pre_tokenizers.Split(" ", behavior, invert=True) for behavior in behaviors),
                          pre_tokenizers.Split(Regex(r"x*"), "isolated"), pre_tokenizers.Metaspace(prepend_scheme="never")]:
        yield type(pre_tokenizer).__name__, made(pre_tokenizer=pre_tokenizer)
    # GPT-2's alphabet within the chain, where bytes cannot stay as they are.
    within = Tokenizer.from_str(written)
    within.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(), pre_tokenizers.Split("Ġ", "merged_with_next")])
    yield "ByteLevel within", within
    normalized = made(normalizers.ByteLevel())
    normalized.pre_tokenizer = pre_tokenizers.Split(Regex("Ġ?[^Ġ]+"), "isolated")
    yield "ByteLevel normalizer", normalized
    yield "Sequence of decoders", made(decoder=decoders.Sequence([decoders.ByteLevel(), decoders.Replace(Regex("e+"), "E"),
                                                                  decoders.Strip("t", 2, 0)]))


def families(text):
    yield "GPT-2", gpt2(text)
    yield "RoBERTa", roberta(text)
    yield "Llama 3", llama3(text)
    yield "Llama 2", llama2(text)
    yield "Llama 2 with Metaspace", llama2(text, first=True)
    yield "BERT", bert(text)
    yield "BERT, cased", bert(text, lowercase=False, strip_accents=False)
    yield "T5", t5(text)
    yield "Unigram of bytes", t5(text, fallback=True)


def in_bytes(text, span):
    return [len(text[:span[0]].encode()), len(text[:span[1]].encode())]


def expected(tokenizer, line):
    encoding = tokenizer.encode(*line) if isinstance(line, list) else tokenizer.encode(line)
    texts = line if isinstance(line, list) else [line]
    offsets = []
    for index, span in enumerate(encoding.offsets):
        sequence = encoding.token_to_sequence(index)
        offsets.append(in_bytes(texts[sequence], span) if sequence is not None else list(span))
    decode = lambda skip: tokenizer.decode(encoding.ids, skip_special_tokens=skip)
    return {"ids": encoding.ids, "types": encoding.type_ids, "special": encoding.special_tokens_mask,
            "attention": encoding.attention_mask, "offsets": offsets, "tokens": encoding.tokens, "text": decode(True),
            "whole": decode(False)}


def compare(program, name, tokenizer, lines, folder, written=None):
    """`written`: what is in the file, where it is not what tokenizers itself writes."""
    file = folder / "tokenizer.json"
    if written is None:
        tokenizer.save(str(file))
    else:
        file.write_text(json.dumps(written))
    done = subprocess.run([program, str(file)], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stderr}")
        return 1
    faults = 0
    # One by one, without truncation and padding and special tokens, for the ids alone.
    bare = Tokenizer.from_str(json.dumps(written) if written else tokenizer.to_str())
    bare.no_truncation()
    bare.no_padding()
    for line, printed in zip(lines, map(json.loads, done.stdout.split("\n")[:-1]), strict=True):
        wanted = expected(tokenizer, line)
        if isinstance(line, str):
            wanted["alone"] = bare.encode(line, add_special_tokens=False).ids
        for field, value in wanted.items():
            if printed[field] != value:
                faults += 1
                if faults <= 3:
                    print(f"{name}: {field} of {line!r}:\n  expected {value}\n  found    {printed[field]}\n  tokens {wanted['tokens']}")
                break
    if written is None:
        print(f"{name}: {len(lines)} texts, {faults} differ")
    return faults


def compare_ids(program, name, tokenizer, lines, folder):
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    done = subprocess.run([program, str(file), "ids"], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True,
                          text=True, check=True)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    faults = 0
    for encoding, line, printed in zip(tokenizer.encode_batch(lines, add_special_tokens=False), lines,
                                       done.stdout.split("\n")[:-1], strict=True):
        if encoding.ids != [int(word) for word in printed.split()]:
            faults += 1
            if faults <= 3:
                print(f"{name}: {line!r}:\n  expected {encoding.ids}\n  found    {printed}\n  {encoding.tokens}")
    print(f"{name}: ids of {len(lines)} texts, {faults} differ")
    return faults


def main(program, strings=150, verses=150):
    text = bible() or made_verses()
    strings, verses = int(strings), int(verses)
    draw = random.Random(7)
    odd = [odd_string(draw) for _ in range(strings)]
    faults = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, tokenizer in families(text[::10]):
            if verses == 0:
                faults += compare_ids(program, name, tokenizer, text + odd, folder)
                continue
            some = draw.sample(text, verses)
            pairs = [[draw.choice(some), draw.choice(odd)] for _ in range(verses // 4)]
            faults += compare(program, name, tokenizer, some + odd + pairs, folder)
        if verses != 0:
            for name, tokenizer in components(text[::20]):
                faults += compare(program, name, tokenizer, text[:20] + odd, folder)
    sys.exit(faults > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
