"""
The grader protocol and the built-in graders.

A grader gives a finite score or a refusal with a reason; never a zero for
something that broke. Teams import ``Context``, ``Score`` and ``Refused`` from
here. Their code, and all hostile data, is looked at only in worker processes
(``worker``); ``desk`` is what the gateway calls.
"""

from rollcage.grading.artifacts import Artifacts
from rollcage.grading.protocol import Answer, Context, Ran, Refused, Sandbox, Score, Step

__all__ = ["Answer", "Artifacts", "Context", "Ran", "Refused", "Sandbox", "Score", "Step"]
