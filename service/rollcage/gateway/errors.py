"""
What the gateway itself refuses, before any use case is asked.
"""

from rollcage.core.errors import RollcageError


class BadRequest(RollcageError):
    """The request cannot be read as what it should be; nothing was done."""

    code = "bad_request"


class NotAuthorized(RollcageError):
    """No token, or one that nobody has; nothing was looked at."""

    code = "not_authorized"


class NoSuchRoute(RollcageError):
    """Nothing is served under this path."""

    code = "no_such_route"


class WrongMethod(RollcageError):
    """The path is served, but not with this method."""

    code = "wrong_method"


class BodyTooLarge(RollcageError):
    """The body is larger than is taken here; it was not read."""

    code = "body_too_large"

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"a request has at most {limit} bytes here; nothing was run")
        self.limit = limit


class BodyTooSlow(RollcageError):
    """The body did not arrive in time; it was given up."""

    code = "body_too_slow"


class BodyEncoded(RollcageError):
    """The body is compressed, and what it would unpack to is not known beforehand."""

    code = "body_encoded"


class EnvironmentUnknown(RollcageError):
    """No environment of this name is known to this gateway."""

    code = "environment_unknown"

    def __init__(self, *, environment: str) -> None:
        # The name itself only if it can be one: it comes from outside.
        super().__init__(f"environment {environment} is not known" if environment else "no environment is named")
        self.environment = environment


class Overloaded(RollcageError):
    """As many calls are being served as this gateway serves at once."""

    code = "overloaded"
    retry_after = 1.0


class TenantBusy(RollcageError):
    """As many calls of this tenant are being served as its quota allows at once."""

    code = "tenant_busy"
    retry_after = 1.0

    def __init__(self, *, quota: int) -> None:
        super().__init__(f"{quota} calls are in flight, which is the tenant's quota")
        self.quota = quota
