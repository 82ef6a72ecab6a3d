"""
Keeps the pools full and the endings honest: observe, plan, apply.

Who leads, what was seen, what follows from it, and carrying that out, each in
its own file. What should happen is decided in ``core``; where sandboxes come
from is a ``SandboxSource``; what must survive is in the ``store``.
"""
