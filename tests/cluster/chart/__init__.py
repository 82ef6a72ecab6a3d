"""
A release's life, from its installation to its end.

The tests of this directory share one release, and its files stand in the order of its life, which is also that of
their names: confined, installed, monitored, rotated, uninstalled. Each can be run alone.
"""
