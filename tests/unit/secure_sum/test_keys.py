from __future__ import annotations

import subprocess
import sys

import pytest

from sottovoce.errors import InvalidInput
from sottovoce.secure_sum.keys import PUBLIC, SECRET, Identity, PublicKeys


def test_keys_come_back_from_the_line_that_is_written_of_them() -> None:
    party = Identity.generate()
    assert len(party.secret) == SECRET
    assert Identity(party.secret).public == party.public
    assert PublicKeys.parse(party.public.text) == party.public
    assert "\n" not in party.public.text


def test_what_is_sealed_and_signed_with_written_keys_is_opened_and_known_by_others() -> None:
    party = Identity.generate()
    public, again = PublicKeys.parse(party.public.text), Identity(party.secret)
    assert again.open(public.seal(b"share", b"here"), b"here") == b"share"
    assert public.signed(again.sign(b"word"), b"word")
    assert not public.signed(again.sign(b"word"), b"ward")
    assert not Identity.generate().public.signed(again.sign(b"word"), b"word")


def test_the_same_share_is_never_sealed_to_the_same_bytes() -> None:
    public = Identity.generate().public
    assert public.seal(b"share", b"here") != public.seal(b"share", b"here")


@pytest.mark.parametrize("text", ["", "no base64!", "QUJD", "A" * 100])
def test_a_line_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"public keys are {PUBLIC} bytes"):
        PublicKeys.parse(text)


def test_bytes_of_the_right_length_that_are_no_key_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be ML-KEM-768's"):
        PublicKeys(b"\xff" * PUBLIC)


@pytest.mark.parametrize(
    "point",
    [
        bytes(32),
        (1).to_bytes(32, "little"),
        (2**255 - 20).to_bytes(32, "little"),
        (2**255 - 19).to_bytes(32, "little"),
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    ],
)
def test_keys_that_nobody_could_seal_to_are_refused_before_they_keep_all_from_speaking(
    point: bytes,
) -> None:
    good = Identity.generate().public
    start = PUBLIC - 64  # after ML-KEM's, before Ed25519's
    with pytest.raises(InvalidInput, match="second part of public keys must be X25519's"):
        PublicKeys(good.data[:start] + point + good.data[start + 32 :])
    assert PublicKeys(good.data).seal(b"share", b"here")


def test_secrets_are_in_no_error_and_no_representation() -> None:
    party = Identity.generate()
    assert party.secret.hex()[:8] not in repr(party)
    assert repr(party) == "Identity(...)"
    with pytest.raises(InvalidInput) as raised:
        Identity(party.secret[:-1])
    assert str(party.secret[:4]) not in str(raised.value)


def test_without_cryptography_the_extra_to_install_is_named() -> None:
    script = """
import sys
sys.modules["cryptography.hazmat.primitives.hpke"] = None
import sottovoce.secure_sum.terms, sottovoce.secure_sum.grid
try:
    import sottovoce.secure_sum.keys
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (
        done.stdout.strip() == "sealing and signing needs an extra: pip install 'sottovoce[flower]'"
    )
