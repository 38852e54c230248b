"""Why a tree predicts what it does: importances, paths, Shapley values and counterfactuals.

In: a tree over encoded rows, a summary of its training rows, and how columns become features. Out:
tables and numbers in the units of the features. Nothing is fitted here but clones of the models
that users ask `stability` about, and no rows are kept.
"""
