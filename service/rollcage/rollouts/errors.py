"""
What a use case refuses with, besides the errors of ``core``.

Each says what is true of the rollout now; what a trainer is told about it is
for the dialects.
"""

from rollcage.core.errors import RollcageError
from rollcage.core.verdict_words import Cause


class Masked(RollcageError):
    """The infrastructure failed this rollout; nothing of it may be graded or trained on."""

    code = "masked"

    def __init__(self, *, cause: Cause) -> None:
        super().__init__(f"the infrastructure failed: {cause}")
        self.cause = cause


class NoSandbox(RollcageError):
    """No sandbox could be reached and nothing was delivered to any; the call may be made again."""

    code = "no_sandbox"

    def __init__(self, *, environment: str, retry_after: float) -> None:
        super().__init__(f"no sandbox of {environment} could be reached")
        self.environment = environment
        self.retry_after = retry_after


class StillRunning(RollcageError):
    """The call runs on; the same call made again gets its result."""

    code = "still_running"

    def __init__(self, *, call: str, retry_after: float) -> None:
        super().__init__(f"call {call} still runs")
        self.call = call
        self.retry_after = retry_after


class TooLarge(RollcageError):
    """The arguments are larger than a call may be; nothing was begun."""

    code = "arguments_too_large"

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"{size} bytes of arguments, {limit} may be")
        self.size = size
        self.limit = limit


class RunUnknown(RollcageError):
    """No rollout of this run was heard of, or not for a long time."""

    code = "run_unknown"

    def __init__(self, *, run: str) -> None:
        super().__init__(f"nothing is known of run {run}")
        self.run = run


class FileRefused(RollcageError):
    """The sandbox's file system does not allow it; that is the sandbox's own state."""

    code = "file_error"


class SandboxUnreachable(RollcageError):
    """The rollout's sandbox did not serve the transfer; whether it lives is for a call to find out."""

    code = "sandbox_unreachable"
    retry_after = 1.0
