"""
Observe, plan, apply: keeps pools full, notices deaths, ends what is over.

The planning itself is pure and lives in ``core``; the data plane never waits
for anything in here.
"""
