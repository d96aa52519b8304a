//! The releases of Apache Kafka whose assignors are known.

use thiserror::Error;

/// The members that get one partition more if the partitions cannot be divided evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extras {
    /// The first members.
    First,
    /// Members that have one more already, then the last members (KAFKA-18688).
    Wanted,
}

/// A release of a broker, as far as plans depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 4.0.0: `uniform` gives the first members one more, even if other members have one more already.
    V4_0_0,
    /// 4.0.1 to 4.4: the same code in effect.
    V4,
}

/// A release that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReleaseError {
    /// 3.x.
    #[error(
        "broker {0:?}: the assignors of 3.x are a preview with another algorithm, which may end in an exception; give a release \
         from 4.0.0 to 4.4"
    )]
    Preview(String),
    /// Not a release from 4.0.0 to 4.4.
    #[error("broker {0:?} is no release whose assignors are known; give one from 4.0.0 to 4.4")]
    Unknown(String),
}

/// The newest minor release whose classes were compared.
const NEWEST_MINOR: u32 = 4;

impl Release {
    /// The release with this number: `4.3` or `4.3.1`. `4.0` is the newest of its patches.
    ///
    /// # Errors
    /// No release has this number, or its assignors are not known.
    pub fn parse(text: &str) -> Result<Self, ReleaseError> {
        let unknown = || ReleaseError::Unknown(text.to_owned());
        let number = |part: &str| {
            let digits = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| digits)
        };
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        match parts.ok_or_else(unknown)?.as_slice() {
            [3, _] | [3, _, _] => Err(ReleaseError::Preview(text.to_owned())),
            [4, 0, 0] => Ok(Release::V4_0_0),
            [4, minor] | [4, minor, _] if *minor <= NEWEST_MINOR => Ok(Release::V4),
            _ => Err(unknown()),
        }
    }

    pub(crate) fn extras(self) -> Extras {
        match self {
            Release::V4_0_0 => Extras::First,
            Release::V4 => Extras::Wanted,
        }
    }
}
