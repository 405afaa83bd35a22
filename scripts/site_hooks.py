"""Hooks of mkdocs.yml: a page may link to any file of the repository, as it does on the web page of a repository.

README, CONTRIBUTING and the like become pages, and so does every file and folder that a page links to: source/PATH. The
public headers get a page of their own, with links into what Doxygen made of them (scripts/site_api.py). The header of
each page has the version of the sources.
"""

import json
import posixpath
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "build/site-api"
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md",
              "SECURITY.md": "SECURITY.md"}
FENCED = re.compile(r"(^(```|~~~).*?^\2[`~]*$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".py": "python", ".sh": "bash", ".toml": "toml", ".json": "json", ".txt": "text"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"


def links_outside_code(text, replaced):
    """The text with each link's target given to `replaced`; code is left alone, and links whose text is code are not."""
    parts, last = [], 0
    for code in FENCED.finditer(text):
        parts += [(text[last:code.start()], True), (code[0], False)]
        last = code.end()
    parts.append((text[last:], True))
    return "".join(LINK.sub(replaced, part) if prose else part for part, prose in parts)


def uri_of(path):
    """The page of a file or folder, by its path from the root; None where there is no such thing."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    if path.startswith("../") or not (ROOT / path).exists():
        return None
    if path.startswith("docs/") and not (ROOT / path).is_dir():
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"source/{path}/README.md" if (ROOT / path / "README.md").exists() else f"source/{path}/index.md"
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def path_of(uri):
    """The file of a page, from the root: the other way round."""
    by_uri = {page: path for path, page in ROOT_PAGES.items()}
    if uri in by_uri:
        return by_uri[uri]
    return uri.removeprefix("source/") if uri.startswith("source/") else f"docs/{uri}"


def target_of(path, link):
    """What a link of the file means, from the root. In a folder's page links are as in a README of the folder."""
    folder = path if (ROOT / path).is_dir() else posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, link))


def rewritten(path, text):
    """A page's text with links between files turned into links between pages."""
    here = posixpath.dirname(uri_of(path))

    def one(found):
        link, anchor = found[1], found[2] or ""
        uri = uri_of(target_of(path, link)) if link and "://" not in link else None
        return f"]({posixpath.relpath(uri, here or '.')}{anchor})" if uri else found[0]

    return links_outside_code(text, one)


def linked_from(path, text):
    found = []
    links_outside_code(text, lambda link: found.append(link[1]) or link[0])
    targets = [target_of(path, link) for link in found if link and "://" not in link]
    return [target for target in targets if (uri_of(target) or "").startswith("source/")]


def folder_page(path):
    """A folder's README, if it has one, and its files."""
    entries = sorted(entry for entry in (ROOT / path).iterdir() if not entry.name.startswith((".", "__")))
    names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries]
    readme = ROOT / path / "README.md"
    head = readme.read_text() if readme.exists() else f"# {path}/\n"
    return head + "\n## Files\n\n" + "\n".join(f"- [{name}]({name.rstrip('/')})" for name in names) + "\n"


def notebook_page(text):
    """The cells of a notebook: its text, and its code in blocks."""
    parts = []
    for cell in json.loads(text)["cells"]:
        body = "".join(cell["source"])
        language = "bash" if body.startswith("%%bash\n") else "python"
        body = body.removeprefix("%%bash\n")
        parts.append(body if cell["cell_type"] == "markdown" else f"```{language}\n{body}\n```")
    return "\n\n".join(parts) + "\n"


def source_page(path):
    """The page of a file or folder: text with links as in the repository, or code."""
    file = ROOT / path
    if file.is_dir():
        return folder_page(path)
    if path.endswith(".md"):
        return file.read_text()
    if path.endswith(".ipynb"):
        return notebook_page(file.read_text())
    return f"# {path}\n\n~~~~~~{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(errors='replace')}~~~~~~\n"


def source_pages(pages):
    """{path: text} of all that the pages link to, and of all that these link to."""
    texts, todo = {}, [target for path, text in pages.items() for target in linked_from(path, text)]
    while todo:
        path = todo.pop().removesuffix("/README.md")
        if path not in texts and path not in ROOT_PAGES:
            texts[path] = source_page(path)
            if (ROOT / path).is_dir() or path.endswith((".md", ".ipynb")):
                todo += linked_from(path, texts[path])
    return texts


def api_page():
    """The public headers, each with what its first lines say, and its page by Doxygen."""
    lines = ["# C++ API", "", "What an installed Sluice lets a program include; `#include <sluice/sluice.h>` is all of it,",
             "`#include <sluice/data/dataset.h>` the shard reader alone.", ""]
    tags = ElementTree.parse(API / "tags.xml").getroot() if (API / "tags.xml").exists() else None
    if tags is None:
        return "\n".join(lines + ["Doxygen has not run: `make site` makes the pages of the headers."])
    lines += ["[Classes](api/annotated.html), [functions](api/namespacemembers_func.html) and "
              "[namespaces](api/namespaces.html), or by header:", "", "| header | |", "| --- | --- |"]
    for compound in sorted(tags.iter("compound"), key=lambda one: one.findtext("path", "") + one.findtext("name", "")):
        if compound.get("kind") != "file":
            continue
        path = compound.findtext("path").rstrip("/").removeprefix(str(ROOT) + "/") + "/" + compound.findtext("name")
        page = compound.findtext("filename").removesuffix(".html") + ".html"
        lines.append(f"| [{path}](api/{page}) | {first_sentence(ROOT / path)} |")
    return "\n".join(lines) + "\n"


def first_sentence(header):
    """Of the header's first comment."""
    comment = re.match(r"(?://.*\n)*", header.read_text())[0]
    paragraph = re.split(r"^//\s*$", comment, maxsplit=1, flags=re.MULTILINE)[0]
    text = " ".join(line.removeprefix("//").strip() for line in paragraph.splitlines())
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0].rstrip(":").replace("|", "\\|").replace("<", "&lt;")


def version():
    return re.search(r"^project\(sluice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def on_config(config):
    config.site_name = f"Sluice {version()}"
    return config


def on_files(files, config):
    from mkdocs.structure.files import File  # here, because tests import the rest without it

    pages = {f"docs/{file.src_uri}": Path(file.abs_src_path).read_text() for file in files.documentation_pages()}
    for path, uri in ROOT_PAGES.items():
        pages[path] = (ROOT / path).read_text()
        files.append(File.generated(config, uri, content=rewritten(path, pages[path])))
    for path, text in source_pages(pages).items():
        files.append(File.generated(config, uri_of(path), content=HIDDEN + rewritten(path, text)))
    for file in sorted((API / "html").rglob("*")):
        if file.is_file():
            uri = "api/" + str(file.relative_to(API / "html"))
            files.append(File.generated(config, uri, abs_src_path=str(file)))
    files.append(File.generated(config, "api.md", content=api_page()))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.file.generated_by:  # rewritten above
        return markdown
    return rewritten(path_of(page.file.src_uri), markdown)
