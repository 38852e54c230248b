"""Every kind of leaf in the script of a page."""

import numpy as np
import pytest

from evotree.report import report
from tests.kinds import every, kind_of, rows
from tests.report.page import run_page

pytestmark = pytest.mark.filterwarnings("error")


@every("lines", without=("outputs",))
def test_the_script_of_a_page_explains_leaves_as_the_library_does(name):
    kind, X = kind_of(name), rows(1, 25)
    page = report(kind.model, X).data
    (said,) = run_page([page], "model.explain(model.own, x).at(-1).total")
    terms = kind.model.explain(X).terms
    totals = terms[terms.side == "leaf"].groupby("row").total.first()
    found = np.array(said)[totals.index]
    np.testing.assert_allclose(found, totals, rtol=1e-3, atol=1e-4)
