//! Random messages for the round-trip tests.

use super::ErrorCode;
use super::field::{Field, Format};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

/// Values that a [`Format`] can carry.
pub(crate) trait Sample: Sized + std::fmt::Debug + Clone + 'static {
    fn sample(format: Format) -> BoxedStrategy<Self>;
}

macro_rules! any_number {
    ($($ty:ty),*) => {$(
        impl Sample for $ty {
            fn sample(_: Format) -> BoxedStrategy<Self> {
                any::<$ty>().boxed()
            }
        }
    )*};
}

any_number!(bool, i8, i16, i32, i64, [u8; 16]);

impl Sample for ErrorCode {
    fn sample(_: Format) -> BoxedStrategy<Self> {
        any::<i16>().prop_map(ErrorCode).boxed()
    }
}

impl Sample for String {
    fn sample(_: Format) -> BoxedStrategy<Self> {
        // Sometimes more than 127 bytes, because then the compact length takes a second byte.
        prop_oneof![8 => "[a-zé.]{0,8}", 1 => "x{120,140}"].boxed()
    }
}

impl Sample for Vec<u8> {
    fn sample(_: Format) -> BoxedStrategy<Self> {
        vec(any::<u8>(), 0..20).boxed()
    }
}

impl<T: Field + Sample> Sample for Vec<T> {
    fn sample(format: Format) -> BoxedStrategy<Self> {
        vec(T::sample(format), 0..4).boxed()
    }
}

impl<T: super::field::Nullable + Sample> Sample for Option<T> {
    fn sample(format: Format) -> BoxedStrategy<Self> {
        prop_oneof![1 => Just(None), 3 => T::sample(format).prop_map(Some)].boxed()
    }
}
