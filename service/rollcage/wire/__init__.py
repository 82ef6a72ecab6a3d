"""
What gateway and toolserver say to each other: tokens and messages.

Only the shapes and the signatures live here. Sending them, retrying and
deciding what an answer means belong to the callers. The contract in prose is
``docs/toolserver.md``; ``tests/vectors/tokens.json`` holds both sides to it.
"""
