"""What the text of an optimized TPU program moves: bytes to and from the memory of the chip (HBM), and collectives.

The compiler's "bytes accessed" counts what stays in VMEM too, and the body of a loop once. Here each instruction that is
no part of a fusion counts the operands that it reads and the results that it writes, if their layout names no other memory
(S(1) is VMEM), and a loop counts as often as it runs. Of an operand from which only slices or rows are taken, these are
counted; of a result that is written in place, only what is written.
"""

import re

WIDTHS = {"f64": 8, "s64": 8, "u64": 8, "c64": 8, "f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2, "s16": 2, "u16": 2,
          "s8": 1, "u8": 1, "pred": 1, "f8e4m3fn": 1, "f8e5m2": 1}
SHAPE = re.compile(r"\b(%s)\[([\d,]*)\](\{[^}]*\})?" % "|".join(WIDTHS))
NAME = re.compile(r"%([\w.\-]+)")
START = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
CALLED = re.compile(r"(?:calls|to_apply|body)=%?([\w.\-]+)")
BRANCHES = re.compile(r"(?:branch_computations=\{([^}]*)\}|true_computation=%?([\w.\-]+), false_computation=%?([\w.\-]+))")
TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
FREE = {"parameter", "tuple", "get-tuple-element", "constant", "bitcast", "after-all", "partition-id", "replica-id",
        "optimization-barrier", "add-dependency", "iota"}
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute")


def bytes_of(types, only_hbm=True):
    """The bytes of all arrays of a type, a tuple's too."""
    total = 0
    for kind, sizes, layout in SHAPE.findall(types):
        count = WIDTHS[kind]
        for size in filter(None, sizes.split(",")):
            count *= int(size)
        if not only_hbm or "S(" not in layout:
            total += count
    return total


def parts(text):
    """The elements of a tuple's type, or the type itself."""
    if not text.startswith("("):
        return [text]
    found, depth, begin = [], 0, 1
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if (letter == "," and depth == 1) or (letter == ")" and depth == 0):
            found.append(text[begin:place].strip())
            begin = place + 1
    return found


class Instruction:
    def __init__(self, line, start):
        self.is_root, self.name = bool(start.group(1)), start.group(2)
        rest = line[start.end():]
        depth = at = 0
        if rest.startswith("("):  # a tuple's type, which has blanks
            for at, letter in enumerate(rest):
                depth += (letter == "(") - (letter == ")")
                if depth == 0:
                    break
        opcode = OPCODE.search(rest, at)
        self.type, self.opcode = rest[:opcode.start()], opcode.group(1)
        depth, end = 1, opcode.end()
        while depth:
            depth += (rest[end] == "(") - (rest[end] == ")")
            end += 1
        self.operands = NAME.findall(rest[opcode.end():end])
        self.literal = rest[opcode.end():end - 1] if self.opcode in ("parameter", "constant") else ""
        self.rest = rest[end:]


class Computation:
    def __init__(self):
        self.instructions, self.by_name, self.users = [], {}, {}
        self.root = None

    def add(self, one):
        self.instructions.append(one)
        self.by_name[one.name] = one
        for operand in one.operands:
            self.users.setdefault(operand, []).append(one)
        if one.is_root:
            self.root = one

    def type_of(self, name):
        return self.by_name[name].type if name in self.by_name else ""

    def parameter(self, number):
        return next((one for one in self.instructions if one.opcode == "parameter" and one.literal == str(number)), None)


def read(text):
    """(name → Computation, the entry's name)."""
    found, current, entry = {}, None, None
    for line in text.split("\n"):
        if current is None:
            if line.endswith("{") and not line.startswith(("HloModule", " ")):
                name = re.match(r"^(ENTRY )?%?([\w.\-]+)", line)
                current = found[name.group(2)] = Computation()
                entry = name.group(2) if name.group(1) else entry
        elif line.startswith("}"):
            current = None
        elif start := START.match(line):
            current.add(Instruction(line, start))
    return found, entry


class Counter:
    def __init__(self, text):
        self.computations, self.entry = read(text)
        self.known = {}

    def hbm(self, name=None):
        """The bytes that a computation moves, with those that it calls."""
        name = name or self.entry
        if name not in self.known:
            within = self.computations[name]
            self.known[name] = sum(self.of(one, within) for one in within.instructions)
        return self.known[name]

    def of(self, one, within):
        if one.opcode in FREE or one.opcode.endswith(("-done", "-update")):
            return 0
        if one.opcode == "while":
            return self.hbm(CALLED.search(one.rest).group(1)) * self.trips(one)
        if one.opcode == "conditional":
            branches = NAME.findall(BRANCHES.search(one.rest).group(0)) or []
            return max((self.hbm(branch) for branch in branches), default=0)
        called = CALLED.search(one.rest)
        inner = self.computations.get(called.group(1)) if called else None
        if one.opcode == "call" and inner:
            return self.hbm(called.group(1))
        if one.opcode == "async-start" and inner:
            inside = [each for each in inner.instructions if each.opcode not in FREE]
            return sum(self.plain(each, inner) for each in inside)
        if one.opcode == "fusion" and inner:
            return self.of_fusion(one, within, inner)
        return self.plain(one, within)

    def trips(self, loop):
        """How often a loop runs: what the compiler knows, or the number that its condition compares with."""
        known = TRIPS.search(loop.rest)
        if known:
            return int(known.group(1))
        condition = self.computations[re.search(r"condition=%?([\w.\-]+)", loop.rest).group(1)]
        numbers = [int(one.literal) for one in condition.instructions if re.fullmatch(r"\d+", one.literal)]
        return max(numbers, default=1)

    def plain(self, one, within):
        """Of an instruction on its own."""
        first = within.type_of(one.operands[0]) if one.operands else ""
        size = lambda names: sum(bytes_of(within.type_of(name)) for name in names)
        if one.opcode in ("dynamic-slice", "slice", "gather"):
            return bytes_of(one.type) + (bytes_of(one.type, False) if bytes_of(first) else 0) + size(one.operands[1:])
        if one.opcode == "dynamic-update-slice":
            update = within.type_of(one.operands[1])
            return bytes_of(update) + (bytes_of(update, False) if bytes_of(one.type) else 0)
        if one.opcode == "scatter":  # reads and writes the rows of its updates
            return size(one.operands[1:]) + (2 * bytes_of(within.type_of(one.operands[-1]), False) if bytes_of(one.type) else 0)
        if one.opcode in ("copy-start", "slice-start"):  # (to, from, context), or ((from), to, context)
            of_slice = one.opcode == "slice-start"
            to = parts(one.type)[1 if of_slice else 0]
            read_here = (bytes_of(to, False) if bytes_of(first) else 0) if of_slice else bytes_of(first)
            return bytes_of(to) + read_here
        if one.opcode.endswith("-start"):
            elements = parts(one.type)
            to = elements[1] if len(elements) > 1 and one.opcode != "all-reduce-start" else one.type
            return bytes_of(to) + size(one.operands)
        return bytes_of(one.type) + size(one.operands)

    def of_fusion(self, one, within, inner):
        total = 0
        for number, operand in enumerate(one.operands):
            whole = bytes_of(within.type_of(operand))
            parameter = inner.parameter(number)
            total += min(whole, self.read_of(parameter, inner)) if whole and parameter else whole
        roots = [inner.root]
        if inner.root and inner.root.opcode == "tuple":
            roots = [inner.by_name.get(name) for name in inner.root.operands]
        for to, root in zip(parts(one.type), roots):
            root = behind(root, inner)
            in_place = root is not None and root.opcode == "dynamic-update-slice"
            written = bytes_of(inner.type_of(root.operands[1]), False) if in_place else bytes_of(to, False)
            total += min(bytes_of(to), written)
        return total

    def read_of(self, value, inner):
        """How much of a parameter a fusion reads: only the slices, if it takes nothing else of it."""
        total = 0
        for user in inner.users.get(value.name, []):
            if user.opcode == "bitcast":
                total += self.read_of(user, inner)
            elif user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == value.name:
                total += bytes_of(user.type, False)
            elif user.opcode == "dynamic-update-slice" and user.operands[0] == value.name:
                pass  # overwritten in place
            elif user.opcode == "fusion" and (called := CALLED.search(user.rest)):
                within = self.computations[called.group(1)]
                total += sum(self.read_of(within.parameter(i), within)
                             for i, name in enumerate(user.operands) if name == value.name)
            else:
                return bytes_of(value.type, False)
        return total

    def largest(self, count):
        """The instructions that move most, as (bytes, times, opcode, name, type), for a look at a program."""
        found = []

        def visit(name, times):
            within = self.computations[name]
            for one in within.instructions:
                if one.opcode == "while":
                    visit(CALLED.search(one.rest).group(1), times * self.trips(one))
                elif one.opcode == "call":
                    visit(CALLED.search(one.rest).group(1), times)
                else:
                    label = re.search(r'op_name="([^"]*)"', one.rest)
                    found.append((self.of(one, within) * times, times, one.opcode, one.name, one.type[:90],
                                  label.group(1)[-100:] if label else ""))

        visit(self.entry, 1)
        return sorted(found, reverse=True)[:count]

    def collectives(self):
        """{kind: [how many, bytes]}: bytes of what is exchanged, as each device has it before or after."""
        found = {}
        for within in self.computations.values():
            for one in within.instructions:
                kind = one.opcode.removesuffix("-start")
                if kind not in COLLECTIVES:
                    continue
                size = max(sum(bytes_of(within.type_of(name), False) for name in one.operands),
                           bytes_of(one.type, False) if one.opcode == kind else 0)
                if kind == "all-reduce" and one.operands:
                    kind = kind_in_fusion(one, within)
                count, total = found.get(kind, (0, 0))
                found[kind] = (count + 1, total + size)
        return {kind: list(value) for kind, value in sorted(found.items())}


def behind(one, inner):
    """The instruction whose value it is."""
    while one is not None and one.opcode in ("bitcast", "convert", "copy") and one.operands[0] in inner.by_name:
        one = inner.by_name[one.operands[0]]
    return one


def kind_in_fusion(one, within):
    """libtpu writes an all-gather as an all-reduce of zeros with each replica's slice, a reduce-scatter as an all-reduce of
    which each replica takes a slice."""
    if all(within.by_name[name].opcode == "dynamic-update-slice" for name in one.operands if name in within.by_name):
        return "all-gather"

    def only_sliced(name):
        users = within.users.get(name, [])
        return bool(users) and all(user.opcode == "dynamic-slice" or (user.opcode == "get-tuple-element" and only_sliced(user.name))
                                   for user in users)

    return "reduce-scatter" if only_sliced(one.name) else "all-reduce"
