"""The errors of the package.

Every error is a [`KafkaAssignorsError`][kafka_assignors.errors.KafkaAssignorsError] and also a built-in exception, such
as `ValueError`, so that code without knowledge of this package can catch it. A message names the fault, its place and
the remedy. No message prints a member's bytes. All errors are importable from `kafka_assignors`.

>>> issubclass(GroupError, KafkaAssignorsError) and issubclass(GroupError, ValueError)
True
"""

__all__ = [
    "CaptureError",
    "ClientReleaseWarning",
    "ClusterError",
    "ConnectorError",
    "EmbeddedKafkaError",
    "GroupError",
    "GroupTypeError",
    "IncompatibleClientError",
    "KafkaAssignorsError",
    "KeyFileError",
    "LagError",
    "MissingDependencyError",
    "NetworkError",
    "OptionError",
    "PartitionerError",
    "PartitionerTypeError",
    "PlanError",
    "ProtocolError",
    "RecordSizeWarning",
    "SecurityError",
    "SnapshotError",
    "StateError",
    "TableError",
    "TopicMetadataError",
    "TopicReadError",
    "UserDataError",
    "WeightError",
]


class KafkaAssignorsError(Exception):
    """The root of all errors that this package raises on purpose."""


class GroupError(KafkaAssignorsError, ValueError):
    """A wrong description of a group: a negative partition count, a member id given twice, racks that do not fit."""


class GroupTypeError(GroupError, TypeError):
    """A part of the description of a group has the wrong type, such as a partition number that is not an integer."""


class OptionError(KafkaAssignorsError, ValueError):
    """An option of an assignor or a partitioner, or a setting of a client, has a value that cannot be used."""


class NetworkError(KafkaAssignorsError, ConnectionError):
    """A broker cannot be reached, has closed the connection, or its answer is not one of Kafka's protocol."""


class SecurityError(NetworkError):
    """TLS or SASL failed: a certificate, credentials or a token that is not accepted. Trying again does not help."""


class PartitionerError(KafkaAssignorsError, ValueError):
    """A record for which there is no partition, or queue lengths that do not fit the topic."""


class PartitionerTypeError(PartitionerError, TypeError):
    """An argument of a partitioner has the wrong type, such as a key that is not bytes."""


class TopicMetadataError(KafkaAssignorsError, RuntimeError):
    """A record is not sent, because the partitions of its topic are not known. A producer on confluent-kafka raises a
    subclass that is also a `KafkaException`."""


class KeyFileError(KafkaAssignorsError, ValueError):
    """A file of keys cannot be read; the message names the line or the column."""


class TableError(KafkaAssignorsError, ValueError):
    """A table of the Spark pipeline cannot be read or written, lacks a column, or has a column of another type."""


class CaptureError(KafkaAssignorsError, RuntimeError):
    """The offsets topic cannot be captured: it does not exist, may not be read, or is not the topic of the folder."""


class ConnectorError(KafkaAssignorsError, RuntimeError):
    """The jars of Spark's Kafka connector are missing, and cannot be fetched or are not in the session."""


class TopicReadError(KafkaAssignorsError, RuntimeError):
    """The records of a live topic cannot be read."""


class SnapshotError(KafkaAssignorsError, ValueError):
    """A file is no snapshot of a cluster, or its version cannot be read here; the message names the field."""


class ClusterError(KafkaAssignorsError, RuntimeError):
    """A cluster refuses a question: the group does not exist, or the user lacks a right."""


class WeightError(KafkaAssignorsError, RuntimeError):
    """The weights of partitions are not known: a source failed, was late, or returned values that are no weights."""


class LagError(KafkaAssignorsError, RuntimeError):
    """The lags of a group are not known, or were not known in time."""


class PlanError(KafkaAssignorsError, ValueError):
    """A plan breaks a rule; [`Plan.verify`][kafka_assignors.group.Plan.verify] names the rule and the place."""


class ProtocolError(KafkaAssignorsError, ValueError):
    """A frame of the Kafka protocol cannot be read, or the version of a request has no field for a value. After a frame
    that cannot be read its connection must be closed: the bytes behind it have no known boundaries."""


class UserDataError(KafkaAssignorsError, ValueError):
    """Bytes of the group protocol cannot be read, or the protocol has no field for a value."""


class StateError(KafkaAssignorsError, RuntimeError):
    """The state of an object does not allow the call, such as one assignor instance for two consumers."""


class EmbeddedKafkaError(KafkaAssignorsError, ValueError):
    """The embedded Kafka cannot do what was asked, such as create a topic that exists."""


class IncompatibleClientError(KafkaAssignorsError, RuntimeError):
    """The installed version of a client lacks an internal attribute that a drop-in of ours needs."""


class MissingDependencyError(KafkaAssignorsError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class ClientReleaseWarning(UserWarning):
    """The installed release of a client has a fault that concerns its use here, or is newer than those tested."""


class RecordSizeWarning(UserWarning):
    """The record of a group is near the broker's default size limit, or above it."""
