"""
A folder per trainer's language.

Each reads its trainer's requests, calls the use cases and writes its
trainer's answers. Nothing is decided here about rollouts.
"""
