"""
The names that pods and others agree on: labels, annotations, paths, the port.

Network policies, recovery and people's own queries select on these labels;
they are there from a pod's creation and never change.
"""

from typing import Final

ENVIRONMENT_LABEL: Final = "rollcage.dev/environment"
TEMPLATE_LABEL: Final = "rollcage.dev/template"
EGRESS_LABEL: Final = "rollcage.dev/egress"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "rollcage"

# What one watches to see all sandboxes of a namespace and nothing else.
SELECTOR: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY},{ENVIRONMENT_LABEL}"

CONTAINER: Final = "sandbox"
INSTALLER: Final = "toolserver"
PORT: Final = 8750
BAKED_TOOLSERVER: Final = "/opt/rollcage/toolserver"
