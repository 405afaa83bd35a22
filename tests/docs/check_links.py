"""check_links.py ROOT: every relative link of the documentation leads to a file, and every page says what it is."""

import re
import sys
from pathlib import Path


def main(root):
    faults = []
    pages = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        text = page.read_text()
        if not text.startswith("# "):
            faults.append(f"{page}: does not begin with a title")
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target and not (page.parent / target).exists():
                faults.append(f"{page}: the link {target} leads nowhere")
    print("\n".join(faults))
    print(f"{len(pages)} pages, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
