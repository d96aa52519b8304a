//! Strings, bytes and counts in the form of a version: classic, or compact from the first flexible version on.

use crate::wire::reader::{Problem, ReadError, Reader};

/// A reader that knows which of the two forms it reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) reader: Reader<'a>,
    flexible: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(reader: Reader<'a>, flexible: bool) -> Self {
        Self { reader, flexible }
    }

    fn not_null(&self, read: Option<&'a [u8]>, at: usize, what: &'static str) -> Result<&'a [u8], ReadError> {
        read.ok_or(ReadError { what, at, problem: Problem::Length(-1) })
    }

    #[inline]
    pub(super) fn string(&mut self, what: &'static str) -> Result<&'a str, ReadError> {
        let at = self.reader.position();
        let bytes = if self.flexible {
            let read = self.reader.compact_nullable_bytes(what)?;
            self.not_null(read, at, what)?
        } else {
            self.reader.string_bytes(what)?
        };
        text(bytes, at, what)
    }

    pub(super) fn nullable_string(&mut self, what: &'static str) -> Result<Option<&'a str>, ReadError> {
        let at = self.reader.position();
        let bytes = if self.flexible {
            self.reader.compact_nullable_bytes(what)?
        } else {
            self.reader.nullable_string_bytes(what)?
        };
        bytes.map(|bytes| text(bytes, at, what)).transpose()
    }

    pub(super) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        if !self.flexible {
            return self.reader.bytes(what);
        }
        let at = self.reader.position();
        let read = self.reader.compact_nullable_bytes(what)?;
        self.not_null(read, at, what)
    }

    /// The count of an array whose elements have at least `least` bytes each.
    pub(super) fn count(&mut self, least: usize, what: &'static str) -> Result<usize, ReadError> {
        if !self.flexible {
            return self.reader.count(least, what);
        }
        let at = self.reader.position();
        let count = self.reader.compact_count(least, what)?;
        count.ok_or(ReadError { what, at, problem: Problem::Length(-1) })
    }

    /// The end of a structure: the tagged fields of a flexible one, which are skipped.
    pub(super) fn end(&mut self, what: &'static str) -> Result<(), ReadError> {
        if self.flexible { self.reader.skip_tagged_fields(what) } else { Ok(()) }
    }
}

pub(super) fn text<'a>(bytes: &'a [u8], at: usize, what: &'static str) -> Result<&'a str, ReadError> {
    std::str::from_utf8(bytes).map_err(|_| ReadError { what, at, problem: Problem::Utf8 })
}

/// Goes through the tagged fields at the end of a flexible structure and hands the content of `tag` to `read`; the others
/// are skipped. A tag that comes twice counts by its last content.
pub(super) fn tagged<'a, T>(
    reader: &mut Reader<'a>,
    tag: u32,
    what: &'static str,
    mut read: impl FnMut(Reader<'a>) -> Result<T, ReadError>,
) -> Result<Option<T>, ReadError> {
    let mut found = None;
    for _ in 0..reader.unsigned_varint(what)? {
        let number = reader.unsigned_varint(what)?;
        let at = reader.position();
        let length = reader.unsigned_varint(what)?;
        let Some(content) = usize::try_from(length).ok().filter(|&length| length <= reader.remaining()) else {
            return Err(ReadError { what, at, problem: Problem::Length(i64::from(length)) });
        };
        let content = Reader::new(reader.take(content, what)?);
        if number == tag {
            found = Some(read(content)?);
        }
    }
    Ok(found)
}
