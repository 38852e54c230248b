"""Experiments: problems, data sets, protocols, statistics and the studies of the papers."""
