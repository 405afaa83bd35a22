"""check_classes.py ROOT: no class of the trainer, no folder and no frozen room of the source has become too large.

A class of sluice/train declares at most 20 member functions in its own body: constructors, destructors and operators
count, deleted functions do not. A folder of a room has at most 30 code files, tests not counted; folders of other rooms
that have more are in a table. A room that is not to grow has at most the lines in a third table. The numbers of the
tables may only fall; a new capability of a full room has to make another part shorter.
"""

import re
import sys
from collections import Counter
from pathlib import Path

MAX_FUNCTIONS, MAX_FILES = 20, 30
# Classes of sluice/train with more member functions than others may have, by their file and name.
LARGER_CLASSES = {}
# Folders of other rooms with more code files than MAX_FILES.
LARGER_FOLDERS = {}
# The lines of rooms that are not to grow, tests not counted.
FROZEN_ROOMS = {"kernels": 10343}
# Comments, texts and directives, which may have braces; also characters, but not the ' of 10'000.
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
                    re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"(?<!enum )\b(?:class|struct)\s+([\w:]+)(?:\s+final)?\s*(?::(?!:)[^;{}()]*)?\{")
LABEL = re.compile(r"^\s*(?:public|protected|private)\s*:(?!:)")
NO_FUNCTION = re.compile(r"^\s*(?:using|typedef|friend|static_assert|enum|class|struct|union)\b")


def block_end(text, begin):
    """The place after the brace that closes the one at `begin`."""
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def declarations(body):
    """The declarations in a class's body; what they have in braces is left out."""
    place, begun, text = 0, 0, ""
    while place < len(body):
        if body[place] == "{":
            place, text = block_end(body, place), text + "{}"
            rest = body[place:].lstrip()
            # A function's body ends its declaration; the braces of a value or of a member's initializer do not.
            if not rest.startswith((",", ";", "{")):
                yield text
                text = ""
        elif body[place] == ";" and text.count("(") == text.count(")"):
            yield text
            place, text = place + 1, ""
        else:
            text += body[place]
            place += 1
            if LABEL.match(text):
                text = ""


def is_function(declaration):
    if NO_FUNCTION.match(declaration) or re.search(r"=\s*delete\s*$", declaration):
        return False
    if re.search(r"\boperator\b", declaration):
        return True
    text = declaration.replace("->", "  ")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    head = re.split(r"[={]", text)[0]
    return "(" in head and not NO_FUNCTION.match(head)


def classes_of(source):
    """(name, number of member functions) of each class that a source defines, those within classes too."""
    text = HIDDEN.sub(" ", source)
    for found in CLASS.finditer(text):
        body = text[found.end():block_end(text, found.end() - 1) - 1]
        yield found[1], sum(is_function(one) for one in declarations(body))


def faults_of_classes(sizes, larger):
    """`sizes`: {file and name: number of functions}."""
    for name, size in sorted(sizes.items()):
        limit = larger.get(name, MAX_FUNCTIONS)
        if size > limit:
            yield f"{name} has {size} member functions: expected at most {limit}; give a part of its work to a class of its own"
    for name, limit in sorted(larger.items()):
        if sizes.get(name, 0) < limit:
            yield f"{name} has {sizes.get(name, 0)} member functions and {limit} in LARGER_CLASSES: write the smaller number there"


def faults_of_folders(sizes, larger):
    for folder, size in sorted(sizes.items()):
        limit = larger.get(folder, MAX_FILES)
        if size > limit:
            yield f"{folder} has {size} code files: expected at most {limit}; sort them into folders"
    for folder, limit in sorted(larger.items()):
        if sizes.get(folder, 0) < limit:
            yield f"{folder} has {sizes.get(folder, 0)} code files and {limit} in LARGER_FOLDERS: write the smaller number there, or none up to {MAX_FILES}"


def faults_of_rooms(lines, frozen):
    """`lines`: {room: lines of its code files}."""
    for room, limit in sorted(frozen.items()):
        if lines[room] > limit:
            yield f"sluice/{room} has {lines[room]} lines: expected at most {limit}; make it shorter elsewhere"
        if lines[room] < limit:
            yield f"sluice/{room} has {lines[room]} lines and {limit} in FROZEN_ROOMS: write the smaller number there"


def self_test():
    source = """
class Large final : public Base<int>, private Other {
 public:
  explicit Large(int a = f(1)) : a_{a}, b_(2) { if (a) { b(); } }
  ~Large() override = default;
  Large(const Large&) = delete;
  Large& operator=(const Large& other) { a_ = other.a_; return *this; }
  // not(a function);
  template <typename T>
  requires std::derived_from<T, Base> void take(T&& given);
  using Update = std::function<void(int)>;
  friend void befriended(int a);
  std::pair<int, char> two(std::function<void(int)> call = [](int) {}) const;
  struct Inner { int a() const { return 'x'; } int b = 0; };

 private:
  enum class Kind { kA, kB };
  std::function<void(int)> call_;
  int a_ = f(2), b_{g(3)};
};
struct Declared;
enum class Colour { kRed };
"""
    assert dict(classes_of(source)) == {"Large": 5, "Inner": 1}, dict(classes_of(source))
    assert not list(faults_of_classes({"a.h: A": MAX_FUNCTIONS, "b.h: B": 30}, {"b.h: B": 30}))
    assert len(list(faults_of_classes({"a.h: A": MAX_FUNCTIONS + 1, "b.h: B": 29}, {"b.h: B": 30}))) == 2
    assert not list(faults_of_folders({"sluice/a": MAX_FILES, "sluice/b": 40}, {"sluice/b": 40}))
    assert len(list(faults_of_folders({"sluice/a": MAX_FILES + 1, "sluice/b": 39, "sluice/c": 41}, {"sluice/b": 40, "sluice/c": 40}))) == 3
    assert not list(faults_of_rooms({"a": 10, "b": 99}, {"a": 10}))
    assert len(list(faults_of_rooms({"a": 11, "b": 9}, {"a": 10, "b": 10}))) == 2


def main(root):
    self_test()
    files = [path for suffix in ("h", "cc") for path in sorted((root / "sluice").rglob(f"*.{suffix}"))
             if not path.name.endswith("_test.cc")]
    if len(files) < 10:
        sys.exit(f"only {len(files)} source files under {root}/sluice: is this the project's root?")
    names = [path.relative_to(root) for path in files]
    sizes = {f"{name}: {kind}": size for path, name in zip(files, names) if name.parts[1] == "train"
             for kind, size in classes_of(path.read_text())}
    lines = Counter()
    for path, name in zip(files, names):
        lines[name.parts[1]] += len(path.read_text().splitlines())
    faults = [*faults_of_classes(sizes, LARGER_CLASSES),
              *faults_of_folders(Counter(str(name.parent) for name in names), LARGER_FOLDERS),
              *faults_of_rooms(lines, FROZEN_ROOMS)]
    print("\n".join(faults))
    print(f"{len(sizes)} classes of sluice/train, {len(files)} code files, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
