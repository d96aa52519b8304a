//! The API keys, and the versions of each that the codecs read and write.

/// One row of the table below becomes one variant of [`ApiKey`].
macro_rules! api_keys {
    ($($name:ident = $key:literal, $least:literal ..= $most:literal, $flexible:expr;)*) => {
        /// An API key, with Kafka's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        #[allow(missing_docs)]
        pub enum ApiKey { $($name = $key,)* }

        impl ApiKey {
            /// Every supported key, ascending.
            pub const ALL: &[ApiKey] = &[$(ApiKey::$name,)*];

            /// The key on the wire.
            #[must_use]
            pub fn code(self) -> i16 {
                self as i16
            }

            /// The key with this code, if it is supported.
            #[must_use]
            pub fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($key => Some(ApiKey::$name),)*
                    _ => None,
                }
            }

            /// Kafka's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(ApiKey::$name => stringify!($name),)* }
            }

            /// The lowest and the highest version that the codecs read and write.
            #[must_use]
            pub fn versions(self) -> (i16, i16) {
                match self { $(ApiKey::$name => ($least, $most),)* }
            }

            /// The first version with compact types and tagged fields (KIP-482).
            #[must_use]
            pub fn flexible_from(self) -> i16 {
                match self { $(ApiKey::$name => $flexible,)* }
            }
        }
    };
}

/// No version of the request is flexible.
const NEVER: i16 = i16::MAX;

api_keys! {
    Produce = 0, 3..=8, 9;
    Fetch = 1, 4..=11, 12;
    ListOffsets = 2, 1..=7, 6;
    Metadata = 3, 0..=12, 9;
    OffsetCommit = 8, 2..=10, 8;
    OffsetFetch = 9, 1..=10, 6;
    FindCoordinator = 10, 0..=4, 3;
    JoinGroup = 11, 0..=9, 6;
    Heartbeat = 12, 0..=4, 4;
    LeaveGroup = 13, 0..=5, 4;
    SyncGroup = 14, 0..=5, 4;
    DescribeGroups = 15, 0..=5, 5;
    ListGroups = 16, 0..=5, 3;
    SaslHandshake = 17, 0..=1, NEVER;
    ApiVersions = 18, 0..=3, 3;
    CreateTopics = 19, 0..=5, 5;
    DeleteTopics = 20, 0..=4, 4;
    DeleteRecords = 21, 0..=2, 2;
    InitProducerId = 22, 0..=3, 2;
    OffsetForLeaderEpoch = 23, 0..=4, 4;
    DescribeConfigs = 32, 0..=4, 4;
    SaslAuthenticate = 36, 0..=2, 2;
    CreatePartitions = 37, 0..=3, 2;
    DeleteGroups = 42, 0..=2, 2;
    IncrementalAlterConfigs = 44, 0..=1, 1;
    ConsumerGroupHeartbeat = 68, 0..=1, 0;
    ConsumerGroupDescribe = 69, 0..=1, 0;
}

impl ApiKey {
    /// Whether the codecs support this version.
    #[must_use]
    pub fn speaks(self, version: i16) -> bool {
        let (least, most) = self.versions();
        (least..=most).contains(&version)
    }

    /// Whether this version has compact types and tagged fields.
    #[must_use]
    pub fn is_flexible(self, version: i16) -> bool {
        version >= self.flexible_from()
    }
}
