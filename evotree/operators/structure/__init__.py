"""How trees are held and changed: arrays in prefix order, and one splice."""
