"""Everything that makes or changes a tree."""
