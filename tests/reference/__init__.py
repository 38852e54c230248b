"""Naive twins of the compiled kernels: obvious, slow, and written from the definitions."""
