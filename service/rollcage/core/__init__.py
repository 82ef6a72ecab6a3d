"""
Pure decisions: verdicts, plans, budgets.

No I/O, no clock, no logging: everything that is needed comes in as an
argument, and the answer goes out as a value. Acting on it belongs to others.
"""
