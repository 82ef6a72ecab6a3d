"""
Rollcage: isolated rollout sandboxes for training tool-using agents.

The packages below point inward, toward ``core``; each says in its own first
lines what lives there and what does not.
"""
