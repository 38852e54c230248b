"""The Python of the README and of the documentation's pages runs, and prints what they show.

A block of text right below one of Python is what that prints; an ellipsis stands for any part of
it. `python -m tests.test_readme docs/guide/people.md` writes the blocks of a page again.
"""

import configparser
import doctest
import inspect
import io
import pydoc
import re
import shlex
import sys
import textwrap
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import pytest

from evotree._version import DISTRIBUTION, __version__
from evotree.cli.main import main

ROOT = Path(__file__).parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
GUIDE = sorted(
    page
    for page in [*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")]
    if "```python" in page.read_text(encoding="utf-8")
)
FIRST = [README, DOCS / "getting_started.md"]
AGENTS = DOCS / "agents.md"  # tests/test_agents_page.py runs it
WRITTEN = [
    page
    for page in [README, ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    if page.stem != "words"  # it lists the words of others
    and not {"_build", "auto_examples", "generated"} & {*page.parts}
]
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
IS_SHOWN = doctest.OutputChecker().check_output
LOOSELY = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def run_blocks(page):
    """Run the Python of a page from top to bottom, as a reader does.

    Returns the names that it leaves, and pairs of a block of text and what the Python above prints.
    """
    names, printed, pairs = {}, "", []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block[1] == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(block[2], names)
            printed = out.getvalue()
        else:
            pairs.append((block, printed))
    plt.close("all")
    assert names
    return names, pairs


def check_blocks(page):
    """Assert that a page prints what it shows, and return the names that it leaves."""
    names, pairs = run_blocks(page)
    for block, printed in pairs:
        shown = block[2]
        assert IS_SHOWN(shown.strip(), printed.strip(), LOOSELY), printed
    return names


def renew(page):
    """Write what the Python of a page prints into its blocks of text, long lines folded."""
    text = page.read_text(encoding="utf-8")
    for block, printed in reversed(run_blocks(page)[1]):
        if not IS_SHOWN(block[2].strip(), printed.strip(), LOOSELY):
            lines = [
                textwrap.fill(
                    line, 100, subsequent_indent="    ", drop_whitespace=False
                )
                for line in printed.rstrip().splitlines()
            ]
            shown = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
            text = text[: block.start(2)] + shown + "\n" + text[block.end(2) :]
    page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "page", [page for page in FIRST if page.exists()], ids=lambda page: page.stem
)
def test_the_first_pages_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_blocks(page)["model"].tree_.n_leaves == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in GUIDE if page not in [*FIRST, AGENTS]],
    ids=lambda page: page.stem,
)
def test_the_guide_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    if page.stem == "dask":
        pytest.importorskip("dask.dataframe")
    monkeypatch.chdir(tmp_path)
    check_blocks(page)


@pytest.mark.slow
def test_the_commands_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "guide" / "command_line.md"
    run_blocks(page)  # writes the table
    block = page.read_text(encoding="utf-8").split("```console\n")[1].split("```")[0]
    commands = re.findall(r"^\$ evotree (.*)$", block, re.MULTILINE)
    assert [main(shlex.split(command)) for command in commands] == [0] * 5


# Phrases that pages and public docstrings do without, and the plain words in their place.
UNCLEAR = {
    r"as (it|they) comes?\b": "with its defaults",
    r"\bless (it|them)\b": "minus",
    r"\b(is|are|was|were|be) told(?! apart| from| in)\b": "gets, is given",
    r"\b(chromosome|genome|gene)s?\b": "individual",
    r"\b(decision|test|internal test) nodes?\b": "split",
    r"\b(hyper-plane|sub-tree|data-set|over-fit)": "one word, or two",
    r"\bsplitting (rule|criterion)s?\b": "split, criterion",
    r"\b(utili[sz]e|leverage|seamless|state-of-the-art|cutting-edge)": "a plain word",
}
CODE = re.compile(r"```.*?```|``.*?``|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)
# A sentence whose subject is a clause: the reader waits for the noun until its end.
CLAUSE = re.compile(
    r"(?<![\w,;:-] )(?<![(\[\"|])\bWhat (?!if\b)[a-z](?:[^.?!|\n]|\n(?!\n))*\.(?=\s|$)"
)


def prose_of(page):
    """Return the text of a page or an example without code, tables of words and headings."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        comments = re.findall(r"^(?:# |#$|$)(.*)", text, re.MULTILINE)
        text = "\n".join([text.split('"""')[1], *comments])
    text = CODE.sub("CODE", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)  # targets of links
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


def public_docstrings():
    """Yield the names that the API reference lists, with their docstrings and those of methods."""
    module = "evotree"
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z_.]+", line):
            found = pydoc.locate(f"{module}.{line.strip()}")
            yield line.strip(), inspect.getdoc(found) or ""
            if inspect.isclass(found):
                for name, member in vars(found).items():
                    if not name.startswith("_"):
                        yield f"{line.strip()}.{name}", inspect.getdoc(member) or ""


def unclear(text):
    """Return the unclear phrases of a text, with what to write instead."""
    joined = " ".join(text.split())
    return [
        f"{match[0]!r}: {plain}"
        for phrase, plain in UNCLEAR.items()
        for match in re.finditer(phrase, joined, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", [*WRITTEN, *EXAMPLES], ids=lambda page: page.stem)
def test_pages_are_in_plain_words(page):
    text = prose_of(page)
    assert unclear(text) == []
    if page.stem != "changelog":
        assert [match[0] for match in CLAUSE.finditer(text)] == []


def test_public_docstrings_are_in_plain_words():
    documented = dict(public_docstrings())
    assert len(documented) > 200 and all(documented[name] for name in ("report",))
    wrong = {name: unclear(CODE.sub("CODE", text)) for name, text in documented.items()}
    assert {name: phrases for name, phrases in wrong.items() if phrases} == {}


def test_the_list_for_agents_names_pages_that_are_there():
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    pages = set(re.findall(r"\(_sources/([\w/]+\.md)\.txt\)", text))
    assert all((DOCS / page).is_file() for page in pages)
    assert {f"guide/{page.name}" for page in (DOCS / "guide").glob("*.md")} <= pages
    others = set(re.findall(r"\(([\w/]+)\.html\)", text))
    assert others == {"auto_examples/plot_00_tutorial", "api", "changelog"}
    assert len(AGENTS.read_text(encoding="utf-8").splitlines()) <= 150


# ---- what a release has to change ----------------------------------------------------------------


def test_one_version_and_one_name_are_everywhere():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert setup["metadata"]["name"] == DISTRIBUTION
    own = re.findall(
        r"^([\w-]+)\[", setup["options.extras_require"]["dev"], re.MULTILINE
    )
    assert set(own) == {DISTRIBUTION}
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert f"{{{__version__}}}" in (DOCS / "citing.md").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\] - ", changelog, re.MULTILINE)
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"`dist/{DISTRIBUTION}-VERSION*`" in recipe


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        pages = [Path(page).resolve() for page in sys.argv[1:]]
        with chdir(folder):
            for page in pages:
                renew(page)
