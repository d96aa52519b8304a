//! Texts that are checked but not converted.

use std::fmt;

/// Bytes that are UTF-8. The check takes a fraction of the time of `str::from_utf8` for the short ASCII names of groups,
/// topics and members, of which a record has several. A caller that copies the bytes needs no `str`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Utf8<'a>(&'a [u8]);

impl<'a> Utf8<'a> {
    /// `None` if the bytes are not UTF-8.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (is_ascii(bytes) || str::from_utf8(bytes).is_ok()).then_some(Self(bytes))
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text.
    #[must_use]
    pub fn text(self) -> &'a str {
        // Never the default: the constructors accept UTF-8 only.
        str::from_utf8(self.0).unwrap_or_default()
    }

    /// The number of bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether the text is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// As `[u8]::is_ascii`, in words of eight bytes. The last word overlaps the one before it: no byte is left over.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else { return bytes.is_ascii() };
    let mut all = u64::from_ne_bytes(*last);
    for word in bytes.as_chunks::<8>().0 {
        all |= u64::from_ne_bytes(*word);
    }
    all & 0x8080_8080_8080_8080 == 0
}

impl<'a> From<&'a str> for Utf8<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl fmt::Display for Utf8<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.text(), formatter)
    }
}

impl fmt::Debug for Utf8<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(), formatter)
    }
}
