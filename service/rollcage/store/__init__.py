"""
What must survive a process: claims, routes, queues, records, verdicts, in Redis.

The one place that knows key names and Lua scripts. It keeps and hands out;
what a change means is decided in ``core`` and carried out by the callers.
"""
