"""
The built-in graders, and how a tree of them is evaluated.

Each file has one measure or one thing that is put around others. What the
model got wrong costs score; what the item or a judge lacks is a refusal.
"""

from rollcage.grading.builtins.evaluating import evaluate

__all__ = ["evaluate"]
