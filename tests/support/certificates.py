"""
Certificates for tests: an authority of one's own, and a server that it vouches for.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Texts in PEM: whom to trust, and what a server shows."""

    authority: bytes
    certificate: bytes
    key: bytes


def certificates_for(
    *names: str,
    until: datetime | None = None,
    authority: str = "authority of a test",
    authority_until: datetime | None = None,
) -> Certificates:
    """Return what a server of these names and addresses needs, and those who call it; for a day unless told."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority)])
    vouching = (
        _begun(called, called, until=authority_until)
        .public_key(authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_may(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]), called, until=until)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_may(sign_certificates=False), critical=True)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    return Certificates(
        authority=vouching.public_bytes(serialization.Encoding.PEM),
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
    )


def _begun(subject: x509.Name, issuer: x509.Name, *, until: datetime | None) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(until or now + timedelta(days=1))
    )


def _may(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
