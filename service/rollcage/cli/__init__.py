"""
The ``rollcage`` command: how people see and drive the service.

It talks to the service through ``client`` and holds no logic of its own.
"""
