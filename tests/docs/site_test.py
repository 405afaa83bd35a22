"""site_test.py ROOT: the site's settings without building it: the navigation names every page, and links find theirs."""

import json
import re
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import run_chart  # noqa: E402
import site_api  # noqa: E402
import site_comments  # noqa: E402
import site_hooks  # noqa: E402
import site_versions  # noqa: E402


def test_the_navigation_has_every_page_once():
    nav = re.search(r"^nav:\n(.*?)^\w", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE | re.DOTALL)[1]
    named = re.findall(r"(\S+\.md)$", nav, re.MULTILINE)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    wanted = pages | set(site_hooks.ROOT_PAGES.values()) | {"api.md"}
    assert sorted(named) == sorted(wanted), (
        f"mkdocs.yml: expected every page once in nav; missing {wanted - set(named)}, unknown {set(named) - wanted}")


def test_links_become_links_between_pages():
    def page(path, text):
        return site_hooks.rewritten(path, text)

    assert page("docs/where.md", "[a](../sluice/base/error.h) [b](run.md#x)") == "[a](source/sluice/base/error.h.md) [b](run.md#x)"
    assert page("README.md", "[a](docs/run.md) [b](sluice) [c](#train)") == "[a](run.md) [b](source/sluice/README.md) [c](#train)"
    assert page("docs/where.md", "[a](../README.md) [b](../tests/fuzz/README.md)") == "[a](index.md) [b](source/tests/fuzz/README.md)"
    assert page("tests/fuzz", "[a](png.cc) [b](../../docs/run.md)") == "[a](png.cc.md) [b](../../../run.md)"
    code = "```cpp\n[](run.md)\n```\n`[x](run.md)` [`y`](../sluice/base/error.h)"
    assert page("docs/where.md", code) == code.replace("../sluice/base/error.h", "source/sluice/base/error.h.md")


def test_every_link_of_the_docs_finds_a_page():
    pages = {f"docs/{page.relative_to(ROOT / 'docs')}": page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    made = site_hooks.source_pages(pages)
    assert "sluice/base/error.h" in made and len(made) > 100
    assert all(site_hooks.uri_of(path).startswith("source/") for path in made), made.keys()


def test_headers_are_public_and_commented_for_doxygen():
    headers = site_api.public_headers()
    assert "sluice/session/session.h" in headers and "sluice/base/result.h" not in headers, headers
    text = site_comments.for_doxygen("// What it is.\n#pragma once\n\n// A count.\nint a = 0;  // of all\nstring u = \"http://x\";\n")
    assert text == ("/// \\file\n///\n/// What it is.\n#pragma once\n\n/// A count.\nint a = 0;  ///< of all\n"
                    "string u = \"http://x\";\n"), text


def test_a_notebook_becomes_a_page():
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# T\n", "[a](../x.md)"]},
                          {"cell_type": "code", "source": ["%%bash\n", "ls"]}, {"cell_type": "code", "source": ["x = 1"]}]}
    page = site_hooks.notebook_page(json.dumps(notebook))
    assert page == "# T\n[a](../x.md)\n\n```bash\nls\n```\n\n```python\nx = 1\n```\n", page


def test_the_newest_version_comes_first_and_the_others_stay():
    with tempfile.TemporaryDirectory() as folder:
        site, web = Path(folder) / "site", Path(folder) / "web"
        site.mkdir()
        (site / "index.html").write_text("new")
        for name in ("0.9.0", "0.10.0", "icons"):
            (web / name).mkdir(parents=True)
        (web / "0.9.0/index.html").write_text("old")
        (web / "0.9.0/gone.html").write_text("old")
        assert site_versions.publish(site, web, "0.9.0") == ["0.10.0", "0.9.0"]
        assert [entry["version"] for entry in json.loads((web / "versions.json").read_text())] == ["0.10.0", "0.9.0"]
        assert "url=0.10.0/index.html" in (web / "index.html").read_text()
        assert [(page.name, page.read_text()) for page in (web / "0.9.0").iterdir()] == [("index.html", "new")]
        assert (web / "icons").is_dir()


def test_a_chart_shows_each_row_of_a_run_where_it_belongs():
    rows = []
    for epoch, steps in (("1", ("5", "10")), ("2", ("15", "20"))):
        for step in steps:
            rows.append({"split": "train", "epoch": epoch, "step": step, "loss": "2" if epoch == "1" else "1", "accuracy": ""})
        rows.append({"split": "test", "epoch": epoch, "step": steps[1], "loss": "1", "accuracy": "50" if epoch == "1" else "75"})
    drawn = xml.etree.ElementTree.fromstring(run_chart.chart(rows))
    lines = [line.get("points").split() for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert [len(line) for line in lines] == [4, 2, 2], lines
    assert heights[0][0] == heights[0][1] < heights[0][2] == heights[1][0], heights  # y grows downwards
    assert heights[2][0] > heights[2][1], heights
    assert lines[0][1].split(",")[0] == lines[1][0].split(",")[0] == lines[2][0].split(",")[0], lines  # the end of epoch 1
    assert "75.0 %" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert run_chart.ticks(0, 100) == [0, 20, 40, 60, 80, 100] and run_chart.ticks(0, 0.7) == [0, 0.2, 0.4, 0.6]
    assert run_chart.ticks(0, 2.4) == [0, 0.5, 1, 1.5, 2] and run_chart.ticks(0, 20) == [0, 5, 10, 15, 20]


if __name__ == "__main__":
    tests = [test for name, test in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests passed")
