"""site_test.py ROOT: the site's settings without building it: the navigation names every page, and links find theirs."""

import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import site_api  # noqa: E402
import site_comments  # noqa: E402
import site_hooks  # noqa: E402


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


if __name__ == "__main__":
    tests = [test for name, test in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests passed")
