//! Topic ids as Kafka's tools print them: 22 characters of unpadded base64.

/// The 16 bytes of a topic's id.
pub type TopicId = [u8; 16];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An id in Kafka's own form, which is safe in URLs and file names.
#[must_use]
pub fn topic_id_text(id: TopicId) -> String {
    // 128 bits and 4 bits of padding.
    let bits = u128::from_be_bytes(id);
    let character = |at: u32| {
        let six = if at == 21 { bits << 4 } else { bits >> (122 - 6 * at) } & 0x3f;
        char::from(ALPHABET[six as usize])
    };
    (0..22).map(character).collect()
}

/// Parses an id. `+` and `/` are read as `-` and `_`, because librdkafka writes them. `None` if the text is no id.
#[must_use]
pub fn parse_topic_id(text: &str) -> Option<TopicId> {
    let text = text.as_bytes();
    let (&last, head) = text.split_last().filter(|(_, head)| head.len() == 21)?;
    let six = |byte: &u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' | b'+' => Some(62),
        b'_' | b'/' => Some(63),
        _ => None,
    };
    let mut bits = 0u128;
    for byte in head {
        bits = bits << 6 | u128::from(six(byte)?);
    }
    let last = six(&last).filter(|last| last & 0xf == 0)?;
    Some((bits << 2 | u128::from(last >> 4)).to_be_bytes())
}
