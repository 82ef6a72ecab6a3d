"""
Tell when a server can no longer be trusted by the certificate that it shows.
"""

import ssl
from typing import Any


def expires(tls: ssl.SSLObject | None) -> float:
    """
    Return when the certificate shown over *tls* expires, or the authority that signed it if that is sooner.

    In seconds since 1970; 0 where there is no TLS, or nobody looks at certificates.
    """
    shown: dict[str, Any] | None = tls.getpeercert() if tls else None
    if not tls or not shown:
        return 0.0
    # One that was renewed stands beside its old self, under the same name: the later one counts.
    signers = [_end(one) for one in tls.context.get_ca_certs() if one["subject"] == shown["issuer"]]
    return min(_end(shown), max(signers, default=float("inf")))


def _end(certificate: dict[str, Any]) -> float:
    return float(ssl.cert_time_to_seconds(certificate["notAfter"]))
