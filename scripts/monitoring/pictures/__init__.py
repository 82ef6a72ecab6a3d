"""
Pictures of the dashboards, for whoever changes them and has no Grafana at hand.

A service on this machine is put to work, a real Prometheus scrapes it, and each
panel is drawn as its JSON says, from the answers to its own questions. What a
panel may say and is not understood here is an error: a picture leaves nothing
out. It is not Grafana's picture: sizes, letters and marks are our own.
"""
