"""
The SDK for programs that use a Rollcage service.

Small on purpose: it needs none of the service's dependencies.
"""
