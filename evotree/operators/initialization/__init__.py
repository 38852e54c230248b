"""First trees: random, grown greedily, optimized, or handed in."""
