"""
A source without sandboxes, for tests of whoever uses one.

It keeps the promise of every source, on a clock that tests move, and fails the
way real ones do: when it is told to (``fate``), and otherwise never.
"""
