"""The engine's one door, limits of time, Ctrl-C, and fronts of objectives of one's own."""
