"""
The grader protocol and the built-in graders.

A grader gives a finite score or a refusal with a reason; never a zero for
something that broke.
"""
