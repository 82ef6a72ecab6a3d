"""
Decide how the end of a local sandbox is told.
"""

import signal
from typing import Final

from rollcage.core.endings import EndCause, Ending

_BY_SIGNAL: Final = 128
_KILLED: Final = _BY_SIGNAL + signal.SIGKILL


def exited(code: int, *, answered: bool, oom_kills: int, log: str) -> Ending:
    """
    Tell of a sandbox that nobody here ended.

    *answered*: its toolserver was reached before. The kernel's own count
    decides whether it was memory: from inside, anyone can send SIGKILL.
    """
    details = {"oom_kills": str(oom_kills)} if oom_kills else {}
    if code > _BY_SIGNAL:
        details["signal"] = _name(code - _BY_SIGNAL)
    if not answered:
        return Ending(EndCause.START_FAILED, code, log, details)
    if code == _KILLED and oom_kills:
        return Ending(EndCause.OUT_OF_MEMORY, code, log, details)
    return Ending(EndCause.EXITED, code, log, details)


def not_started(message: str) -> Ending:
    """Tell of a sandbox whose cage could not be built."""
    return Ending(EndCause.START_FAILED, None, message)


def outlived(seconds: float) -> Ending:
    """Tell of a sandbox that was ended because its time was over."""
    return Ending(EndCause.DEADLINE, None, f"its lifetime of {seconds:g} s was over")


def deleted() -> Ending:
    """Tell of a sandbox that was removed while it ran."""
    return Ending(EndCause.DELETED)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
