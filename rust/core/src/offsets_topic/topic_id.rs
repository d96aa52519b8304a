//! Topic ids as Kafka's tools print them: 22 characters of unpadded base64.

use crate::protocol::TopicId;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An id in Kafka's own form, which is safe in URLs and file names.
#[must_use]
pub fn topic_id_text(id: TopicId) -> String {
    String::from_utf8_lossy(&topic_id_characters(id)).into_owned()
}

/// As [`topic_id_text`], without an allocation. All characters are ASCII.
#[must_use]
pub fn topic_id_characters(id: TopicId) -> [u8; 22] {
    let mut characters = [0; 22];
    let character = |six: u32| ALPHABET[(six & 0x3f) as usize];
    let (threes, _) = id.as_chunks::<3>();
    for (four, three) in characters.chunks_exact_mut(4).zip(threes) {
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        four.copy_from_slice(&[18, 12, 6, 0].map(|shift| character(bits >> shift)));
    }
    // The last byte, and 4 bits of padding.
    let last = u32::from(id[15]);
    characters[20..].copy_from_slice(&[character(last >> 2), character(last << 4)]);
    characters
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
