"""
Every metric with its labels and their values, and how logs are written.

Others say what happened; names and formats are decided only here.
"""
