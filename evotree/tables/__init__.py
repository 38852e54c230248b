"""Tables of mixed columns: how they are read, and how they become features."""
