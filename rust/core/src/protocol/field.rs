//! Reads and writes fields. The `message!` macro derives both directions of a message from one declaration, so that
//! they always agree.

use super::ErrorCode;
use crate::protocol::reader::{ReadError, Reader};
use crate::protocol::writer::{Write, WriteError};

/// The parameters of a message's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The version of the request, which its response shares.
    pub version: i16,
    /// Whether strings, bytes and arrays are compact, and structures end with tagged fields.
    pub flexible: bool,
}

/// A value that has one form per [`Format`].
pub trait Field: Sized {
    /// Reads the value; `what` names it in errors.
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError>;

    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>, format: Format, what: &'static str) -> Result<(), WriteError>;
}

/// A [`Field`] whose type has a null form. In a field of type `T` null is an error; in `Option<T>` it is `None`.
pub trait Nullable: Sized {
    /// Reads the value or null.
    fn read_nullable(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Option<Self>, ReadError>;

    /// Appends the value or null.
    fn write_nullable(
        value: Option<&Self>,
        out: &mut Vec<u8>,
        format: Format,
        what: &'static str,
    ) -> Result<(), WriteError>;
}

impl<T: Nullable> Field for Option<T> {
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError> {
        T::read_nullable(reader, format, what)
    }

    fn write(&self, out: &mut Vec<u8>, format: Format, what: &'static str) -> Result<(), WriteError> {
        T::write_nullable(self.as_ref(), out, format, what)
    }
}

macro_rules! numbers {
    ($($ty:ty => $name:ident;)*) => {$(
        impl Field for $ty {
            fn read(reader: &mut Reader<'_>, _: Format, what: &'static str) -> Result<Self, ReadError> {
                reader.$name(what)
            }

            fn write(&self, out: &mut Vec<u8>, _: Format, _: &'static str) -> Result<(), WriteError> {
                Write::$name(out, *self);
                Ok(())
            }
        }
    )*};
}

numbers! {
    bool => bool;
    i8 => i8;
    i16 => i16;
    i32 => i32;
    i64 => i64;
}

impl Field for ErrorCode {
    fn read(reader: &mut Reader<'_>, _: Format, what: &'static str) -> Result<Self, ReadError> {
        reader.i16(what).map(Self)
    }

    fn write(&self, out: &mut Vec<u8>, _: Format, _: &'static str) -> Result<(), WriteError> {
        out.i16(self.0);
        Ok(())
    }
}

/// UUID.
impl Field for [u8; 16] {
    fn read(reader: &mut Reader<'_>, _: Format, what: &'static str) -> Result<Self, ReadError> {
        let mut id = [0; 16];
        id.copy_from_slice(reader.take(16, what)?);
        Ok(id)
    }

    fn write(&self, out: &mut Vec<u8>, _: Format, _: &'static str) -> Result<(), WriteError> {
        out.raw(self);
        Ok(())
    }
}

fn not_null<T: Nullable>(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<T, ReadError> {
    reader.required(what, |reader| T::read_nullable(reader, format, what))
}

impl Nullable for String {
    fn read_nullable(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Option<Self>, ReadError> {
        let text = reader.text(format.flexible, what)?;
        reader.hold(text.map_or(0, str::len), what)?;
        Ok(text.map(str::to_owned))
    }

    fn write_nullable(
        value: Option<&Self>,
        out: &mut Vec<u8>,
        format: Format,
        what: &'static str,
    ) -> Result<(), WriteError> {
        if !format.flexible {
            return out.nullable_string(value.map(String::as_str), what);
        }
        let length = value.map_or(0, String::len);
        if length > i16::MAX as usize {
            return Err(WriteError::LongString { what, length });
        }
        out.compact_count(value.map(String::len), what)?;
        out.raw(value.map_or(&[], String::as_bytes));
        Ok(())
    }
}

impl Field for String {
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError> {
        not_null(reader, format, what)
    }

    fn write(&self, out: &mut Vec<u8>, format: Format, what: &'static str) -> Result<(), WriteError> {
        Self::write_nullable(Some(self), out, format, what)
    }
}

/// BYTES.
impl Nullable for Vec<u8> {
    fn read_nullable(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Option<Self>, ReadError> {
        let bytes = reader.data(format.flexible, what)?;
        reader.hold(bytes.map_or(0, <[u8]>::len), what)?;
        Ok(bytes.map(<[u8]>::to_vec))
    }

    fn write_nullable(
        value: Option<&Self>,
        out: &mut Vec<u8>,
        format: Format,
        what: &'static str,
    ) -> Result<(), WriteError> {
        if !format.flexible {
            return out.nullable_bytes(value.map(Vec::as_slice), what);
        }
        out.compact_count(value.map(Vec::len), what)?;
        out.raw(value.map_or(&[], Vec::as_slice));
        Ok(())
    }
}

impl Field for Vec<u8> {
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError> {
        not_null(reader, format, what)
    }

    fn write(&self, out: &mut Vec<u8>, format: Format, what: &'static str) -> Result<(), WriteError> {
        Self::write_nullable(Some(self), out, format, what)
    }
}

/// ARRAY.
impl<T: Field> Nullable for Vec<T> {
    fn read_nullable(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Option<Self>, ReadError> {
        // Every element of the protocol has at least one byte.
        let Some(count) = reader.elements(format.flexible, 1, what)? else { return Ok(None) };
        // An element in memory can be much larger than its smallest form on the wire. Without the allowance, an array
        // of one-byte elements would reserve a hundred times the memory of the frame. The capacity is exact, because a
        // vector that grows may reserve twice the memory of its elements.
        reader.hold(count.saturating_mul(size_of::<T>()), what)?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(T::read(reader, format, what)?);
        }
        Ok(Some(elements))
    }

    fn write_nullable(
        value: Option<&Self>,
        out: &mut Vec<u8>,
        format: Format,
        what: &'static str,
    ) -> Result<(), WriteError> {
        match value {
            _ if format.flexible => out.compact_count(value.map(Vec::len), what)?,
            Some(elements) => out.count(elements.len(), what)?,
            None => out.i32(-1),
        }
        value.into_iter().flatten().try_for_each(|element| element.write(out, format, what))
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(reader: &mut Reader<'_>, format: Format, what: &'static str) -> Result<Self, ReadError> {
        not_null(reader, format, what)
    }

    fn write(&self, out: &mut Vec<u8>, format: Format, what: &'static str) -> Result<(), WriteError> {
        Self::write_nullable(Some(self), out, format, what)
    }
}

/// Declares a structure of the protocol. Each field has its range of versions, and a default for the other versions
/// (`Default::default()` unless given). In flexible versions the structure ends with tagged fields: the reader skips
/// them, the writer writes none.
///
/// Outside its range of versions a field is not written, and its value is lost. The caller must choose a version that
/// has the fields it needs.
///
/// ```text
/// message! {
///     /// The documentation of the structure.
///     pub struct Name {
///         /// The documentation of the field.
///         timeout_ms: i32 [1..] = -1,
///     }
/// }
/// ```
macro_rules! message {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident : $ty:ty [$versions:expr] $(= $default:expr)?,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::protocol::field::or_default!($($default)?),)* }
            }
        }

        impl $crate::protocol::field::Field for $name {
            fn read(
                reader: &mut $crate::protocol::reader::Reader<'_>,
                format: $crate::protocol::field::Format,
                what: &'static str,
            ) -> Result<Self, $crate::protocol::reader::ReadError> {
                let mut message = Self::default();
                $(if ($versions).contains(&format.version) {
                    message.$field = $crate::protocol::field::Field::read(reader, format, stringify!($field))?;
                })*
                if format.flexible {
                    reader.skip_tagged_fields(what)?;
                }
                Ok(message)
            }

            fn write(
                &self,
                out: &mut Vec<u8>,
                format: $crate::protocol::field::Format,
                _: &'static str,
            ) -> Result<(), $crate::protocol::writer::WriteError> {
                $(if ($versions).contains(&format.version) {
                    $crate::protocol::field::Field::write(&self.$field, out, format, stringify!($field))?;
                })*
                if format.flexible {
                    $crate::protocol::writer::Write::unsigned_varint(out, 0);
                }
                Ok(())
            }
        }

        #[cfg(test)]
        impl $crate::protocol::samples::Sample for $name {
            fn sample(format: $crate::protocol::field::Format) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy;
                let mut message = proptest::strategy::Just(Self::default()).boxed();
                $(if ($versions).contains(&format.version) {
                    let field = <$ty as $crate::protocol::samples::Sample>::sample(format);
                    message = (message, field).prop_map(|(mut message, field)| {
                        message.$field = field;
                        message
                    }).boxed();
                })*
                message
            }
        }
    )*};
}

macro_rules! or_default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

/// Declares the messages that are bodies of each request.
macro_rules! bodies {
    ($($key:ident: $($body:ty),*;)*) => {$($(
        impl $crate::protocol::Body for $body {
            const KEY: $crate::protocol::ApiKey = $crate::protocol::ApiKey::$key;
        }
    )*)*};
}

pub(crate) use {bodies, message, or_default};
