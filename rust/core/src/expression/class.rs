//! Sets of ASCII characters, as between brackets.

use std::fmt::Write as _;

/// A set of ASCII characters. No set has a character beyond ASCII.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    members: u128,
}

impl Class {
    pub(super) fn of(test: impl Fn(u8) -> bool) -> Self {
        Self { members: (0..128).filter(|&byte| test(byte)).fold(0, |set, byte| set | 1 << byte) }
    }

    /// A class by its POSIX name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "alnum" => Self::of(|byte| byte.is_ascii_alphanumeric()),
            "alpha" => Self::of(|byte| byte.is_ascii_alphabetic()),
            "blank" => Self::of(|byte| matches!(byte, b' ' | b'\t')),
            "cntrl" => Self::of(|byte| byte.is_ascii_control()),
            "digit" => Self::of(|byte| byte.is_ascii_digit()),
            "graph" => Self::of(|byte| byte.is_ascii_graphic()),
            "lower" => Self::of(|byte| byte.is_ascii_lowercase()),
            "print" => Self::of(|byte| matches!(byte, b' '..=b'~')),
            "punct" => Self::of(|byte| byte.is_ascii_punctuation()),
            "space" => Self::space(),
            "upper" => Self::of(|byte| byte.is_ascii_uppercase()),
            "xdigit" => Self::of(|byte| byte.is_ascii_hexdigit()),
            _ => return None,
        })
    }

    /// Letters, digits and the underscore.
    pub(super) fn word() -> Self {
        Self::of(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// White space as POSIX defines it, the vertical tab included.
    pub(super) fn space() -> Self {
        Self::of(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
    }

    pub(super) fn insert(&mut self, first: char, last: char) {
        let end = (last as u32).min(127);
        for code in first as u32..=end {
            self.members |= 1 << code;
        }
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.members |= other.members;
    }

    pub(super) fn complement(&self) -> Self {
        Self { members: !self.members }
    }

    /// Writes the set in the syntax of the `regex` crate; with `negated`, the set of all other bytes.
    pub(super) fn write(&self, negated: bool, text: &mut String) {
        text.push_str(if negated { "[^" } else { "[" });
        let mut code = 0_u32;
        while code < 128 {
            let run = (self.members >> code).trailing_ones();
            if run > 0 {
                // Writing to a string does not fail.
                let _ = write!(text, r"\x{code:02X}-\x{:02X}", code + run - 1);
            }
            code += run + 1;
        }
        if self.members == 0 {
            // The crate refuses an empty class. This byte is in no UTF-8 text.
            text.push_str(r"\xFF");
        }
        text.push(']');
    }
}
