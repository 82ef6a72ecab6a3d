"""
The one place that knows which adapter is real.

Everything else receives its collaborators as arguments. Nothing is wired yet.
"""
