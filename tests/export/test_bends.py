"""Exported code computes the bends of columns."""

import numpy as np
import pytest

from tests.export.languages import LANGUAGES
from tests.test_bends import CASES


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_computes_bends(language):
    for case, answer in zip(CASES, LANGUAGES[language](CASES), strict=True):
        wanted = case.predict()
        if case.classes is not None:
            assert list(answer.predicted) == wanted.tolist()
        else:
            found = np.reshape(answer.predicted, wanted.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        if answer.probabilities is not None:
            np.testing.assert_allclose(
                answer.probabilities, case.predict_proba(), atol=1e-5
            )
