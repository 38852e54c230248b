"""The studies, a module each; their texts lie in ``experiments/texts``."""
