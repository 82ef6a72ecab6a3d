"""
The local Kubernetes: an engine, a node image, a kind cluster, images on it.

Used by ``scripts/cluster`` and ``scripts/images``. Standard library only, so
that it runs before anything is installed. It knows nothing about Rollcage's
service; what is installed on the cluster is the chart's business.
"""
