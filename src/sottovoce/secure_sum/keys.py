"""A party's keys: one pair that others seal to, one that it signs with. All of it `cryptography`'s.

Sealing is HPKE (RFC 9180) with ML-KEM-768 beside X25519, so that what is recorded today stays
closed to whoever can break either later; signatures are Ed25519.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from functools import cached_property

from sottovoce.errors import InvalidInput, MissingExtra, check

try:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.mlkem import (
        MLKEM768PrivateKey,
        MLKEM768PublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hpke import (
        AEAD,
        KDF,
        KEM,
        MLKEM768X25519PrivateKey,
        MLKEM768X25519PublicKey,
        Suite,
    )
except ImportError as error:
    raise MissingExtra("sealing and signing", "flower") from error

SIGNATURE = 64  # bytes
SEALED = 1088 + 32 + 16  # bytes that sealing adds: what both key exchanges send, and a tag
_KEM, _CURVE, _SIGNING = 1184, 32, 32  # bytes of the parts of public keys
_SEED = 64  # bytes of ML-KEM's private key
_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
_ANYBODY = X25519PrivateKey.from_private_bytes(bytes(_CURVE))  # to try points with; no secret
PUBLIC, SECRET = _KEM + _CURVE + _SIGNING, _SEED + _CURVE + _SIGNING


@dataclass(frozen=True)
class PublicKeys:
    """What others need: to seal to a party, and to check what it signed."""

    data: bytes

    def __post_init__(self) -> None:
        check(len(self.data) == PUBLIC, f"public keys are {PUBLIC} bytes", bytes=len(self.data))
        _ = self._sealing, self._signing  # what is no key is refused now

    @classmethod
    def parse(cls, text: str) -> PublicKeys:
        """From the form that `text` has."""
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        return cls(data)

    @property
    def text(self) -> str:
        """One line, for a file."""
        return base64.b64encode(self.data).decode()

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """What only the party can open, and only in the same context."""
        return _SUITE.encrypt(plain, self._sealing, info=context)

    def signed(self, signature: bytes, content: bytes) -> bool:
        """Whether the party signed this content."""
        try:
            self._signing.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    @cached_property
    def _sealing(self) -> MLKEM768X25519PublicKey:
        try:
            kem = MLKEM768PublicKey.from_public_bytes(self.data[:_KEM])
        except ValueError as error:
            raise InvalidInput("the first part of public keys must be ML-KEM-768's") from error
        curve = X25519PublicKey.from_public_bytes(self.data[_KEM : _KEM + _CURVE])
        try:
            _ANYBODY.exchange(curve)
        except ValueError as error:  # a point of low order: nobody could seal to it, and none speak
            raise InvalidInput("the second part of public keys must be X25519's") from error
        return MLKEM768X25519PublicKey(kem, curve)

    @cached_property
    def _signing(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.data[_KEM + _CURVE :])


@dataclass(frozen=True)
class Identity:
    """A party's secrets."""

    secret: bytes

    def __post_init__(self) -> None:
        # its length and nothing else: an error must not show a key
        check(len(self.secret) == SECRET, f"a party's secrets are {SECRET} bytes")

    def __repr__(self) -> str:
        return "Identity(...)"

    @classmethod
    def generate(cls) -> Identity:
        """New keys, from the operating system."""
        parts = (
            MLKEM768PrivateKey.generate().private_bytes_raw(),
            X25519PrivateKey.generate().private_bytes_raw(),
            Ed25519PrivateKey.generate().private_bytes_raw(),
        )
        return cls(b"".join(parts))

    @cached_property
    def public(self) -> PublicKeys:
        """What others may know."""
        kem, curve = self._parts
        raw = (kem.public_key().public_bytes_raw(), curve.public_key().public_bytes_raw())
        return PublicKeys(b"".join(raw) + self._signing.public_key().public_bytes_raw())

    def open(self, sealed: bytes, context: bytes) -> bytes | None:
        """What was sealed to this party in this context; None if that does not open."""
        try:
            return _SUITE.decrypt(sealed, self._sealing, info=context)
        except (InvalidTag, ValueError):
            return None

    def sign(self, content: bytes) -> bytes:
        """A signature of this content."""
        return self._signing.sign(content)

    @cached_property
    def _parts(self) -> tuple[MLKEM768PrivateKey, X25519PrivateKey]:
        kem = MLKEM768PrivateKey.from_seed_bytes(self.secret[:_SEED])
        return kem, X25519PrivateKey.from_private_bytes(self.secret[_SEED : _SEED + _CURVE])

    @cached_property
    def _sealing(self) -> MLKEM768X25519PrivateKey:
        return MLKEM768X25519PrivateKey(*self._parts)

    @cached_property
    def _signing(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret[_SEED + _CURVE :])
