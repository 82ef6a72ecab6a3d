"""
The page that shows pools, rollouts and trajectories in a browser.

Static files, in ``static``, and what serves them. They ask the native API for
everything they show; nothing here changes a rollout.
"""
