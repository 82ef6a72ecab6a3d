"""
The page that shows pools, rollouts and trajectories in a browser.

Static files and the data they ask for; nothing here changes a rollout.
"""
