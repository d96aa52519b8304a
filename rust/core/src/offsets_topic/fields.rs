//! The fields of a value: compact from the first flexible version on, not compact before.

use crate::protocol::Utf8;
use crate::protocol::reader::{ReadError, Reader};

/// A reader with the choice between the two forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) reader: Reader<'a>,
    flexible: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(reader: Reader<'a>, flexible: bool) -> Self {
        Self { reader, flexible }
    }

    #[inline]
    pub(super) fn string(&mut self, what: &'static str) -> Result<Utf8<'a>, ReadError> {
        // Most strings are those of keys and old commits, none of which is compact.
        if self.flexible {
            self.reader.required(what, |reader| reader.utf8(true, what))
        } else {
            self.reader.string(what)
        }
    }

    pub(super) fn nullable_string(&mut self, what: &'static str) -> Result<Option<Utf8<'a>>, ReadError> {
        self.reader.utf8(self.flexible, what)
    }

    pub(super) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], ReadError> {
        let flexible = self.flexible;
        self.reader.required(what, |reader| reader.data(flexible, what))
    }

    /// The count of an array whose elements have at least `least` bytes each.
    pub(super) fn count(&mut self, least: usize, what: &'static str) -> Result<usize, ReadError> {
        let flexible = self.flexible;
        self.reader.required(what, |reader| reader.elements(flexible, least, what))
    }

    /// Reads the end of a structure: skips the tagged fields of a flexible one.
    pub(super) fn end(&mut self, what: &'static str) -> Result<(), ReadError> {
        if self.flexible { self.reader.skip_tagged_fields(what) } else { Ok(()) }
    }
}

/// Reads the tagged fields at the end of a flexible structure. Returns the content of the field `tag`, if present; of
/// duplicates, the last one.
#[inline]
pub(super) fn tagged<'a, T>(
    reader: &mut Reader<'a>,
    tag: u32,
    what: &'static str,
    mut read: impl FnMut(Reader<'a>) -> Result<T, ReadError>,
) -> Result<Option<T>, ReadError> {
    let mut found = None;
    reader.tagged_fields(what, |number, content| {
        if number == tag {
            found = Some(read(content)?);
        }
        Ok(())
    })?;
    Ok(found)
}
