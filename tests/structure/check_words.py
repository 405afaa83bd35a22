"""check_words.py ROOT [--phrases]: the project's files say things in the field's own words.

No leftovers, no paths of one machine, no hosts of package registries, and no home-made words (WORDS), in prose and in
identifiers. The pages (*.md of the root, of docs and of sluice) also have budgets for phrases that must be read twice
(PHRASES), and the comments of sluice/ have one for all of them; --phrases lists where they are.
"""

import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN = {
    r"\bTODO\b|\bFIXME\b|\bXXX\b|\bHACK\b": "a leftover: finish it or leave it out",
    r"(?<![\w.])/(work|root|home/(?!user\b))/?\w": "a path of one machine",
    r"\b(pypi\.org|pythonhosted\.org|deb\.debian\.org|crates\.io|registry\.npmjs\.org)\b": "a registry's host",
    r"^(<<<<<<<|>>>>>>>) ": "a merge conflict",
    r"^#include <torch/csrc/autograd/node\.h>": "LibTorch 2.11 has it in torch/csrc/autograd/function.h alone",
    r"\bthrow (sluice::)?Error\(": "throw_error(…): an Error alone is not a std::exception",
}
# PyTorch's own address is where its published packages are; these files may name it.
PYTORCH_ADDRESS = r"\bdownload\.pytorch\.org\b"
MAY_NAME_PYTORCH = {"scripts/fetch_wheels.py", "scripts/lock_python", "scripts/setup_test_python", "docs/install.md"}

# What was called by a name of this project's own, and what the field calls it. Patterns meet a line as it is, and the
# words of its identifiers, in lower case ("k fewest channels"), so that one pattern finds kInnerPlaces, inner_places
# and "inner places", over the end of a line too.
WORDS = {
    r"\bpictures?\b": "image",
    r"\binner places?\b": "K, or inner dimension",
    r"\b(first|second|third)(-level)? caches?\b": "L1, L2 or L3 cache",
    r"\bturned\b(?! (away|out|into|off|on|down|back)\b)|\bturned over\b": "transposed (a matrix); rotated, flipped (an image, a filter)",
    r"(?<!in )(?<!in_)(?<!for )(?<!for_)\bturn\(": "transpose (a matrix)",
    r"\bk (fewest|least|most)\b|\b(fewest|most)_\w|\b(fewest|most)( =|\[)": "kMin…, kMax…, min_…, max_…",
    r"\b[xyw]_gradients?\b": "grad_x",
    r"\banew\b": "again",
}
# What a line with such a word has in it: most lines have none of these, and are looked at no further.
STEMS = re.compile("picture|inner|first|second|third|turn|fewest|least|most|gradient|anew", re.IGNORECASE)
# (file, words of the line) where such a word is right: what another program calls it, or another meaning.
ALLOWED = {
    ("CHANGELOG.md", "where it said `pictures`"),
}
# Phrases that a reader of a page must decode: (pattern, what to write, how many the pages may have). Some uses are right,
# so each kind has a budget. A budget only falls: lower it when the script says so, and never raise it.
PHRASES = {
    "so many": (r"\bso many\b|\bas many\b", "N, the number of, the same number of", 2),
    "of which": (r"\bof which\b", "two sentences", 0),
    "goes on": (r"\b(goes|go|going|went) on\b", "continues, resumes", 0),
    "is told": (r"\b(is|are|was) told\b|\b(told|tells) of\b", "reports, prints", 0),
    "is none": (r"\b(is|are|has|have) none\b|\bnone of the\b", "has no …, does not belong to …", 0),
    "behind": (r"\bbehind (it|them|the|a|an|each)\b", "after", 0),
    "beside": (r"\bbeside\b", "next to, compared with, in addition to", 6),
    "alone": (r"(?<!leave )\balone\b(?=[.,;:)]| (is|are|has|of|in|for|and|on)\b)", "only", 4),
    "made again": (r"\bmade again\b|\bonce more\b", "re-created, again", 0),
    "whatever": (r"\bwhatever\b|\bwhat else\b", "any …, everything else that …", 2),
    "that of": (r"\b(that|those) of\b|\bthose that\b", "the thing's name again", 2),
    "stands in": (r"\b(stands?|lies?) (in|at|beside|behind|above|below)\b", "is in, is next to", 0),
    "odd words": (r"\bquick(er|est)?\b|\bdear(er|est)\b|\bno number\b|\bin words\b|\bworth a look\b|\bone's\b|"
                  r"\bof itself\b|\btakes? up\b|\bsaid apart\b|\bso far as\b",
                  "fast, expensive, NaN or infinite, by itself, separately: the plain word", 0),
    "of what": (r"(^|[.;:|] +)(?-i:Of) ", "what the sentence is about, as its subject", 2),
}
# How many of these phrases the comments of the sources have, tests aside. It only falls, too.
COMMENTS_BUDGET = 63
COMMENT = re.compile(r"(?<![:\"])//+ ?(.*)")
TEXT = {".h", ".cc", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".toml", ".sh", ".sample", ".mlir", ""}


def files_of(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(path.relative_to(root)) for path in root.rglob("*") if not path.parts[len(root.parts)].startswith(
            (".deps", ".git", "build", "out"))]
    return [name for name in names if name and (root / name).is_file() and Path(name).suffix in TEXT]


def faults_of(name, text):
    rules = dict(FORBIDDEN)
    if name not in MAY_NAME_PYTORCH:
        rules[PYTORCH_ADDRESS] = "say it in docs/install.md"
    for pattern, reason in rules.items():
        for found in re.finditer(pattern, text, re.MULTILINE):
            number = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{number}: {reason}: {text.splitlines()[number - 1].strip()[:120]}"


def identifier_words(text):
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ").lower()


def home_made(name, text):
    """(line number, fault) of each home-made word. A phrase may go on in the next line, behind the comment's mark."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not STEMS.search(line):
            continue
        following = re.sub(r"^\s*(//|#)?\s*", "", lines[number]) if number < len(lines) else ""
        if any(name == file and words in line for file, words in ALLOWED):
            continue
        for pattern, standard in WORDS.items():
            for form in (str.lower, identifier_words):
                found = re.search(pattern, form(line) + " " + form(following))
                if found and found.start() < len(form(line)):
                    yield number, f"{name}:{number}: \"{found[0]}\": write {standard}: {line.strip()[:100]}"
                    break


def is_page(name):
    return name.endswith(".md") and (name.startswith(("docs/", "sluice/")) or "/" not in name)


def phrases_of(name, text):
    """(kind, fault) of each of PHRASES in a page's prose: not in its code, which quotes what programs say."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if fenced or line.startswith("    ") and not line.lstrip().startswith("-"):
            continue
        prose = re.sub(r"`[^`]*`", "`…`", line)
        for kind, (pattern, instead, _) in PHRASES.items():
            for found in re.finditer(pattern, prose, re.IGNORECASE):
                around = prose[max(0, found.start() - 40):found.end() + 40]
                yield kind, f"{name}:{number}: \"{found[0].strip()}\": write {instead}: …{around}…"


def is_source(name):
    return name.startswith("sluice/") and name.endswith((".h", ".cc")) and not name.endswith("_test.cc")


def comment_phrases_of(name, text):
    """A fault for each of PHRASES in a source's comments."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.search(line)
        for pattern, instead, _ in PHRASES.values() if comment else ():
            for found in re.finditer(pattern, comment[1], re.IGNORECASE):
                yield f"{name}:{number}: \"{found[0].strip()}\": write {instead}: {comment[0]}"


def counts_of(phrases):
    return {kind: sum(found == kind for found, _ in phrases) for kind in PHRASES}


def over_budget(counts):
    for kind, (_, instead, budget) in PHRASES.items():
        if counts[kind] > budget:
            yield (f"the pages have \"{kind}\" {counts[kind]} times, and {budget} times before: write {instead} "
                   f"(check_words.py ROOT --phrases lists the places; CONTRIBUTING.md has the style)")


def comments_over_budget(count):
    if count > COMMENTS_BUDGET:
        yield (f"the comments have {count} phrases that must be read twice, and {COMMENTS_BUDGET} before "
               f"(check_words.py ROOT --phrases lists the places; CONTRIBUTING.md has the style)")


def self_test():
    assert list(home_made("a.h", "constexpr int kMostTiles = 1;")) and list(home_made("a.h", "int inner_places;"))
    assert list(home_made("a.h", "// so many inner\n  // places"))
    assert not list(home_made("a.h", "int at_most_one;  // turned into a sum, most of it")), "too eager"
    assert list(faults_of("a.cc", "// TO" + "DO: later"))
    assert list(faults_of("a.md", "see /ro" + "ot/x"))
    assert not list(faults_of("a.cc", "int todo = 0;  // a/home/b"))
    assert [kind for kind, _ in phrases_of("a.md", "A run goes on. Whatever ends")] == ["goes on", "whatever"]
    assert not list(phrases_of("a.md", "```\nit goes on\n```\nIt prints `it goes on`.\n\n    it goes on")), "code"
    none = counts_of([])
    assert not list(over_budget(none)) and len(list(over_budget({**none, "of which": 1000}))) == 1
    assert list(comment_phrases_of("a.h", "int i;  // Of which it goes on")) and list(comments_over_budget(10**6))
    assert not list(comment_phrases_of("a.h", 'f("http://goes on");'))
    assert is_source("sluice/a/b.cc") and not is_source("sluice/a/b_test.cc")
    assert is_page("README.md") and is_page("docs/a/b.md") and is_page("sluice/a/README.md") and not is_page("tests/README.md")


def main(root):
    self_test()
    names = [name for name in files_of(root) if Path(name).name != Path(__file__).name]
    if len(names) < 10:
        sys.exit(f"only {len(names)} files under {root}: is this the project's root?")
    faults, phrases, comments = [], [], []
    for name in names:
        text = (root / name).read_text(errors="replace")
        faults += faults_of(name, text)
        faults += (fault for _, fault in home_made(name, text))
        if is_page(name):
            phrases += phrases_of(name, text)
        if is_source(name):
            comments += comment_phrases_of(name, text)
    counts = counts_of(phrases)
    faults += [*over_budget(counts), *comments_over_budget(len(comments))]
    print("\n".join([fault for _, fault in phrases if "--phrases" in sys.argv] +
                    [fault for fault in comments if "--phrases" in sys.argv] + faults))
    for kind, (_, _, budget) in PHRASES.items():
        if counts[kind] < budget:
            print(f"the budget of \"{kind}\" can fall from {budget} to {counts[kind]}")
    if len(comments) < COMMENTS_BUDGET:
        print(f"the budget of comments can fall from {COMMENTS_BUDGET} to {len(comments)}")
    print(f"{len(names)} files, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
