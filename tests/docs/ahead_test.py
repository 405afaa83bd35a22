"""ahead_test.py ROOT: what bench/ahead.py counts in the text of an optimized program, and the tables that it makes."""

import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(sys.argv[1]) / "bench"), str(Path(sys.argv[1]) / "bench/tpu_programs")]
import ahead  # noqa: E402
import hlo  # noqa: E402

# A loop of five rounds, each of which reads one row of a stack of four rows and writes one row of another.
PROGRAM = """HloModule jit_step, is_scheduled=true

%row (stack: f32[4,256], place: s32[]) -> f32[1,256] {
  %stack = f32[4,256]{1,0:T(4,128)} parameter(0)
  %place = s32[]{:T(128)S(6)} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  ROOT %cut = f32[1,256]{1,0:T(1,128)S(1)} dynamic-slice(%stack, %place, %zero), dynamic_slice_sizes={1,256}
}

%put (stack.1: f32[4,256], one: f32[1,256], place.1: s32[]) -> f32[4,256] {
  %stack.1 = f32[4,256]{1,0:T(4,128)} parameter(0)
  %one = f32[1,256]{1,0:T(1,128)S(1)} parameter(1)
  %place.1 = s32[]{:T(128)S(6)} parameter(2)
  %zero.1 = s32[]{:T(128)} constant(0)
  ROOT %put.1 = f32[4,256]{1,0:T(4,128)} dynamic-update-slice(%stack.1, %one, %place.1, %zero.1)
}

%body (state: (s32[], f32[4,256], f32[4,256])) -> (s32[], f32[4,256], f32[4,256]) {
  %state = (s32[]{:T(128)S(6)}, f32[4,256]{1,0:T(4,128)}, /*index=2*/f32[4,256]{1,0:T(4,128)}) parameter(0)
  %i = s32[]{:T(128)S(6)} get-tuple-element(%state), index=0
  %from = f32[4,256]{1,0:T(4,128)} get-tuple-element(%state), index=1
  %to = f32[4,256]{1,0:T(4,128)} get-tuple-element(%state), index=2
  %read = f32[1,256]{1,0:T(1,128)S(1)} fusion(%from, %i), kind=kLoop, calls=%row
  %written = f32[4,256]{1,0:T(4,128)} fusion(%to, %read, %i), kind=kLoop, calls=%put
  ROOT %next = (s32[]{:T(128)S(6)}, f32[4,256]{1,0:T(4,128)}, f32[4,256]{1,0:T(4,128)}) tuple(%i, %from, %written)
}

%condition (state.1: (s32[], f32[4,256], f32[4,256])) -> pred[] {
  %state.1 = (s32[]{:T(128)S(6)}, f32[4,256]{1,0:T(4,128)}, f32[4,256]{1,0:T(4,128)}) parameter(0)
  %rounds = s32[]{:T(128)S(6)} constant(5)
  %i.1 = s32[]{:T(128)S(6)} get-tuple-element(%state.1), index=0
  ROOT %less = pred[]{:T(512)S(6)} compare(%i.1, %rounds), direction=LT
}

ENTRY %main (a: f32[4,256], b: bf16[1024]) -> (f32[4,256], bf16[1024]) {
  %a = f32[4,256]{1,0:T(4,128)} parameter(0)
  %b = bf16[1024]{0:T(1024)} parameter(1)
  %begin = s32[]{:T(128)S(6)} constant(0)
  %all = (s32[]{:T(128)S(6)}, f32[4,256]{1,0:T(4,128)}, f32[4,256]{1,0:T(4,128)}) tuple(%begin, %a, %a)
  %loop = (s32[]{:T(128)S(6)}, f32[4,256]{1,0:T(4,128)}, f32[4,256]{1,0:T(4,128)}) while(%all), condition=%condition, body=%body
  %out = f32[4,256]{1,0:T(4,128)} get-tuple-element(%loop), index=2
  %near-start = (bf16[1024]{0:T(1024)S(1)}, bf16[1024]{0:T(1024)}, u32[]{:S(2)}) copy-start(%b)
  %near = bf16[1024]{0:T(1024)S(1)} copy-done(%near-start)
  %mean = bf16[1024]{0:T(1024)} all-reduce(%near), replica_groups={{0,1}}, to_apply=%add
  ROOT %result = (f32[4,256]{1,0:T(4,128)}, bf16[1024]{0:T(1024)}) tuple(%out, %mean)
}
"""
SIDE = {"flops": 2e9, "hbm_bytes": 3e9, "bytes_accessed": 4e9, "memory": 5e9, "code": 6e6, "exchanged": 0, "processor_seconds": 7}


def row(recipe, slice_, ours, theirs=SIDE, **more):
    ratio = {name: ours[name] / theirs[name] for name in SIDE if theirs.get(name) and name in ours}
    return {"recipe": recipe, "slice": slice_, "sluice": ours, "jax": theirs, "date": "2026-11-30", "commit": "c",
            "jax_version": "0.10.2", **({"ratio": ratio} if ratio else {}), **more}


def test_bytes_of_hbm():
    counter = hlo.Counter(PROGRAM)
    assert counter.trips(counter.computations["main"].by_name["loop"]) == 5
    # In each round a row of 1,024 bytes is read from HBM into VMEM and another is written; the stacks stay where they are.
    assert counter.hbm("body") == 1024 + 1024, counter.hbm("body")
    # The copy reads 2,048 bytes of HBM; the collective writes as many.
    assert counter.hbm() == 5 * 2048 + 2048 + 2048, counter.hbm()
    known = PROGRAM.replace("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"3"}}')
    assert hlo.Counter(known).hbm() == 3 * 2048 + 4096
    largest = counter.largest(1)[0]
    assert largest[0] == 5 * 1024 and largest[1] == 5, largest
    assert counter.collectives() == {"all-reduce": [1, 2048]}


def test_types_and_tuples():
    assert hlo.bytes_of("(f32[2,3]{1,0}, /*index=1*/bf16[4]{0:T(8)S(1)}, pred[])") == 25
    assert hlo.bytes_of("bf16[4]{0:T(8)S(1)}", only_hbm=False) == 8
    assert hlo.parts("((f32[2,3]{1,0:T(8,128)}), f32[1]{0}, u32[]{:S(2)})") == ["(f32[2,3]{1,0:T(8,128)})", "f32[1]{0}", "u32[]{:S(2)}"]


def test_tables():
    less, none = {**SIDE, "hbm_bytes": 1.5e9, "memory": 4e9}, {"does_not_fit": "E1000"}
    rows = [row("lstm", "v6e-8", less, note="a cause"), row("llama", "v3-8", none, none), row("llama", "v6e-8", none),
            row("lstm", "v3-8", SIDE)]
    lines = ahead.table(rows).splitlines()
    assert lines[0] == "| step | v3-8 | v6e-8 |" and len(lines) == 4, lines
    assert lines[2].endswith("| 1.00/1.00 | 0.50/0.80 |"), lines[2]
    assert lines[3].endswith("| no room | no room (Sluice) |"), lines[3]
    first = ahead.all_rows(rows).splitlines()[2]
    assert "| 1.5 / 3 (0.50) | 4 / 4 (1.00) | 4 / 5 (0.80) | 6 / 6 (1.00) | 0 / 0 |" in first and "a cause; 2026-11-30" in first, first


def test_the_file_is_in_the_order_of_the_recipes():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        assert ahead.read(path) == []
        ahead.write(path, [row("llama", "v3-8", SIDE), row("lstm", "v6e-8", SIDE), row("lstm", "v3-8", SIDE)])
        assert [(one["recipe"], one["slice"]) for one in ahead.read(path)] == [("lstm", "v3-8"), ("lstm", "v6e-8"), ("llama", "v3-8")]
        assert len(path.read_text().splitlines()) == 5


def test_token_files():
    with tempfile.TemporaryDirectory() as folder:
        ahead.write_tokens(Path(folder), documents=3, length=5)
        assert (Path(folder) / "tokens-0000.bin").stat().st_size == 2 * 15
        assert (Path(folder) / "tokens-0000.idx").stat().st_size == 9 + 8 + 1 + 16 + 4 * 3 + 8 * 3 + 8 * 4
        used = {recipe["command"][3].removesuffix(".json") for recipe in ahead.RECIPES.values() if "command" in recipe}
        assert used == set(ahead.CONFIGS), used
        assert json.loads((Path(folder) / "llama.json").read_text())["hidden_size"] == 2048


if __name__ == "__main__":
    tests = [test for name, test in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests passed")
