"""What improves a tree locally, and which individuals it improves."""
