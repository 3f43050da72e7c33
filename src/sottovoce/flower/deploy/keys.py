"""Keys of a federation: a test authority, the coordinator's certificate, a key pair for each site.

The authority is for rehearsals and trials: a consortium has certificates from its own.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from sottovoce.errors import MissingExtra, StorageError, check
from sottovoce.files import private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

CA = "ca.crt"
CA_KEY = "ca.key"
CERTIFICATE = "server.crt"
CERTIFICATE_KEY = "server.key"
PRIVATE, PUBLIC, SEAL = ".key", ".pub", ".seal"  # endings of a site's files
MARK = "seal="  # before a site's public sealing keys, in its .pub

LOCAL = ("localhost", "127.0.0.1")
AUTHORITY_DAYS, SERVER_DAYS = 3650, 397
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_TAKEN = {"ca", "server"}
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")


class File(NamedTuple):
    """A file to be made."""

    name: str
    content: bytes
    secret: bool


def site_names(sites: Sequence[str]) -> list[str]:
    """The names of sites: as given, or, for one whole number N, site-1 to site-N."""
    check(len(sites) >= 1, "sites must be a number or names", sites=list(sites))
    if len(sites) == 1 and sites[0].isdecimal():
        count = int(sites[0])
        check(1 <= count <= 9999, "the number of sites must be in [1, 9999]", sites=count)
        width = len(str(count))
        return [f"site-{k:0{width}}" for k in range(1, count + 1)]
    for name in sites:
        ok = _NAME.fullmatch(name) is not None and name.lower() not in _TAKEN
        check(ok, "a site's name must be letters, digits, - and _, and not ca or server", name=name)
    folded = [name.lower() for name in sites]
    repeated = sorted({name for name in folded if folded.count(name) > 1})
    check(not repeated, "names of sites must all differ", repeated=repeated)
    return list(sites)


@private()
def make_keys(
    folder: Path, sites: Sequence[str], hosts: Sequence[str] = (), *, server: bool = True
) -> list[Path]:
    """Make what a federation needs, in `folder`; what is there already is never overwritten.

    For each site a key pair; with `server` also a test authority and a certificate that is good
    for localhost and `hosts`.
    """
    check(server or len(sites) > 0, "sites must be given where no server's keys are made")
    names = site_names(sites) if sites else []
    files = [file for name in names for file in _site_files(name)]
    if server:
        files += _server_files(hosts)
    there = [file.name for file in files if (folder / file.name).exists()]
    check(not there, f"keys are never overwritten, and {folder} has some", there=there)
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in files:
            path = folder / file.name
            mode = 0o600 if file.secret else 0o644
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
                written.append(path)
                out.write(file.content)
    except BaseException as error:
        for path in written:
            with suppress(OSError):
                path.unlink()
        if isinstance(error, OSError):
            raise StorageError(f"keys could not be written to {folder}: {error}") from error
        raise
    return written


def _site_files(name: str) -> list[File]:
    """A key pair in the form that Flower reads: OpenSSH's, on the curve P-384.

    What the site seals and signs with is in a file of its own; the public part of it goes along in
    the comment of the other public key, so that a site has one file to send.
    """
    ec, serialization = _cryptography()
    from sottovoce.secure_sum.keys import Identity

    identity = Identity.generate()
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return [
        File(f"{name}{PRIVATE}", private, secret=True),
        File(f"{name}{SEAL}", base64.b64encode(identity.secret) + b"\n", secret=True),
        File(
            f"{name}{PUBLIC}",
            public + f" {name} {MARK}{identity.public.text}\n".encode(),
            secret=False,
        ),
    ]


def sealing_keys(path: Path) -> str | None:
    """A site's public sealing keys in its .pub; None in one from before there were any."""
    from sottovoce.secure_sum.keys import PublicKeys

    try:
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    found = [word.removeprefix(MARK) for word in words if word.startswith(MARK)]
    return PublicKeys.parse(found[0]).text if found else None


def _server_files(hosts: Iterable[str]) -> list[File]:
    """A test authority, and a certificate that it gave."""
    ec, _ = _cryptography()
    names = _alternative_names([*LOCAL, *hosts])
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _certificate("Sottovoce test authority", authority, AUTHORITY_DAYS)
    leaf = _certificate("Sottovoce coordinator", server, SERVER_DAYS, (root, authority), names)
    return [
        File(CA, _pem(root), secret=False),
        File(CA_KEY, _private_pem(authority), secret=True),
        File(CERTIFICATE, _pem(leaf), secret=False),
        File(CERTIFICATE_KEY, _private_pem(server), secret=True),
    ]


def _alternative_names(hosts: Iterable[str]) -> x509.SubjectAlternativeName:
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(hosts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            ok = _HOST.fullmatch(host) is not None and len(host) <= 253
            check(ok, "a host must be a DNS name or an IP address, without a port", host=host)
            names.append(x509.DNSName(host))
    return x509.SubjectAlternativeName(names)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    days: int,
    issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None,
    names: x509.SubjectAlternativeName | None = None,
) -> x509.Certificate:
    """A certificate of `key`: of an authority that signs itself, or of a server."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = key if issuer is None else issuer[1]
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
        )
        .add_extension(_usage(signs=issuer is None), True)
    )
    if issuer is None:
        builder = builder.add_extension(x509.BasicConstraints(True, 0), True)
    else:
        builder = builder.add_extension(x509.BasicConstraints(False, None), True)
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(server, False)
    if names is not None:
        builder = builder.add_extension(names, False)
    return builder.sign(signer, hashes.SHA256())


def _usage(signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    _, serialization = _cryptography()
    form = serialization.PrivateFormat.PKCS8
    secret: bytes = key.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    )
    return secret


def _cryptography() -> tuple[ModuleType, ModuleType]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise MissingExtra("making keys", "flower") from error
    return ec, serialization
