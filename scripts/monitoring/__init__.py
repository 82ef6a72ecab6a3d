"""
The dashboards: what each shows, as plain data, and how that becomes what Grafana reads.

``scripts/dashboards`` writes them into the chart; a test compares. Metrics are
declared in the service, rules in the chart.
"""
