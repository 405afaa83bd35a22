"""check_links.py ROOT: every relative link of the documentation leads to a file, and where it names a section, to one of
that page; every page says what it is."""

import re
import sys
from pathlib import Path

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def slug(heading):
    """The anchor of a heading, as repositories' web pages and MkDocs make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).strip().lower()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text))


def anchors(page):
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.MULTILINE)}


def faults_of(page):
    text = page.read_text()
    if not text.startswith("# "):
        yield f"{page}: does not begin with a title"
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", CODE.sub("", text)):
        linked = page.parent / target if target else page
        if "://" in target or (not target and not anchor):
            continue
        if not linked.exists():
            yield f"{page}: the link {target} leads nowhere"
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
            yield f"{page}: {target or page.name} has no section #{anchor} (it has {', '.join(sorted(anchors(linked)))})"


def main(root):
    pages = [*sorted(root.glob("*.md")), *(page for folder in ("bench", "docs", "examples", "packaging", "sluice", "tests") for page in sorted((root / folder).rglob("*.md")))]
    faults = [fault for page in pages for fault in faults_of(page)]
    print("\n".join(faults))
    print(f"{len(pages)} pages, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
