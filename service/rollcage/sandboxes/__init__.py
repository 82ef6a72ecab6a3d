"""
Where sandboxes come from: Kubernetes pods, local process trees, a scripted fake.

Every source passes the same contract tests. When to make or remove a sandbox
is the controller's business.
"""
