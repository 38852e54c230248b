"""The files that a release has to change agree: version, name, citation and changelog."""

import configparser
import re
from pathlib import Path

from evotree._version import DISTRIBUTION, __version__

ROOT = Path(__file__).resolve().parent.parent


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
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\] - ", changelog, re.MULTILINE)
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"`dist/{DISTRIBUTION}-VERSION*`" in recipe
