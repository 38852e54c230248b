"""The script of a page predicts as the trees do, of every kind of leaf."""

from tests.export.cases import assert_predicts, cases
from tests.report.page import page


def test_the_script_of_a_page_predicts_as_the_trees_do():
    # A page is about one output.
    some = [case for kind in cases() if kind[0] != "outputs" for case in cases()[kind]]
    for case, answer in zip(some, page(some), strict=True):
        # It rounds the vote, and exponentials and logarithms differ by the library.
        is_log = case.trees[0].models is not None and case.trees[0].models.is_log
        is_exact = len(case.trees) == 1 and not (is_log or case.columns)
        assert_predicts(case, answer, 0.0 if is_exact else 1e-12, 1e-5)
