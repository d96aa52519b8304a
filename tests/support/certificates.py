"""Keys and certificates in PEM: of a certificate authority, a broker and clients, and some that must be refused."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

if TYPE_CHECKING:
    from pathlib import Path

KEY_PASSWORD = "key-secret"


@dataclass(frozen=True)
class Certificates:
    """Files below one directory.

    ``store`` is a broker's key, certificate and CA in one file, in Kafka's format. The certificate names localhost and
    127.0.0.1; the certificate ``misnamed`` names another host. ``stranger`` is the certificate of another CA.
    ``revoked`` is a revocation list with the broker's certificate, ``unrevoked`` one without it.
    """

    ca: Path
    stranger: Path
    store: Path
    server: Path
    server_key: Path
    misnamed: Path
    misnamed_key: Path
    client: Path
    client_key: Path
    client_encrypted_key: Path
    revoked: Path
    unrevoked: Path


def make(directory: Path) -> Certificates:
    """Writes new keys and certificates for each caller."""
    directory.mkdir(parents=True, exist_ok=True)
    authority, stranger = trustme.CA(), trustme.CA()

    def write(name: str, data: bytes) -> Path:
        path = directory / name
        path.write_bytes(data)
        return path

    def issue(name: str, *identities: str, common_name: str | None = None) -> tuple[Path, Path, trustme.LeafCert]:
        leaf = authority.issue_cert(*identities, common_name=common_name)
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return write(f"{name}.pem", chain), write(f"{name}.key", _pkcs8(leaf)), leaf

    server, server_key, server_leaf = issue("server", "localhost", "127.0.0.1", common_name="broker")
    misnamed, misnamed_key, _ = issue("misnamed", "elsewhere.example")
    client, client_key, client_leaf = issue("client", "client.example", common_name="client")
    ca = authority.cert_pem.bytes()
    return Certificates(
        ca=write("ca.pem", ca),
        stranger=write("stranger.pem", stranger.cert_pem.bytes()),
        store=write("store.pem", server_key.read_bytes() + server.read_bytes() + ca),
        server=server,
        server_key=server_key,
        misnamed=misnamed,
        misnamed_key=misnamed_key,
        client=client,
        client_key=client_key,
        client_encrypted_key=write("client-encrypted.key", _pkcs8(client_leaf, KEY_PASSWORD)),
        revoked=write("revoked.pem", _revocations(authority, server_leaf)),
        unrevoked=write("unrevoked.pem", _revocations(authority)),
    )


def _pkcs8(leaf: trustme.LeafCert, password: str | None = None) -> bytes:
    """PKCS 8: the only format of a key that Kafka's PEM stores accept."""
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def _revocations(authority: trustme.CA, *revoked: trustme.LeafCert) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - datetime.timedelta(days=1))
        .next_update(now + datetime.timedelta(days=1))
    )
    for leaf in revoked:
        number = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes()).serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now).build()
        builder = builder.add_revoked_certificate(entry)
    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]
