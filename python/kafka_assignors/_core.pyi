from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, TypedDict, final

from typing_extensions import disjoint_base

from kafka_assignors.group import Member, Topic
from kafka_assignors.partitioners import Cluster

# Member id, group.instance.id if there is one, and ConsumerProtocolSubscription as in JoinGroup.
_JoinedMember: TypeAlias = tuple[str, bytes] | tuple[str, str | None, bytes]
# Scope, skew, and the threshold if owners are to keep what they have.
_LagOptions: TypeAlias = tuple[str, int | None, int | None]
# A leader's earlier plans with the generation of each; whether its client does not pass on instance ids; and whether
# their assignments had no user data, so that claims can carry the group's generation only.
_EarlierPlans: TypeAlias = tuple[list[tuple[int | None, Plan]], bool, bool]
# Topic to partitions. The values of a dict are invariant: `dict[str, int | Topic]` alone would refuse a dict[str, int].
_Counts: TypeAlias = dict[str, int] | dict[str, int | Topic]
_Lags: TypeAlias = dict[str, list[int]] | dict[str, Sequence[int]]

# Milliseconds between heartbeats, until the first one, in the new protocol, while waiting, and of a round trip; whether
# members send their heartbeats at different moments.
_Intervals: TypeAlias = tuple[float, float, float, float, float, bool]

_Reason: TypeAlias = Literal[
    "no-subscriber", "withheld", "contested", "owner-not-subscribed", "beyond", "not-planned", "not-allowed", "full"
]

__version__: str
DEFAULT_RECORD_LIMIT: int
build_profile: Literal["debug", "release"]

@final
class Plan:
    def __len__(self) -> int: ...
    def assignment(self) -> dict[str, dict[str, list[int]]]: ...
    def assignment_of(self, member_id: str) -> dict[str, list[int]] | None: ...
    @property
    def member_ids(self) -> list[str]: ...
    @property
    def balance_score(self) -> int: ...
    def kept_and_moved(self) -> tuple[int, int]: ...
    def moves(self) -> list[tuple[str, int, str | None, str | None]]: ...
    def unassigned(self) -> list[tuple[str, int, _Reason, str | None, str | None]]: ...
    def notices(self) -> list[tuple[str, Literal["missing", "shrunk", "cuts"], int]]: ...
    @property
    def limited(self) -> str | None: ...
    def verify(
        self,
    ) -> tuple[
        tuple[int, int | None],
        tuple[int, int | None],
        int,
        tuple[int, int | None],
        bool,
        str | None,
        int,
        tuple[float, float] | None,
    ]: ...
    def lag_by_member(self) -> list[int] | None: ...
    def lag_bound(self) -> tuple[int, str | None] | None: ...
    def load_by_member(self) -> list[float] | None: ...
    def worst_load(self) -> tuple[float, float] | None: ...
    @property
    def joins(self) -> bool: ...
    @property
    def faults(self) -> list[tuple[str, str]]: ...
    @property
    def record_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...

@final
class Uninterrupted:
    def __new__(cls, function: Callable[..., object]) -> Self: ...
    def __call__(self, *args: object) -> None: ...

@final
class Expression:
    @staticmethod
    def posix(text: str) -> Expression: ...
    @staticmethod
    def re2(text: str) -> Expression: ...
    @staticmethod
    def search(text: str) -> Expression: ...
    def matches(self, names: list[str]) -> list[bool]: ...

@final
class ServerSideGroup:
    def __new__(cls, name: str, broker: str) -> ServerSideGroup: ...
    def copy(self) -> ServerSideGroup: ...
    def restore(
        self, members: Sequence[tuple[str, str | None, list[str], str | None, list[tuple[str, list[int]]]]]
    ) -> bool: ...
    def grow(self, name: str, partitions: int, id: str | None, later: bool) -> bool: ...
    def delete(self, name: str, later: bool) -> bool: ...
    def join(self, id: str, instance: str | None, names: list[str], expression: str | None, later: bool) -> bool: ...
    def subscribe(self, id: str, names: list[str], expression: str | None, later: bool) -> bool: ...
    def leave(self, id: str, returning: bool, later: bool) -> bool: ...
    def resolve(self, expression: str, names: list[str], later: bool) -> bool: ...
    def plan(self) -> bool: ...
    def pending(self) -> bool: ...
    def members(self) -> list[str]: ...
    def expressions(self) -> list[str]: ...
    def topics(self) -> dict[str, tuple[int, str]]: ...
    def target(self) -> dict[str, dict[str, list[int]]]: ...

# Arrow's record batches; pyarrow's own types are not known to type checkers.
@final
class Replay:
    def __new__(
        cls,
        strategies: Sequence[
            tuple[str, tuple[str, str, str] | tuple[str, int | None, int | None] | tuple[bool, Callable[..., Any]]]
        ],
        intervals: _Intervals | None = None,
    ) -> Replay: ...
    def run(self, batch: Any) -> Any: ...
    def floor(self, batch: Any) -> Any: ...
    def assignments(self, batch: Any, counts_wait: bool = False) -> Assignments: ...

def ownerless_ms(protocol: str, intervals: _Intervals, changes: tuple[int, int, int, int, int, int, int]) -> float: ...

@final
class OffsetsTopic:
    def __new__(cls, names: Mapping[str, str], clients: bool, bytes: bool) -> OffsetsTopic: ...
    def decode(self, table: Any) -> DecodedBatches: ...

@final
class DecodedBatches:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class Assignments:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

def assign_restricted(
    topics: _Counts,
    members: Iterable[Member],
    sets: list[list[str]],
    set_of: dict[str, list[int]],
    capacity: dict[str, int],
) -> Plan: ...

@final
class CustomGroup:
    def members(
        self,
    ) -> list[tuple[str, list[str], dict[str, list[int]], int | None, str | None, str | None, bytes]]: ...
    def finish(self, partitions: dict[str, dict[str, list[int]]]) -> tuple[dict[str, bytes] | None, Plan]: ...
    def data(self) -> list[tuple[str, bytes]]: ...
    def finish_weighted(
        self,
        weights: dict[str, list[float | None]] | None,
        capacities: dict[str, float],
        tolerance: float,
        seconds: float | None = None,
    ) -> tuple[dict[str, bytes] | None, Plan, int]: ...

def open_group(
    cooperative: bool, topics: _Counts, members: Iterable[Member], generation: int | None
) -> CustomGroup: ...
def open_joined(
    cooperative: bool,
    members: Iterable[_JoinedMember],
    partitions: _Counts,
    generation: int | None,
    handed_out: _EarlierPlans | None = None,
) -> CustomGroup: ...
def assign(
    name: str,
    mode: str,
    racks: str,
    topics: _Counts,
    members: Iterable[Member],
    generation: int | None,
) -> Plan: ...
def perform_assignment(
    name: str,
    mode: str,
    racks: str,
    members: Iterable[_JoinedMember],
    partitions: _Counts,
    generation: int | None,
    handed_out: _EarlierPlans | None = None,
    seconds: float | None = None,
) -> tuple[dict[str, bytes], Plan]: ...
def assign_by_lag(
    options: _LagOptions,
    topics: _Counts,
    members: Iterable[Member],
    lags: _Lags | None,
    generation: int | None,
) -> Plan: ...
def perform_assignment_by_lag(
    options: _LagOptions,
    members: Iterable[_JoinedMember],
    partitions: _Counts,
    lags: _Lags | None,
    generation: int | None,
    handed_out: _EarlierPlans | None = None,
    seconds: float | None = None,
) -> tuple[dict[str, bytes], Plan]: ...
def balance_score(loads: Sequence[int]) -> int: ...

@final
class EmbeddedBroker:
    def __new__(
        cls,
        *,
        cluster_id: str,
        racks: Sequence[str],
        auto_create_topics: bool,
        default_partitions: int,
        initial_rebalance_delay_ms: int,
        min_session_timeout_ms: int,
        max_session_timeout_ms: int,
        max_group_size: int | None,
        max_record_bytes: int,
        consumer_heartbeat_interval_ms: int,
        consumer_session_timeout_ms: int,
        consumer_assignors: Sequence[str],
        consumer_migration_policy: str,
        seed: int,
    ) -> EmbeddedBroker: ...
    @staticmethod
    def apis() -> list[tuple[str, int]]: ...
    def listen(self, host: str, port: int) -> None: ...
    def handle(self, now_ms: int, connection: int, frame: bytes) -> tuple[bool, list[tuple[int, bytes]]]: ...
    def tick(self, now_ms: int) -> list[tuple[int, bytes]]: ...
    def next_deadline(self) -> int | None: ...
    def disconnect(self, now_ms: int, connection: int) -> list[tuple[int, bytes]]: ...
    def create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: Sequence[tuple[str, str | None]]
    ) -> None: ...
    def grow_topic(self, name: str, partitions: int) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def topics(self) -> list[tuple[str, int]]: ...
    def offsets(self, name: str) -> list[tuple[int, int]]: ...
    def groups(
        self,
    ) -> list[
        tuple[
            str,
            Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"],
            int,
            str | None,
            str | None,
            str | None,
            list[tuple[str, str | None, str, bool, bool, bytes]],
        ]
    ]: ...
    def consumer_groups(
        self,
    ) -> list[
        tuple[
            str,
            Literal["Empty", "Assigning", "Reconciling", "Stable"],
            int,
            int,
            str,
            list[
                tuple[
                    str,
                    str | None,
                    str,
                    int,
                    dict[str, list[int]],
                    dict[str, list[int]],
                    dict[str, list[int]],
                ]
            ],
        ]
    ]: ...
    def inject(self, api: str, error: str, times: int) -> None: ...

def decode_subscription(
    metadata: bytes,
) -> tuple[int, list[str], bytes | None, list[tuple[str, list[int]]], int, str | None, str | None]: ...
def decode_assignment(data: bytes) -> tuple[int, list[tuple[str, list[int]]], bytes | None, str | None]: ...
def decode_sticky_user_data(data: bytes | None) -> tuple[list[tuple[str, list[int]]], int]: ...
def decode_cooperative_user_data(data: bytes | None) -> int: ...
def decode_custom_user_data(data: bytes | None) -> tuple[list[tuple[str, list[int]]], int, bytes]: ...
def decode_stream_join_user_data(data: bytes | None) -> tuple[list[int], int]: ...

# ---- requests and responses of the Kafka protocol -----------------------------------------------------------------
# `encode_…` gives a request's frame with its 4-byte length in front, ready to be sent; `decode_…` takes a response's
# frame without that length, and the version and correlation id of the request that it answers. Both raise
# `ProtocolError`: for a version without codec, for a value without form, for a correlation id that is not the
# request's, and for bytes that are not exactly the response. Then close the connection. No length in a frame is
# trusted: work and memory are linear in its bytes. Names are those of Kafka's message definitions; fields that a
# version lacks have their defaults. Linear in the bytes; reading releases the GIL.

# The answer to ApiVersions: key -> (lowest, highest version). A broker that does not support the version of the request
# answers in version 0 with error_code 35, which is read here too: ask again with a version in its range.
class _ApiVersions(TypedDict):
    error_code: int
    api_keys: dict[int, tuple[int, int]]
    throttle_time_ms: int
    features: dict[str, int]

class _SaslHandshake(TypedDict):
    error_code: int
    mechanisms: list[str]

class _SaslAuthenticate(TypedDict):
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int  # 0: never authenticate again

class _Broker(TypedDict):
    node_id: int
    host: str
    port: int
    rack: str | None

class _Partition(TypedDict):
    error_code: int
    partition_index: int
    leader_id: int  # -1: none
    leader_epoch: int  # -1: unknown
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]

class _Topic(TypedDict):
    error_code: int
    name: str
    topic_id: str | None  # as Kafka prints it; None below version 10
    is_internal: bool
    partitions: Sequence[_Partition]  # in no promised order

class _Metadata(TypedDict):
    throttle_time_ms: int
    brokers: Sequence[_Broker]
    cluster_id: str | None
    controller_id: int
    topics: Sequence[_Topic]

class _FindCoordinator(TypedDict):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int

class _ListedOffset(TypedDict):
    topic: str
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int

class _ListOffsets(TypedDict):
    throttle_time_ms: int
    partitions: Sequence[_ListedOffset]

class _GroupMember(TypedDict):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

class _Group(TypedDict):
    error_code: int
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Sequence[_GroupMember]

class _DescribeGroups(TypedDict):
    throttle_time_ms: int
    groups: Sequence[_Group]

class _ConsumerMember(TypedDict):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    assignment: list[tuple[str, list[int]]]
    target_assignment: list[tuple[str, list[int]]]
    member_type: int  # 0: of the classic protocol, 1: of the new one, -1: unknown

class _ConsumerGroup(TypedDict):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Sequence[_ConsumerMember]

class _ConsumerGroupDescribe(TypedDict):
    throttle_time_ms: int
    groups: Sequence[_ConsumerGroup]

class _DescribeConfigs(TypedDict):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    configs: dict[str, str | None]

class _ListedGroup(TypedDict):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str

class _ListGroups(TypedDict):
    throttle_time_ms: int
    error_code: int
    groups: Sequence[_ListedGroup]

class _FetchedOffset(TypedDict):
    topic: str
    partition_index: int
    committed_offset: int  # -1: none
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

class _FetchedGroup(TypedDict):
    group_id: str
    error_code: int
    partitions: Sequence[_FetchedOffset]

class _OffsetFetch(TypedDict):
    throttle_time_ms: int
    groups: Sequence[_FetchedGroup]

# Kafka's name of each request with a codec -> (key, lowest version, highest version).
def protocol_versions() -> dict[str, tuple[int, int, int]]: ...

# Kafka's name of an error code, such as "NOT_COORDINATOR"; None for a code without a name here.
def error_name(code: int) -> str | None: ...
def encode_api_versions(
    version: int, correlation_id: int, client_id: str | None, client_software_name: str, client_software_version: str
) -> bytes: ...
def decode_api_versions(version: int, correlation_id: int, frame: bytes) -> _ApiVersions: ...
def encode_sasl_handshake(version: int, correlation_id: int, client_id: str | None, mechanism: str) -> bytes: ...
def decode_sasl_handshake(version: int, correlation_id: int, frame: bytes) -> _SaslHandshake: ...
def encode_sasl_authenticate(version: int, correlation_id: int, client_id: str | None, auth_bytes: bytes) -> bytes: ...
def decode_sasl_authenticate(version: int, correlation_id: int, frame: bytes) -> _SaslAuthenticate: ...

# topics=None asks for all topics. From version 4 on, the request creates no topic.
def encode_metadata(
    version: int, correlation_id: int, client_id: str | None, topics: Sequence[str] | None
) -> bytes: ...
def decode_metadata(version: int, correlation_id: int, frame: bytes) -> _Metadata: ...
def encode_find_coordinator(version: int, correlation_id: int, client_id: str | None, group_id: str) -> bytes: ...
def decode_find_coordinator(version: int, correlation_id: int, frame: bytes) -> _FindCoordinator: ...

# topics: (topic, [(partition, timestamp, current leader epoch or -1)]). The timestamp is in milliseconds since 1970, -1
# for the end, -2 for the start. isolation_level: 0 reads uncommitted, 1 committed. Send it to the
# leader of the partitions.
def encode_list_offsets(
    version: int,
    correlation_id: int,
    client_id: str | None,
    topics: Sequence[tuple[str, Sequence[tuple[int, int, int]]]],
    isolation_level: int,
) -> bytes: ...
def decode_list_offsets(version: int, correlation_id: int, frame: bytes) -> _ListOffsets: ...
def encode_describe_groups(
    version: int, correlation_id: int, client_id: str | None, groups: Sequence[str]
) -> bytes: ...
def decode_describe_groups(version: int, correlation_id: int, frame: bytes) -> _DescribeGroups: ...

# Groups that the broker assigns (KIP-848); one of the classic protocol is GROUP_ID_NOT_FOUND.
def encode_consumer_group_describe(
    version: int, correlation_id: int, client_id: str | None, group_ids: Sequence[str]
) -> bytes: ...
def decode_consumer_group_describe(version: int, correlation_id: int, frame: bytes) -> _ConsumerGroupDescribe: ...

# DescribeConfigs, of one topic (type 2) or broker (4). A setting that is unknown to the broker is not in the answer.
def encode_describe_configs(
    version: int,
    correlation_id: int,
    client_id: str | None,
    resource_type: int,
    resource_name: str,
    settings: Sequence[str],
) -> bytes: ...
def decode_describe_configs(version: int, correlation_id: int, frame: bytes) -> _DescribeConfigs: ...

# states_filter counts from version 4 on.
def encode_list_groups(
    version: int, correlation_id: int, client_id: str | None, states_filter: Sequence[str]
) -> bytes: ...
def decode_list_groups(version: int, correlation_id: int, frame: bytes) -> _ListGroups: ...

# groups: (group, topics), several from version 8 on; before it, an answer names no group. topics: (topic, partitions);
# None (from version 2 on) asks for every offset of the group. require_stable counts from version 7 on.
def encode_offset_fetch(
    version: int,
    correlation_id: int,
    client_id: str | None,
    groups: Sequence[tuple[str, Sequence[tuple[str, Sequence[int]]] | None]],
    require_stable: bool,
) -> bytes: ...
def decode_offset_fetch(version: int, correlation_id: int, frame: bytes) -> _OffsetFetch: ...

@disjoint_base
class DefaultPartitioner:
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def _seed(self, seed: int) -> None: ...
    def partition(
        self,
        topic: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
        cluster: Cluster,
        *,
        partition: int | None = None,
    ) -> int: ...
    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None: ...

@disjoint_base
class UniformStickyPartitioner:
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def _seed(self, seed: int) -> None: ...
    def partition(
        self,
        topic: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
        cluster: Cluster,
        *,
        partition: int | None = None,
    ) -> int: ...
    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None: ...

@disjoint_base
class AdaptivePartitioner:
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def _seed(self, seed: int) -> None: ...
    def _configure(self, batch_size: int, ignore_keys: bool) -> bool: ...
    def partition(
        self,
        topic: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
        cluster: Cluster,
        *,
        partition: int | None = None,
    ) -> int: ...
    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None: ...
    def update_load(
        self, topic: str, queue_lengths: Mapping[int, int] | Sequence[int] | None, unavailable: Iterable[int]
    ) -> None: ...

@disjoint_base
class RoundRobinPartitioner:
    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def partition(
        self,
        topic: str,
        key: object,
        serialized_key: bytes | None,
        value: object,
        serialized_value: bytes | None,
        cluster: Cluster,
        *,
        partition: int | None = None,
    ) -> int: ...
    def on_new_batch(self, topic: str, cluster: Cluster, prev_partition: int) -> None: ...

# For exactly this type, and no subclass. The attribute is {topic: {partition: anything}}.
def register_cluster_type(cluster_type: type, attribute: str) -> None: ...
def murmur2(key: bytes | bytearray | memoryview) -> int: ...

# ---- a member of a consumer group ---------------------------------------------------------------------------------
# The driving contract is the docstring of the class: help(kafka_assignors._core.Membership).

_Partitions: TypeAlias = list[tuple[str, list[int]]]

class _Connect(TypedDict):
    action: Literal["connect"]
    conn: int
    node_id: int  # -1: a bootstrap server
    host: str
    port: int
    role: Literal["bootstrap", "group", "offsets"]

class _Send(TypedDict):
    action: Literal["send"]
    conn: int
    data: bytes

class _Close(TypedDict):
    action: Literal["close"]
    conn: int
    reason: str

class _Topics(TypedDict):
    action: Literal["topics"]
    topics: list[tuple[str, bool]]

class _Notify(TypedDict):
    action: Literal["notify"]
    ticket: int
    kind: Literal["prepare", "assign", "leave"]
    lost: bool
    revoked: _Partitions
    added: _Partitions
    owned: _Partitions
    generation: int  # -1: none
    member_id: str
    protocol: str
    assignment: bytes
    topics: list[str]
    # Of an assignment: when this member began to join and when JoinGroup was answered (milliseconds, None if unknown),
    # the number of its JoinGroup requests, and why it joined.
    began_ms: int | None
    joined_ms: int | None
    attempts: int
    trigger: Literal["group", "joined", "expelled", "subscription", "revoked", "topics", "leader-returned", "asked"]

class _Plan(TypedDict):
    action: Literal["plan"]
    ticket: int
    generation: int
    protocol: str
    members: list[tuple[str, str | None, bytes]]
    topics: dict[str, tuple[int, list[frozenset[str]]]]

class _CommitDone(TypedDict):
    action: Literal["commit-done"]
    id: int
    error_code: int
    partitions: list[tuple[str, int, int]]
    dropped: list[tuple[str, int]]

class _OffsetsFetched(TypedDict):
    action: Literal["offsets-fetched"]
    id: int
    error_code: int
    offsets: list[tuple[str, int, int, int, str | None, int]]

class _MaxPollExceeded(TypedDict):
    action: Literal["max-poll-exceeded"]
    interval_ms: int

class _ConvertedByBroker(TypedDict):
    action: Literal["converted-by-broker"]
    message: str

class _Error(TypedDict):
    action: Literal["error"]
    error_code: int
    topic: str | None
    message: str

class _Fatal(TypedDict):
    action: Literal["fatal"]
    error_code: int
    message: str

class _Log(TypedDict):
    action: Literal["log"]
    level: Literal["info", "warning"]
    message: str

class _Closed(TypedDict):
    action: Literal["closed"]

_Action: TypeAlias = (
    _Connect
    | _Send
    | _Close
    | _Topics
    | _Notify
    | _Plan
    | _CommitDone
    | _OffsetsFetched
    | _MaxPollExceeded
    | _ConvertedByBroker
    | _Error
    | _Fatal
    | _Log
    | _Closed
)

@final
class Membership:
    # Times are milliseconds. assignors, in order of preference: wire name, whether it is cooperative, whether its
    # generations settle claims (only cooperative-sticky), whether it uses racks. Raises OptionError for settings that
    # make no member. seed: of the jitter in back-offs, the only randomness; give each member its own.
    def __new__(
        cls,
        *,
        now_ms: int,
        bootstrap: Sequence[tuple[str, int]],
        group_id: str,
        assignors: Sequence[tuple[str, bool, bool, bool]],
        client_id: str | None = None,
        group_instance_id: str | None = None,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        early_heartbeat_ms: int = 500,
        max_poll_interval_ms: int = 300_000,
        rebalance_timeout_ms: int | None = None,
        request_timeout_ms: int = 60_000,
        connect_timeout_ms: int = 30_000,
        metadata_refresh_ms: int = 300_000,
        backoff_ms: int = 100,
        max_backoff_ms: int = 1_000,
        carry_on_when_converted: bool = False,
        seed: int = 0,
    ) -> Self: ...
    # A member of the consumer protocol (KIP-848). member_id: its own, for the life of the process.
    @staticmethod
    def consumer(
        *,
        now_ms: int,
        bootstrap: Sequence[tuple[str, int]],
        group_id: str,
        member_id: str,
        client_id: str | None = None,
        group_instance_id: str | None = None,
        rack: str | None = None,
        remote_assignor: str | None = None,
        session_timeout_ms: int = 45_000,
        longest_heartbeat_ms: int = 300,
        max_poll_interval_ms: int = 300_000,
        request_timeout_ms: int = 60_000,
        connect_timeout_ms: int = 30_000,
        backoff_ms: int = 100,
        max_backoff_ms: int = 1_000,
        seed: int = 0,
    ) -> Membership: ...
    def connected(self, now_ms: int, conn: int, versions: dict[int, tuple[int, int]]) -> list[_Action]: ...
    def disconnected(self, now_ms: int, conn: int, reason: str, fatal_code: int | None = None) -> list[_Action]: ...
    def received(self, now_ms: int, conn: int, frame: bytes) -> list[_Action]: ...
    def tick(self, now_ms: int) -> list[_Action]: ...
    def poll(self, now_ms: int) -> list[_Action]: ...
    def subscribe(self, now_ms: int, topics: Sequence[str], all_topics: bool = False) -> list[_Action]: ...
    # The consumer protocol only: the broker matches the expression (RE2/J) with whole names.
    def subscribe_expression(self, now_ms: int, topics: Sequence[str], expression: str | None) -> list[_Action]: ...
    def matched(self, now_ms: int, topics: Sequence[str]) -> list[_Action]: ...
    def unsubscribe(self, now_ms: int) -> list[_Action]: ...
    def begin(self, ticket: int) -> bool: ...
    def done(self, now_ms: int, ticket: int, protocols: Sequence[tuple[str, bytes]] = ...) -> list[_Action]: ...
    def planned(self, now_ms: int, ticket: int, assignments: dict[str, bytes]) -> list[_Action]: ...
    def plan_failed(self, now_ms: int, ticket: int, message: str) -> list[_Action]: ...
    # offsets: topic, partition, next offset, leader epoch or -1, metadata.
    def commit(
        self, now_ms: int, id: int, offsets: Sequence[tuple[str, int, int, int, str | None]], timeout_ms: int
    ) -> list[_Action]: ...
    def fetch_offsets(
        self, now_ms: int, id: int, partitions: Sequence[tuple[str, Sequence[int]]], timeout_ms: int
    ) -> list[_Action]: ...
    # The index of this member among the members of the group in this process, from 0, and their number: members of one
    # process spread their heartbeats by it.
    def neighbours(self, now_ms: int, place: int, count: int) -> list[_Action]: ...
    # A neighbour's action "group-rebalances": the next heartbeat is sent now. That of another generation is ignored.
    def group_rebalances(self, now_ms: int, generation: int) -> list[_Action]: ...
    # Forces a rebalance from any member, since the lags have changed, for example. Nothing happens during a rebalance.
    def rejoin(self, now_ms: int, reason: str) -> list[_Action]: ...
    def close(self, now_ms: int, timeout_ms: int) -> list[_Action]: ...
    def next_deadline(self) -> int | None: ...
    def owned(self) -> _Partitions: ...
    # Stage ("unjoined", "joining", "planning", "syncing", "stable", "reconciling", "failed", "closed"), member id,
    # generation, whether it leads, assignor of the generation: all of one moment. For ConsumerGroupMetadata and tools.
    def state(self) -> tuple[str, str, int, bool, str]: ...
    # Whether the owned partitions are lost and must not be read on; and when the session ends without an answer.
    def session_state(self) -> tuple[bool, int | None]: ...
    # Member id and generation to name in a transaction: those of the last generation.
    def fencing(self) -> tuple[str, int] | None: ...
    def is_subscribed(self) -> bool: ...
    @property
    def rebalance_protocol(self) -> Literal["eager", "cooperative"]: ...

# ---- columns of keys -----------------------------------------------------------------------------------------------

# Native 32-bit integers, -1 for None.
def partitions_of(keys: Iterable[bytes | None], hash: str, count: int) -> bytes: ...

# An object of the Arrow PyCapsule interface, or keys one by one; the result is a pyarrow.Int32Array.
def murmur2_column(keys: Any) -> Any: ...
def partitions_of_column(keys: Any, hash: str, count: int) -> Any: ...
