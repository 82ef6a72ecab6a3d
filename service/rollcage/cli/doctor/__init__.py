"""
``rollcage doctor``: the usual mistakes of an installation, and what to do about each.

``laptop``, ``service`` and ``cluster`` look; each decides what a fact means in
plain functions, and ``command`` shows it.
"""
