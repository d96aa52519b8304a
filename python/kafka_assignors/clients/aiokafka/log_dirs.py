"""DescribeLogDirs, for which aiokafka has no classes: the sizes of the partitions' logs.

Version 1, which every broker from Kafka 2.0 on knows. Reference: KIP-113.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The package has checked that the client is installed.
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol import api
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Int64, Schema, String

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DescribeLogDirs"]

KEY, VERSION = 35, 1

# The base class of the objects that are written to a connection. Up to aiokafka 0.12 this is the request itself; later
# a request makes such an object (`prepare`).
_Written: Any = getattr(api, "RequestStruct", api.Request)


class _Response(api.Response):  # type: ignore[misc]
    API_KEY = KEY
    API_VERSION = VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "folders",
            Array(
                ("error_code", Int16),
                ("path", String("utf-8")),
                (
                    "topics",
                    Array(
                        ("topic", String("utf-8")),
                        (
                            "partitions",
                            Array(("partition", Int32), ("size", Int64), ("offset_lag", Int64), ("is_future", Boolean)),
                        ),
                    ),
                ),
            ),
        ),
    )


class DescribeLogDirs(_Written):  # type: ignore[misc]
    """The request for the logs of these partitions, to one broker.

    Args:
        topics: names and partition counts.
    """

    FLEXIBLE_VERSION = False
    API_KEY = KEY
    API_VERSION = VERSION
    RESPONSE_TYPE = _Response
    SCHEMA = Schema(("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))))

    def __init__(self, topics: Mapping[str, int]) -> None:
        super().__init__([(topic, list(range(count))) for topic, count in topics.items()])

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> DescribeLogDirs:
        """This request, if the broker supports it; the client calls this from 0.13 on."""
        least, most = versions.get(KEY, (VERSION + 1, VERSION))
        if not least <= VERSION <= most:
            raise IncompatibleBrokerVersion("the broker does not know DescribeLogDirs")
        return self
