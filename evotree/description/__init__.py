"""What a tree says, for whoever prints, draws or exports it, and the texts that it prints itself.

In: a tree, or a fitted estimator around one, read by its attributes alone: trees stand above this
room and print themselves by it. Out: a `NamedTree`, which every other form is written from.
"""
