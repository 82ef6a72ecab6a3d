"""
Benchmarks: one module each, run by ``scripts/bench NAME``.

A benchmark compares the system with a floor in the same run and reports
figures; ``frame`` has what they share. Nothing here is a test with a limit.
"""
