"""make_properties.py OUTPUT [MEASURED]: writes sluice/text/characters/property_table.cc.

Asks Oniguruma, through Python's tokenizers, which code points each of its properties and POSIX brackets has. That takes
five minutes; MEASURED is a JSON file that keeps the answers. The names that are tried are those in the package's library.
"""

import json
import re
import sys
from pathlib import Path

import tokenizers
from tokenizers import Regex, pre_tokenizers

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"
POSIX = ["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit",
         "word"]
NO_BLOCKS = {"inherited", "initialpunctuation", "inscriptionalpahlavi", "inscriptionalparthian", "incb"}
LAST = 0x10FFFF
# What no version of Unicode has divided is only looked at here and there.
ALL = [c for c in range(LAST + 1) if not 0xD800 <= c < 0xE000 and
       (c < 0x33480 or 0xE0000 <= c < 0xE0200 or c % 0x800 == 0 or c & 0xFFFF >= 0xFFFE)]
# Blocks begin at multiples of 16.
COARSE = [c for c in ALL if c % 16 in (0, 15) or c < 0x800]


def ranges(pattern, codes, text):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = []
    for _, (begin, end) in split.pre_tokenize_str(text):
        first, last = codes[begin], codes[end] - 1 if end < len(codes) else LAST
        if found and found[-1][1] >= first - 1:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found


def is_block(name):
    return name.startswith("in") and name not in NO_BLOCKS


def measure():
    library = next(Path(tokenizers.__file__).parent.glob("tokenizers*.so")).read_bytes()
    tried = {word.decode() for word in re.findall(rb"(?<![ -~])[a-z][a-z0-9]{0,45}(?![ -~])", library)}
    texts = {len(codes): "".join(map(chr, codes)) for codes in (ALL, COARSE)}
    made = {}
    for name in sorted(tried | set("c l lc m n p s z any assigned".split())):
        try:
            Regex(rf"\p{{{name}}}")
        except Exception:  # no property
            continue
        codes = COARSE if is_block(name) else ALL
        made[name] = ranges(rf"\p{{{name}}}+", codes, texts[len(codes)])
    made["=noscript"] = without_script(made["unknown"])
    for name in POSIX:
        made[f"[:{name}:]"] = ranges(f"[[:{name}:]]+", ALL, texts[len(ALL)])
    return made


def without_script(unassigned):
    """The characters that the pre-tokenizer UnicodeScripts has no script for: its table is older."""
    lacking = set(ALL) - {code for first, last in unassigned for code in range(first, last + 1)}
    for other in "aあ":
        text = other + "".join(chr(code) + other for code in ALL)
        begins = {span[0] for _, span in pre_tokenizers.UnicodeScripts().pre_tokenize_str(text)}
        lacking &= {code for place, code in enumerate(ALL) if 1 + 2 * place not in begins}
    found = []
    for code in sorted(lacking):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def number(value):
    text = ""
    while value >= 32:
        text += LETTERS[value % 32 + 32]
        value //= 32
    return text + LETTERS[value]


def written(toggles):
    text, before = "", 0
    for place in toggles:
        text += number(place - before)
        before = place
    return text


def main(output, kept=None):
    if kept and Path(kept).exists():
        made = json.loads(Path(kept).read_text())
    else:
        made = measure()
        if kept:
            Path(kept).write_text(json.dumps(made))
    names = {}  # of each set, by the places where it begins and ends
    for name in sorted(made):
        if name.startswith("\\") or name.startswith("[\\"):
            continue
        toggles = tuple(place for first, last in made[name] for place in (first, last + 1))
        names.setdefault(toggles, []).append(name)
    sets = sorted(names, key=lambda toggles: (len(toggles), names[toggles]))
    entries = []
    for place, toggles in enumerate(sets):
        # A set is told by where it differs from one before it, if that is shorter.
        best = (len(written(toggles)), -1, written(toggles))
        if len(toggles) > 20:
            for other in range(place):
                difference = sorted(set(toggles) ^ set(sets[other]))
                if len(difference) < len(toggles):
                    best = min(best, (len(written(difference)), other, written(difference)))
        entries.append((" ".join(names[toggles]), best[1], best[2]))
    # One line after the other is filled.
    lines, line = [], ""
    for listed, base, text in entries:
        words = [f'{{"{listed}", {base}, ']
        parts = [text[i:i + 100] for i in range(0, len(text), 100)] or [""]
        words += [f'"{part}"' for part in parts]
        words[-1] += "},"
        for word in words:
            if line and len(line) + len(word) > 118:
                lines.append(line)
                line = ""
            line += word if not line else " " + word
    lines.append(line)
    Path(output).write_text(
        f"// Written by tests/python/make_properties.py from what tokenizers {tokenizers.__version__} answers.\n"
        '#include "sluice/text/characters/properties.h"\n\nnamespace sluice::text {\n\n// clang-format off\n'
        "const Property kProperties[] = {\n" + "\n".join(lines) +
        f"\n}};\n// clang-format on\nconst std::size_t kPropertyCount = {len(entries)};\n\n}}  // namespace sluice::text\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
