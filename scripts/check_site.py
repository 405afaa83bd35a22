"""check_site.py FOLDER: every link of the built site leads to a file of it, and to a place in it.

Links to elsewhere are not followed. Doxygen's own pages are looked at as targets only: it makes their links itself.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.places |= {names[key] for key in ("id", "name") if names.get(key)}
        self.links += [names[key] for key in ("href", "src") if names.get(key)]


def faults(root):
    pages = {path: Page(path) for path in root.rglob("*.html")}
    for path, page in pages.items():
        if path.is_relative_to(root / "api") or path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            where = f"{path.relative_to(root)}: {link}"
            if not target.is_relative_to(root) or not target.is_file():
                yield f"{where}: there is no such file"
            elif target in pages and unquote(parts.fragment) not in pages[target].places and parts.fragment != "":
                yield f"{where}: there is no such place on that page"
    print(f"{len(pages)} pages")


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    print("\n".join(found[:50]))
    sys.exit(f"{len(found)} links lead nowhere" if found else 0)
