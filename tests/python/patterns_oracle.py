"""patterns_oracle.py PRINT_TOKENS [all]: regular expressions match what Oniguruma, within Python's tokenizers, matches.

Every class is compared over all code points. Those that divide them (general categories, scripts, blocks) are compared
together, and the others one by one; with `all`, each of the 900 properties alone, outside and inside of brackets, which
takes half an hour. Then come the rules of the syntax, and patterns that are drawn. Exit status 77 when the package is
missing.
"""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

try:
    from tokenizers import Regex, pre_tokenizers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TABLE = Path(__file__).parents[2] / "sluice/text/characters/property_table.cc"
# Beyond these nothing is assigned: there every 2048th is enough.
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and
         (c < 0x33480 or 0xE0000 <= c < 0xE0200 or c % 0x800 == 0 or c & 0xFFFF >= 0xFFFE)]
EVERYTHING = "".join(map(chr, CODES))
COARSE = "".join(chr(c) for c in CODES if c % 16 in (0, 15))
CATEGORIES = "lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co cn".split()
LIKELY = [r"\w", r"\W", r"[\w]", r"[^\w]", r"[\W_]", r"[-\w]", r"[\p{word}]", r"[^\p{ Word }]", r"\s", r"[^\s]", r"\d",
          r"[[:punct:]]", r"[[:alpha:]]",
          r"[[:alnum:]]", r"[[:word:]]", r"[[:upper:]]", r"[[:lower:]]", r"[[:graph:]]", r"[[:print:]]", r"[[:space:]]",
          r"[[:cntrl:]]", r"[^[:blank:]]", r"\p{Letter}", r"[\p{Han}\p{Hiragana}]", r"\p{^Latin}", r"[^\s\p{L}\p{N}]",
          r"\p{Alphabetic}", r"\p{Emoji}", r"\p{Extended_Pictographic}", r"\p{Uppercase}", r"\p{Ideographic}", r"\p{S}",
          r"\p{M}", r"(?i)[a-z]", r"(?i)[\p{Lu}]", r"(?i)[^\p{Lu}\d]", r"[\p{L}\p{M}&&[^\p{Han}]]",
          r"(?i)[µßŉǆΐ-ώа-яԱ-Ֆꭰ-ꮿ]"]
RULES = [
    (r"(?i)ss", "ß ss SS ẞ sſ"), (r"(?i)ß", "ß ss SS ẞ sſ"), (r"(?i)[ß]", "ß ss SS ẞ sſ"), (r"(?i)[^ß]+", "ß ss SSẞ"),
    (r"(?i)ffi", "ﬃ ﬀi fﬁ ffi"), (r"(?i)affl", "aﬄ aﬀl afﬂ AFFL"), (r"(?i)sss", "ßs sß sss ssß"), (r"(?i)\p{Lu}", "aAſ"),
    (r"(?i)[\p{Lu}]", "aAſ"), (r"(?i)\P{Lu}", "aA1"), (r"(?i)[ß]x", "ssx"), (r"(?i)[\p{L}]x", "ssx"), (r"(?i)(s)s", "ß ss"),
    (r"(?i)s+t", "ﬆ st"), (r"(?i)st", "ﬆ ﬅ sT"), (r"(?i)\u0130", "İ i̇ I i"), (r"(?i)[[^b]]", "b"), (r"(?i)[^[^b]]", "bB"),
    (r"(?i)ŉ", "ŉ ʼn ʼN"), (r"(?i)(?<=ss)a", "ßa ssa"), (r"(?i)(?<!ß)a", "ẞa ssa ba"), (r"(?i)ᾳ", "ᾼ αι ΑΙ"), (r"(?i)s{2}", "ß"),
    (r"(?i)եւ", "և"), (r"(?i)Ꟍ", "ꟍ"), (r"(?i)ꭰ", "Ꭰ"), (r"(?i)k", "KK"), (r"(?i)µ", "μΜµ"),
    (r"a{,2}", "aaaaa"), (r"a{,}", "a{,}aa"), (r"a{1,2}+", "aaaaa"), (r"a{2}?", "aaaaa"), (r"a{2}?b", "b ab aab"),
    (r"a{1,2}?", "aaa"), (r"a{3,1}a", "aaa"), (r"a{2}{3}", "aaaaaaaa"), (r"a**", "aaa"), (r"a?+a", "a aa"), (r"a{2}+", "aaaa aaa"),
    (r"a{x", "a{x"), (r"{", "{"), (r"]", "]"), (r"\Qa\E", "QaE a"), (r"\v", "\v\n\x85v"), (r"[\v]", "\v\n\x85v"), (r"\R", "\r\n\r\v\u2028"),
    (r"\O+", "a\nb"), (r"\N+", "a\nb"), (r"e\b", "e\u0301 e² e½ e "), (r"\bé", "é aé"), (r"\B.", "ab\u0301c d"), (r"\w+", "a²½ b"),
    (r"\x41", "A"), (r"\xe3\x80\x80", "\u3000"), (r"[\xe3\x80\x80]", "\u3000"), (r"\x80", "\x80"), (r"\u00AD", "\xad"),
    (r"[\u3040-\u309f]", "あa"), (r"\x{3042}", "あ"), (r"\012", "\n"), (r"[\1]", "1\x01"), (r"\08", "\x008"), (r"\u41", "u41"),
    (r"[a-c&&b-d]+", "abcd"), (r"[^a&&b]+", "abcd"), (r"[a-z&&[^b]]+", "abcd"), (r"[a-c-e]+", "a-bcde"), (r"[\w-z]+", "a-z"),
    (r"[-\w]+", "a-z"), (r"[a-\d]+", "a-5"), (r"[]a]+", "]a"), (r"[[:foo:]]+", ":fo"), (r"[[:^alpha:]]+", "a1"), (r"[--/]+", "-./"),
    (r"[!--]+", "!+-a"), (r"[a--]", "a-"), (r"[^-a]+", "b-a"), (r"[a&&]", "a"), (r"[&&a]", "a&"), (r"[a&b]+", "a&b"), (r"[^]]", "a]"),
    (r"a(?i)b|c", "aB C aC"), (r"a|(?i)b|c", "aBC"), (r"(?m).+", "a\nb"), (r"(?s).+", "a\nb"), (r"(?x) a b # c", "ab"),
    (r"(?x)[a b]+", "a b"), (r"(?x)a +b", "aab a b"), (r"(?x)\ a", " a"), (r"(?<n>a)(b)\k<n>", "aba"), (r"(a)\1", "aa"), (r"*a", "*a"),
    (r"(?=a)*b", "ab"), (r"[a", "a"), (r"(a", "a"), (r"a)", "a"), (r"(?>a+)a", "aaa"), (r"(?#x)a", "a"), (r"a++a", "aaa"), (r"^b", "a\nb"),
    (r"a$", "a\nb"), (r"a\z", "a\n"), (r"a\Z", "a\n"), (r"\cA", "\x01"), (r"\C-a", "\x01"), (r"\e\a\f\t", "\x1b\a\f\t"), (r"[\b]", "\b"),
    (r"[\R]", "R\n"), (r"\p{^L}", "a1"), (r"\P{^L}", "a1"), (r"\p{ Latin_ }", "a1"), (r"\p{Foo}", "a"), (r"\pL", "pL"), (r"\h+", "abF"),
    (r"\j\-\/\#\<\`\'\é", "j-/#<`'é"), (r"\o{101}", "A"), (r"x*", "axb"), (r"a|", "ab"), (r"", "ab"), (r"(?<=a|bc)d", "ad bcd"),
    (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
     "I'LL 'ſ don't 12345\r\n  été、。「」 漢字かな ²½ e\u0301 \xa0x"),
]


def expected(pattern, text):
    """What is matched, or None where Oniguruma refuses the pattern."""
    try:
        split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    except Exception:  # its own class, which is not exported
        return None
    return [list(span) for _, span in split.pre_tokenize_str(text) if span[0] < span[1]]


def found(program, patterns, text):
    lines = "\n".join(json.dumps(line) for line in [text, *patterns]) + "\n"
    done = subprocess.run([program, "matches"], input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{patterns[:3]}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(program, patterns, text, strict=True):
    """The number that differ. What Sluice has not, or what takes too many steps, is an error, never another result: where
    Oniguruma has it, it counts as refused. What only Oniguruma refuses is a fault where `strict`."""
    faults = refused = 0
    for pattern, mine in zip(patterns, found(program, patterns, text), strict=True):
        try:
            theirs = expected(pattern, text)
        except BaseException as error:  # a panic: no result
            print(f"{pattern!r}: tokenizers panics: {error}")
            continue
        if isinstance(mine, str):
            is_limit = "is not known" in mine or "match limit exceeded" in mine
            refused += theirs is not None and is_limit
            if theirs is None or is_limit:
                continue
        elif theirs is None and not strict:
            continue
        else:
            mine = [span for span in mine if span[0] < span[1]]
        if mine != theirs:
            faults += 1
            if isinstance(mine, list) and theirs is not None:
                own, others = set(map(tuple, mine)), set(map(tuple, theirs))
                mine, theirs = sorted(own - others)[:5], sorted(others - own)[:5]
                places = [ascii(text[slice(*span)][:10]) for span in mine + theirs]
            else:
                places = []
            print(f"{pattern!r}: expected {theirs}, found {mine} {places}")
    return faults, refused


def drawn_pattern(draw, depth=0):
    atoms = ["a", "b", "s", "é", "ß", "-", " ", r"\w", r"\s", r"\d", r"\p{L}", r"\p{Han}", "[ab]", "[^a]", r"[\w&&[^b]]", r"\b",
             ".", r"[[:punct:]]", r"[\W_]", "ss", "k", r"\P{Lu}", r"[^\s\p{N}]", r"\u00e9", "[a-c[x]]"]
    parts = []
    for _ in range(draw.randint(1, 3)):
        atom = draw.choice(atoms)
        if depth < 2 and draw.random() < 0.3:
            opened = draw.choice(["(?:", "(", "(?i:", "(?=", "(?!", "(?>", "(?m:", "(?i)(?:"])
            atom = opened + drawn_pattern(draw, depth + 1) + ")"
        parts.append(atom + draw.choice(["", "", "", "*", "+", "?", "{1,2}", "{,2}", "{2}+", "*?", "++", "+?", "{2}?", "{1,2}?"]))
    return "".join(parts) + ("|" + drawn_pattern(draw, depth + 1) if depth < 2 and draw.random() < 0.3 else "")


def main(program, scope=""):
    rows = re.findall(r'^\{?"?.*$', TABLE.read_text(), re.MULTILINE)
    names = [name for listed in re.findall(r'\{"([^"]+)", -?\d+', "\n".join(rows)) for name in listed.split()]
    outside = [name for name in names if not name.startswith("[")]
    blocks = [name for name in outside if name.startswith("in") and name not in
              ("inherited", "initialpunctuation", "inscriptionalpahlavi", "inscriptionalparthian", "incb")]
    faults = 0

    def report(what, patterns, text, strict=True):
        nonlocal faults
        differ, refused = compare(program, patterns, text, strict)
        faults += differ
        print(f"{what}: {len(patterns)} patterns, {differ} differ, {refused} are refused", flush=True)

    if scope == "all":
        for name in outside:
            forms = [rf"\p{{{name}}}+"] + ([rf"[\p{{{name}}}]+", rf"[^\p{{{name}}}]+"] if name not in blocks else [])
            differ, _ = compare(program, forms, COARSE if name in blocks else EVERYTHING)
            faults += differ
        report("POSIX brackets", [f"[{no}{name}]+" for name in names if name.startswith("[") for no in ("", "^")], EVERYTHING)
        whole = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
        report("all code points", [rf"{one}+" for one in LIKELY[:12]], whole)
        print(f"{len(outside)} properties")
    report("categories", ["|".join(rf"\p{{{name}}}+" for name in CATEGORIES)], EVERYTHING)
    report("blocks", ["|".join(rf"\p{{{name}}}+" for name in blocks)], COARSE)
    report("classes", [f"{one}+" for one in LIKELY], EVERYTHING)
    for pattern, text in RULES:
        faults += compare(program, [pattern], text)[0]
    print(f"{len(RULES)} rules")
    draw = random.Random(3)
    text = "aab ss ß SS é漢字、a-b\u0301 Kk 12²\n xyz  ABC_s\u00e9ẞſ \t.a,b"
    report("drawn", [drawn_pattern(draw) for _ in range(5000 if scope == "all" else 400)], text, strict=False)
    sys.exit(faults > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
