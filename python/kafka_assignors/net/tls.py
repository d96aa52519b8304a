"""The TLS side of a connection: a context of the standard library made from librdkafka's settings."""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kafka_assignors.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.net.config import TlsConfig

__all__ = ["context_of"]


def context_of(config: TlsConfig) -> ssl.SSLContext:
    """The TLS context for all connections of a client. The files are read once.

    Raises:
        OptionError: a file, a key or its password, or the list of ciphers is not usable; it names the setting.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.check_hostname
    context.verify_mode = ssl.CERT_REQUIRED if config.verify else ssl.CERT_NONE
    if config.cipher_suites is not None:
        with _named("ssl.cipher.suites", "give a list in OpenSSL's form"):
            context.set_ciphers(config.cipher_suites)
    if config.verify:
        _trust(context, config)
    if config.certificate_location or config.certificate_pem:
        _identify(context, config)
    return context


def _trust(context: ssl.SSLContext, config: TlsConfig) -> None:
    location = config.ca_location
    if location is not None and location.lower() != "probe":
        with _named("ssl.ca.location", "give a PEM file, or a directory made by `openssl rehash`"):
            if os.path.isdir(location):
                context.load_verify_locations(capath=location)
            else:
                context.load_verify_locations(cafile=location)
    if config.ca_pem is not None:
        with _named("ssl.ca.pem", "give certificates as PEM text"):
            context.load_verify_locations(cadata=config.ca_pem)
    elif location is None or location.lower() == "probe":
        context.load_default_certs()
    if config.crl_location is not None:
        with _named("ssl.crl.location", "give a file of revocation lists in PEM"):
            context.load_verify_locations(cafile=config.crl_location)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, config: TlsConfig) -> None:
    def password() -> str | bytes:
        # Without a password OpenSSL would prompt on the terminal.
        if config.key_password is None:
            raise OptionError("the client's key is encrypted; give ssl.key.password")
        return config.key_password

    with ExitStack() as files:
        certificate = config.certificate_location or files.enter_context(_private_file(config.certificate_pem or ""))
        key = config.key_location or files.enter_context(_private_file(config.key_pem or ""))
        with _named(
            "ssl.certificate.location, ssl.key.location (or their .pem) and ssl.key.password",
            "give a certificate chain and its private key in PEM, and the key's password if it has one",
        ):
            context.load_cert_chain(certificate, key, password)


@contextmanager
def _named(setting: str, remedy: str) -> Iterator[None]:
    """Adds the setting and a remedy to an error of the standard library, which has neither."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{setting} cannot be used ({_reason(error)}); {remedy}") from None


def _reason(error: Exception) -> str:
    """The reason of an error, without its text, which may quote the input."""
    if isinstance(error, ssl.SSLError):
        # Some of Python's own errors have no reason.
        return getattr(error, "reason", None) or "OpenSSL does not accept it"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


@contextmanager
def _private_file(text: str) -> Iterator[str]:
    """A temporary file for `load_cert_chain`, which takes files only. Only this user can read it."""
    handle, path = tempfile.mkstemp(prefix="kafka-assignors-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        yield path
    finally:
        os.unlink(path)
