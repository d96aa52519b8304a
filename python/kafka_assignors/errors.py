"""The errors of the package.

Every error is a [`KafkaAssignorsError`][kafka_assignors.errors.KafkaAssignorsError] and also the built-in exception
that fits, so that code that knows nothing of this package catches it by its usual name. A message says what was wrong,
where, and what to do about it. No message prints a member's bytes.

>>> issubclass(GroupError, KafkaAssignorsError) and issubclass(GroupError, ValueError)
True
"""

__all__ = [
    "CaptureError",
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
    "TopicReadError",
    "UserDataError",
]


class KafkaAssignorsError(Exception):
    """The root of all errors that this package raises on purpose."""


class GroupError(KafkaAssignorsError, ValueError):
    """A group described wrongly: a negative partition count, a member id given twice, racks that do not fit."""


class GroupTypeError(GroupError, TypeError):
    """A part of the description of a group has the wrong type: a partition number that is not an integer, say."""


class OptionError(KafkaAssignorsError, ValueError):
    """An option of an assignor or a partitioner, or a setting of a client, has a value that cannot be used."""


class NetworkError(KafkaAssignorsError, ConnectionError):
    """A broker cannot be reached, has closed the connection, or does not answer as a broker does."""


class SecurityError(NetworkError):
    """TLS or SASL failed: a certificate, credentials or a token that is not accepted. Trying again does not help."""


class PartitionerError(KafkaAssignorsError, ValueError):
    """A record for which there is no partition, or a load that no topic has; the message says which, and what to do."""


class PartitionerTypeError(PartitionerError, TypeError):
    """What a partitioner was given has the wrong type: a key that is not bytes, say."""


class KeyFileError(KafkaAssignorsError, ValueError):
    """A file of keys that cannot be read; the message says where."""


class TableError(KafkaAssignorsError, ValueError):
    """A table of the Spark pipeline that cannot be read or written, lacks a column, or has one of another type."""


class CaptureError(KafkaAssignorsError, RuntimeError):
    """The offsets topic cannot be captured: it is not there, may not be read, or is not the one that a folder holds."""


class ConnectorError(KafkaAssignorsError, RuntimeError):
    """The jars of Spark's Kafka connector are missing, and cannot be fetched or are not in the session."""


class TopicReadError(KafkaAssignorsError, RuntimeError):
    """The records of a live topic that cannot be read."""


class SnapshotError(KafkaAssignorsError, ValueError):
    """A file that is no snapshot of a cluster, or not of a version that is read; the message names the field."""


class ClusterError(KafkaAssignorsError, RuntimeError):
    """A cluster does not tell what it was asked: a group that does not exist, a right that is lacking."""


class LagError(KafkaAssignorsError, RuntimeError):
    """The lags of a group could not be told, or not in time."""


class PlanError(KafkaAssignorsError, ValueError):
    """A plan breaks a rule: [`Plan.verify`][kafka_assignors.group.Plan.verify] says which one, and where."""


class ProtocolError(KafkaAssignorsError, ValueError):
    """A frame of the Kafka protocol that cannot be read, or a request that its version has no form for. After a frame
    that cannot be read the connection it came on must be closed: what follows it means nothing."""


class UserDataError(KafkaAssignorsError, ValueError):
    """Bytes of the group protocol that cannot be read, or a value that it has no form for."""


class StateError(KafkaAssignorsError, RuntimeError):
    """An object is used in a way that its state does not allow: one assignor instance given to two consumers, say."""


class EmbeddedKafkaError(KafkaAssignorsError, ValueError):
    """The embedded Kafka was asked for what it cannot do: a topic that exists already, say."""


class IncompatibleClientError(KafkaAssignorsError, RuntimeError):
    """A client is installed in a version whose internals are not those that a drop-in of ours has to reach into."""


class MissingDependencyError(KafkaAssignorsError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class RecordSizeWarning(UserWarning):
    """A group whose record comes near, or passes, the broker's default size limit."""
