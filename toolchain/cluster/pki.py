"""Keys, certificates and kubeconfigs: one authority per cluster, a certificate per identity."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIFETIME = dt.timedelta(days=365)
# Clocks of a machine that has just woken up may be a little behind.
SLACK = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Pair:
    """A private key and its certificate, in PEM."""

    key: bytes
    certificate: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `<name>.key` (readable by its owner alone) and `<name>.crt`."""
        write_private(folder / f"{name}.key", self.key)
        (folder / f"{name}.crt").write_bytes(self.certificate)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Give a private key in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a key: elliptic, as it is made in a millisecond."""
    return ec.generate_private_key(ec.SECP256R1())


class Authority:
    """A certificate authority, made by `up` and alive as long as its cluster."""

    def __init__(self, name: str) -> None:
        self._key = new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            _builder(subject, subject, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.pair = Pair(key_pem(self._key), self._certificate.public_bytes(_PEM))

    def issue(self, user: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Issue a certificate that names a user and groups, and serves for the hosts given."""
        key = new_key()
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(subject, self._certificate.subject, key)
        alternatives = [_alternative(host) for host in hosts]
        if alternatives:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return Pair(key_pem(key), certificate.public_bytes(_PEM))


_PEM = serialization.Encoding.PEM


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + LIFETIME)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def service_account_keys() -> tuple[bytes, bytes]:
    """Make the key that signs service-account tokens, and its public half."""
    key = new_key()
    public = key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key_pem(key), public


def kubeconfig(cluster: str, server: str, authority: bytes, user: Pair) -> bytes:
    """Form a kubeconfig that holds all it needs."""

    def encoded(content: bytes) -> str:
        return base64.b64encode(content).decode()

    name = f"rbln-stack-{cluster}"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": server, "certificate-authority-data": encoded(authority)},
                }
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": encoded(user.certificate),
                        "client-key-data": encoded(user.key),
                    },
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        sort_keys=False,
    ).encode()
