"""Constraints on trees: what breaks them, how trees are repaired, and the proof that they hold."""
