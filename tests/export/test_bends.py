"""Exported code computes the bends of columns."""

import pytest

from tests.export.cases import assert_predicts
from tests.export.languages import LANGUAGES
from tests.test_bends import CASES


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_computes_bends(language):
    for case, answer in zip(CASES, LANGUAGES[language](CASES), strict=True):
        assert_predicts(case, answer, 1e-12, 1e-5)
