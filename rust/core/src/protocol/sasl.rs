//! SaslHandshake and SaslAuthenticate: which mechanism, then the mechanism's own bytes (KIP-43, KIP-152, KIP-368).

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// Do you speak this mechanism? In version 0 the mechanism's bytes follow without headers, from version 1 on in
    /// SaslAuthenticate.
    pub struct SaslHandshakeRequest {
        /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`.
        mechanism: String [0..],
    }

    /// The broker's mechanisms.
    pub struct SaslHandshakeResponse {
        /// UNSUPPORTED_SASL_MECHANISM where the one asked for is not among them.
        error_code: ErrorCode [0..],
        /// What the listener has enabled.
        mechanisms: Vec<String> [0..],
    }

    /// One message of the mechanism, client to broker.
    pub struct SaslAuthenticateRequest {
        /// The message.
        auth_bytes: Vec<u8> [0..],
    }

    /// One message of the mechanism, broker to client.
    pub struct SaslAuthenticateResponse {
        /// SASL_AUTHENTICATION_FAILED where the credentials are wrong.
        error_code: ErrorCode [0..],
        /// More about it, for the user to read.
        error_message: Option<String> [0..],
        /// The message.
        auth_bytes: Vec<u8> [0..],
        /// The client must authenticate again within so many milliseconds; 0: never.
        session_lifetime_ms: i64 [1..],
    }
}

bodies! {
    SaslHandshake: SaslHandshakeRequest, SaslHandshakeResponse;
    SaslAuthenticate: SaslAuthenticateRequest, SaslAuthenticateResponse;
}
