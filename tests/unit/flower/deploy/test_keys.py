from __future__ import annotations

import ipaddress
import os
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.errors import InvalidInput, StorageError
from sottovoce.flower.deploy.keys import make_keys, sealing_keys, site_names
from sottovoce.flower.sites import read_identity


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_number_of_sites_gets_names_that_sort() -> None:
    assert site_names(["3"]) == ["site-1", "site-2", "site-3"]
    assert site_names(["10"])[0] == "site-01"
    assert site_names(["10"]) == sorted(site_names(["10"]))
    assert site_names(["b", "a"]) == ["b", "a"]


@pytest.mark.parametrize(
    "sites", [[], ["0"], ["10000"], ["a/b"], ["../x"], [""], ["ca"], ["Server"], ["a", "A"], ["-a"]]
)
def test_names_that_cannot_be_files_of_their_own_are_refused(sites: list[str]) -> None:
    with pytest.raises(InvalidInput):
        site_names(sites)


def test_keys_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_keys(tmp_path / "keys", ["2"])
    finally:
        os.umask(before)
    for path in (tmp_path / "keys").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_sites_pair_belongs_together_and_is_on_a_curve_that_flower_takes(tmp_path: Path) -> None:
    make_keys(tmp_path, ["a"], server=False)
    assert names(tmp_path) == {"a.key", "a.pub", "a.seal"}
    private = load_ssh_private_key((tmp_path / "a.key").read_bytes(), None)
    public = load_ssh_public_key((tmp_path / "a.pub").read_bytes())
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert public.curve.name == "secp384r1"
    assert private.public_key() == public


def test_a_sites_public_file_brings_along_what_others_seal_to_it_with(tmp_path: Path) -> None:
    make_keys(tmp_path, ["a"], server=False)
    text = sealing_keys(tmp_path / "a.pub")
    assert text == read_identity(tmp_path / "a.seal").public.text
    old = (tmp_path / "a.pub").read_text().rpartition(" ")[0]
    (tmp_path / "b.pub").write_text(old + "\n")
    assert sealing_keys(tmp_path / "b.pub") is None
    with pytest.raises(StorageError, match="cannot be read"):
        sealing_keys(tmp_path / "c.pub")
    (tmp_path / "a.seal").write_text("no key")
    with pytest.raises(StorageError, match=r"a.seal cannot be read as a sealing key"):
        read_identity(tmp_path / "a.seal")


def test_the_certificate_is_good_for_loopback_and_the_hosts_given(tmp_path: Path) -> None:
    make_keys(tmp_path, [], ["hub.example.org", "192.0.2.7", "2001:db8::1"])
    found = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["localhost", "hub.example.org"]
    addresses = ["127.0.0.1", "192.0.2.7", "2001:db8::1"]
    assert named.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(address) for address in addresses
    ]


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(down, up, server_hostname=name)
    theirs = server.wrap_bio(up, down, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_client_that_trusts_the_authority_shakes_hands_and_no_other(tmp_path: Path) -> None:
    make_keys(tmp_path / "keys", [])
    make_keys(tmp_path / "other", [])
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "keys" / "server.crt", tmp_path / "keys" / "server.key")
    trusting = ssl.create_default_context(cafile=tmp_path / "keys" / "ca.crt")
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    handshake(server, trusting, "localhost")
    handshake(server, trusting, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, trusting, "elsewhere.example.org")
    stranger = ssl.create_default_context(cafile=tmp_path / "other" / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, stranger, "localhost")


@pytest.mark.parametrize("host", ["hub:443", "https://hub", "a b", "", "-x.org", "x" * 64])
def test_a_host_that_is_none_is_refused_before_a_file_is_written(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidInput, match="a host must be"):
        make_keys(tmp_path / "keys", ["2"], [host])
    assert not (tmp_path / "keys").exists()


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    make_keys(tmp_path, ["a"], server=False)
    before = (tmp_path / "a.key").read_bytes()
    with pytest.raises(InvalidInput, match="never overwritten"):
        make_keys(tmp_path, ["b", "a"])
    assert (tmp_path / "a.key").read_bytes() == before
    assert names(tmp_path) == {"a.key", "a.pub", "a.seal"}


def test_a_site_can_be_added_later(tmp_path: Path) -> None:
    make_keys(tmp_path, ["a"])
    make_keys(tmp_path, ["b"], server=False)
    assert {"a.pub", "b.pub", "ca.crt"} <= names(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="keys could not be written"):
        make_keys(tmp_path / "file" / "keys", ["1"])


def test_the_command_says_what_the_authority_is_worth(tmp_path: Path) -> None:
    words = ["keys", str(tmp_path / "keys"), "--sites=a", "--sites=b", "--host=hub.example.org"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "test authority" in " ".join(result.stderr.split())
    assert {"a.key", "b.pub", "server.crt"} <= names(tmp_path / "keys")
