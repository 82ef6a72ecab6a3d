"""
Sandboxes as process trees of this machine: for laptops, for tests, for trying things.

What holds them in is found by trying (``tiers``); what they see is decided in
``layout``, what they may use in ``limits``. ``launch`` holds the programs that
build the cage. docs/local-sandboxes.md says what each tier protects against.
"""
