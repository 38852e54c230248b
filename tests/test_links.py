"""The links of the README, the change log and the documentation's pages lead somewhere."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
BUILT = ("auto_examples/", "generated/")  # what Sphinx makes of examples and docstrings

CODE = re.compile(r"^(```+|~~~+).*?^\1|(`+)[^`].*?\2", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)[^)]*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?([^\s>]+)", re.MULTILINE)
HTML = re.compile(r"\b(?:src|href)=[\"']([^\"']+)")
ROLE = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`")
BARE = re.compile(r"<(https?:[^>]*)>")
HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
LABEL = re.compile(r"^\(([^)]+)\)=$", re.MULTILINE)
WEB = re.compile(r"https?://(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:/[^\s\"<>]*)?(?:[?#][^\s\"<>]*)?")


def prose(page):
    """Return the text of a page without its code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


@cache
def links(page):
    """Return where the links of a page lead: in the project, and elsewhere."""
    text = prose(page)
    found = [one for kind in (INLINE, REFERENCE, HTML, BARE) for one in kind.findall(text)]
    web = [one for one in found if re.match(r"[a-z]+:", one)]
    return [one for one in found if one not in web], web


@cache
def anchors(page):
    """Return the anchors of a page: its labels, and its headings as GitHub and MyST name them."""
    text = FENCE.sub("", page.read_text("utf-8"))
    seen = Counter()
    found = set(LABEL.findall(text))
    for heading in HEADING.findall(text):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def lost(page):
    """Return the links of a page into the project that lead nowhere."""
    missing = []
    for link in links(page)[0]:
        path, _, anchor = unquote(link).partition("#")
        target = page.parent / path if path else page
        is_page = target.suffix == ".md" and target.exists()
        named = not anchor or (is_page and anchor in anchors(target.resolve()))
        if not (target.exists() and named):
            missing.append(link)
    for name in ROLE.findall(page.read_text(encoding="utf-8")):
        pages = [(page.parent / f"{name}{ending}") for ending in (".md", ".rst")]
        if not name.startswith(BUILT) and not any(one.exists() for one in pages):
            missing.append(name)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert lost(page) == []
    # Those into the web are addresses, which no test follows.
    assert [link for link in links(page)[1] if not WEB.fullmatch(link)] == []
