"""
The small programs that put a process into its cage and then become the toolserver.

They run on their own, with ``python -I -S``, for every sandbox: so they use the
standard library alone, and little of it. What the cage looks like is decided
by whoever starts them.
"""
