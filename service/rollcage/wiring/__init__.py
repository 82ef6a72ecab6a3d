"""
The one place that knows which adapter is real.

Everything else receives its collaborators as arguments. Here they are put
together: the controller on a cluster, the gateway anywhere, and both in one
process on a laptop. ``python -m rollcage.wiring controller|gateway`` runs one
part of a deployment.
"""
