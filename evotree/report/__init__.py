"""A fitted model as one page of HTML that needs nothing else: to look at, to ask, to send.

In: a fitted estimator of a tree or forest, or a `Subject` made of a model file, and rows where
there are some. Out: a `Report`, whose page holds all that it shows as JSON, and draws it with the
D3 library beside it.
"""

from evotree.report.page import Report, Subject, report

__all__ = ["Report", "Subject", "report"]
