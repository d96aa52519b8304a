"""Connections to brokers: TCP, TLS and SASL with the standard library alone, configured by confluent-kafka's own keys.

[`ClientConfig.from_confluent`][kafka_assignors.net.config.ClientConfig.from_confluent] reads the settings; a
[`Poller`][kafka_assignors.net.poller.Poller] drives any number of connections on one thread, each of which becomes
ready after the TCP connection, the TLS handshake, the exchange of API versions and the SASL authentication. A
connection carries frames of bytes; the caller encodes and decodes them.
"""

from kafka_assignors.net.config import Address, ClientConfig
from kafka_assignors.net.connection import Connection
from kafka_assignors.net.poller import Closed, ConnectionEvent, Poller, Ready, Received

__all__ = ["Address", "ClientConfig", "Closed", "Connection", "ConnectionEvent", "Poller", "Ready", "Received"]
