"""record_test.py ROOT: what the benches print becomes rows of docs/performance.md."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(sys.argv[1]) / "bench"))
import performance_page  # noqa: E402
import record  # noqa: E402
import results  # noqa: E402

STEP = {"model": "resnet50", "batch_size": 128, "devices": 1, "precision": "f32", "rounds": 5, "cpu_kernels": True,
        "xla": {"step_ms": 183.4, "compile_s": 1.41, "first_steps_s": 1.8, "programs_compiled": 2, "trace_ms": 3.61,
                "operations": 899},
        "eager contiguous": {"step_ms": 455.2, "xla_to_this": 0.4}, "against": {"step_ms": 200.0, "xla_to_this": 0.92},
        "eager channels_last": {"step_ms": 378.0, "xla_to_this": 0.485}}


def test_a_step_becomes_rows():
    rows = {row["bench"]: row for row in record.rows_of(STEP)}
    assert set(rows) == {"step", "jax", "compile", "record"}, rows
    assert rows["step"]["peers"] == {"eager contiguous": 455.0, "eager channels_last": 378.0}
    assert rows["step"]["ratio"] == 2.06 and rows["jax"]["ratio"] == 1.09 and rows["step"]["rounds"] == 5
    assert [row["bench"] for row in record.rows_of({**STEP, "cpu_kernels": False})][0] == "xla"


def test_a_run_of_the_gpu_kit_becomes_rows():
    speed = {"step_ms": 50.0, "host_ms": 3.0, "captured_host_ms": 0.4, "times_as_fast": {"eager": 1.5, "jax": 1.02},
             "bytes": {"sluice": 20e9, "eager": 25e9}}
    run = {"dry": False, "steps": {"machine": {}, "bench-resnet50-f32": {"result": STEP}}, "speed": {"resnet50-f32": speed}}
    eager, jax, host, memory = record.rows_of(run)
    assert (eager["bench"], eager["peers"], eager["ratio"]) == ("gpu_step", {"PyTorch eager": 75.0}, 1.5), eager
    assert (jax["peers"], jax["ratio"], jax["rounds"]) == ({"JAX's program": 51.0}, 1.02, 5)
    assert (host["sluice"], host["peers"]) == (0.4, {"recorded": 3.0})
    assert (memory["sluice"], memory["peers"], memory["unit"]) == (20.0, {"PyTorch eager": 25.0}, "GB")
    for row in (eager, jax, host, memory):
        results.check("test", {**row, "date": "2026-01-01", "commit": "aaaaaaa"})
    try:
        record.rows_of({**run, "dry": True})
    except SystemExit as refused:
        assert "dry run" in str(refused)
    else:
        raise AssertionError("a dry run's figures were taken")


def test_other_benches_become_rows():
    case = {"collective_ms": 50.0, "gloo_alone_ms": 100.0, "two_threads_copying_ms": 25.0, "ratio": 0.5, "rounds": 10}
    assert [row["ratio"] for row in record.rows_of(
        {"tensors": 161, "local": case, "processes": {"shared_memory": case, "sockets": case}})] == [2, 2, 2]
    (row,) = record.rows_of({"gelu": {"2048 x 1024": {"device_ms": 2.0, "eager_ms": 3.0, "eager_by_device": 1.5}}})
    assert (row["what"], row["ratio"]) == ("gelu, 2048 x 1024", 1.5)
    (row,) = record.rows_of({"peers_mode": "tar", "rounds": 3, "times_as_fast": {"litdata": 4.5}, "versions": {"litdata": "0.2"},
                             "samples_per_cpu_second": {"sluice": 900, "litdata": 200}})
    assert (row["bench"], row["peers"], row["ratio"]) == ("peers", {"litdata": 200}, 4.5)
    slower, quicker = record.rows_of({"text": "King James Bible", "rounds": 5, "versions": {"tokenizers": "0.23", "tiktoken": "0.14"},
                                      "families": {"GPT-2": {"megabytes_per_cpu_second": {"sluice": 60, "tokenizers": 3, "tiktoken": 12},
                                                             "first_pass": 40, "times_as_fast": {"tokenizers": 20, "tiktoken": 5}}}})
    assert (slower["what"], slower["peers"], slower["ratio"]) == ("GPT-2, King James Bible", {"tokenizers": 3}, 20)
    assert quicker["peers"] == {"tiktoken": 12} and "40 MB/s" in quicker["note"]
    (row,) = record.rows_of({"distribution": {"shapes": 9, "least": 0.71, "5%": 0.8, "25%": 1.1, "median": 1.5,
                                              "slower_than_1.5_eager": 0},
                             "convolutions": [{"shape": "8x3x64", "device_ms": 2.0, "eager_ms": 1.42}]})
    assert (row["bench"], row["what"]) == ("random_convolutions", "9 shapes") and "0.71 (least)" in row["ratio"]
    (by_processor,) = record.rows_of({"distribution": {"shapes": 9, "least": 0.71, "5%": 0.8, "25%": 1.1, "median": 1.5,
                                                       "slower_than_1.5_eager": 0}, "processor_time": True,
                                      "convolutions": [{"shape": "8x3x64", "device_ms": 2.0, "eager_ms": 1.42}]})
    assert by_processor == {**row, "bench": "convolutions_processor"}
    results.check("test", {**row, "date": "2026-01-01", "commit": "aaaaaaa"})
    decoded = record.rows_of([{"set": "PNG", "per_second": {"batches": 300, "webdataset": 20, "decode": 90, "general": 30},
                               "ratios": {"batches ÷ webdataset": 15, "decode ÷ general": 3}}])
    assert [(row["bench"], row["ratio"]) for row in decoded] == [("batches", 15), ("decode", 3)]


def test_two_builds_become_a_row_for_each_model():
    sides = {"model": "mlp", "batch_size": 128, "flags": "", "step_ms": {"old": 6.0, "new": 5.0, "new/old": 0.8},
             "compile_s": {"old": 0.5, "new": 0.25, "new/old": 0.5}}
    (row,) = record.rows_of({"two_builds": 2, "old": "v1", "turns": 3, "rows": [sides, {"model": "lstm", "errors": {}}]})
    assert (row["what"], row["sluice"], row["peers"], row["ratio"]) == ("mlp, batch 128", 5.0, {"v1": 6.0}, 1.25), row
    assert row["note"] == "compiling 0.25 s, v1 0.5 s"
    results.check("test", {**row, "date": "2026-01-01", "commit": "aaaaaaa"})


def test_layers_become_rows_of_the_slowest():
    found = {"model": "resnet50", "image_size": 224, "batch_size": 16, "agree": True, "slowest_in_step": ["conv1", "layer1.0.conv2"],
             "convolutions": {"conv1": {"in_step_ms": 20.04, "alone_ms": 19}, "layer1.0.conv2": {"in_step_ms": 9, "alone_ms": 8},
                              "layer4.0.conv1": {"in_step_ms": 1, "alone_ms": 1}}}
    rows = record.rows_of(found)
    assert [row["what"] for row in rows] == ["resnet50 at 224×224, batch 16: conv1", "resnet50 at 224×224, batch 16: layer1.0.conv2"]
    assert rows[0]["sluice"] == 20.0 and rows[0]["peers"] == {"alone": 19.0} and "the same" in rows[0]["note"]


def test_a_row_takes_the_place_of_the_same():
    machine = {"rows": []}
    record.add(machine, record.rows_of(STEP), "2026-01-01", "aaaaaaa")
    record.add(machine, record.rows_of({**STEP, "xla": {**STEP["xla"], "step_ms": 100}}), "2026-01-02", "bbbbbbb")
    assert len(machine["rows"]) == 4 and machine["rows"][0]["sluice"] == 100
    assert {row["commit"] for row in machine["rows"]} == {"bbbbbbb"}
    for row in machine["rows"]:
        results.check("test", row)


def test_quotients_of_medians_are_marked():
    row = {"unit": "ms", "sluice": 50, "peers": {"a": 200, "b": 100}}
    assert results.ratio_of(row) == (2, True)
    assert results.ratio_of({**row, "unit": "samples/s"}) == (0.25, True)
    assert performance_page.ratio_text(row) == "≈ 2.00" and performance_page.ratio_text({**row, "ratio": 2.1}) == "2.10"


def test_the_page_has_the_newest_case_and_the_ratios_of_all():
    def row(what, ratio, date):
        return {"bench": "operations", "what": what, "unit": "ms", "sluice": 2.0, "peers": {"eager": 3.0}, "ratio": ratio,
                "date": date, "commit": "aaaaaaa"}

    benches = {"operations": {"title": "Operations"}, "step": {"title": "Steps", "all_rows": True}}
    rows = [row("old", 4.0, "2026-01-01"), row("new", 1.5, "2026-01-02"), row("slow", 0.8, "2026-01-01")]
    cells = performance_page.summary(rows, benches).splitlines()[2:]
    assert cells == ["| **Operations** | new | 2.0 ms | eager: 3.0 | 1.50; 3 cases: 1.50 (0.80 to 4.00) | 2026-01-02 |"], cells
    steps = performance_page.summary([{**one, "bench": "step"} for one in rows], benches).splitlines()[2:]
    assert len(steps) == 3 and steps[0].startswith("| **Steps** | old ") and "4.00 | 2026-01-01" in steps[0], steps
    assert performance_page.ratios_of({"ratio": "1.27 forward, 1.46 grad_w"}) == [1.27, 1.46]
    assert performance_page.ratios_text({**row("a", 0, ""), "ratio": None, "peers": {}}, [row("b", "", "")] * 2) == "2 cases"
    assert performance_page.table(rows, benches).count("\n") == 5, "a heading, a group's heading and all three rows"


if __name__ == "__main__":
    tests = [test for name, test in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests passed")
