//! SaslHandshake selects the mechanism; SaslAuthenticate carries its bytes (KIP-43, KIP-152, KIP-368).

use super::ErrorCode;
use super::field::{bodies, message};

message! {
    /// SaslHandshake: the request. In version 0 the mechanism's bytes follow without headers, since version 1 in
    /// SaslAuthenticate.
    pub struct SaslHandshakeRequest {
        /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`.
        mechanism: String [0..],
    }

    /// The broker's mechanisms.
    pub struct SaslHandshakeResponse {
        /// UNSUPPORTED_SASL_MECHANISM if the requested one is not enabled.
        error_code: ErrorCode [0..],
        /// The mechanisms that the listener supports.
        mechanisms: Vec<String> [0..],
    }

    /// One message of the mechanism, client to broker.
    pub struct SaslAuthenticateRequest {
        /// The message.
        auth_bytes: Vec<u8> [0..],
    }

    /// One message of the mechanism, broker to client.
    pub struct SaslAuthenticateResponse {
        /// SASL_AUTHENTICATION_FAILED if the credentials are wrong.
        error_code: ErrorCode [0..],
        /// The error message for the user.
        error_message: Option<String> [0..],
        /// The message.
        auth_bytes: Vec<u8> [0..],
        /// The time in milliseconds after which the client must authenticate again; 0 for never.
        session_lifetime_ms: i64 [1..],
    }
}

bodies! {
    SaslHandshake: SaslHandshakeRequest, SaslHandshakeResponse;
    SaslAuthenticate: SaslAuthenticateRequest, SaslAuthenticateResponse;
}
