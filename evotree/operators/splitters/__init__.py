"""Searches for the hyperplane of one node."""
