"""
Sandboxes as pods: how one is written, read, made, removed and watched.

What a pod looks like and what its status means are pure functions; one thin
module talks to the API server. How many pods there should be is the
controller's business.
"""
