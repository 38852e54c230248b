"""The version of the package, for the package and for the files that it writes."""

__version__ = "0.1.0"
