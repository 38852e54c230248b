"""What every tree of a search has to keep, and how one that does not is repaired."""
