//! Regular expressions over names of topics, matched in linear time.
//!
//! An expression is translated from its own syntax into that of the `regex` crate, whose matching never backtracks. Names are
//! ASCII, as Kafka demands of topics, so no Unicode tables are needed: a character beyond ASCII is a literal and in no class.

mod class;
mod output;
mod posix;
mod re2;
#[cfg(test)]
mod tests;

use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// The longest name of a topic. Longer repetitions are cut to it, which no name can tell.
const LONGEST_NAME: u32 = 249;

/// How deep groups may be nested: the compiler recurses.
const DEEPEST: u32 = 200;

/// What an expression of the application itself may take: an alternation of tens of thousands of names fits.
const OWN: Limits = Limits { text: 4 << 20, compiled: 64 << 20, cache: 4 << 20 };

/// What an expression of a stranger may take. Matching costs the product of this and of the names.
const STRANGERS: Limits = Limits { text: 16 << 10, compiled: 64 << 10, cache: 1 << 20 };

/// Bytes of the text, of the compiled program, and of the states kept while matching.
struct Limits {
    text: usize,
    compiled: usize,
    cache: usize,
}

/// An expression that is not taken; the text says why, and at which character.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ExpressionError(String);

impl ExpressionError {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    fn at(position: usize, reason: &str) -> Self {
        Self(format!("{reason} at character {}", position + 1))
    }
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression(Regex);

impl Expression {
    /// POSIX extended syntax with GNU's additions, found anywhere in a name: how librdkafka reads a subscription, by `regcomp` of the
    /// C library, in the C locale. Back-references are refused, since no engine matches them in linear time.
    ///
    /// # Errors
    ///
    /// What `regcomp` refuses, back-references, and what is too large.
    pub fn posix(text: &str) -> Result<Self, ExpressionError> {
        compile(text, &OWN, posix::translate)
    }

    /// RE2's syntax, matched against the whole name: how a broker reads the subscription of a KIP-848 member.
    ///
    /// # Errors
    ///
    /// What RE2 refuses, and what is too large for an expression of a stranger.
    pub fn re2(text: &str) -> Result<Self, ExpressionError> {
        let whole = |text: &str| Ok(format!(r"\A(?:{})\z", re2::translate(text)?));
        compile(text, &STRANGERS, whole)
    }

    /// RE2's syntax, found anywhere in a name: what an application asks for itself, of groups or topics.
    ///
    /// # Errors
    ///
    /// What RE2 refuses, and what is too large.
    pub fn search(text: &str) -> Result<Self, ExpressionError> {
        compile(text, &OWN, re2::translate)
    }

    /// Whether a name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

fn compile(
    text: &str,
    limits: &Limits,
    translate: impl Fn(&str) -> Result<String, ExpressionError>,
) -> Result<Expression, ExpressionError> {
    if text.len() > limits.text {
        return Err(ExpressionError::new(format!("it has {} bytes, more than {}", text.len(), limits.text)));
    }
    RegexBuilder::new(&translate(text)?)
        .unicode(false)
        .size_limit(limits.compiled)
        .dfa_size_limit(limits.cache)
        .nest_limit(4 * DEEPEST)
        .build()
        .map(Expression)
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => {
                ExpressionError::new(format!("compiled it is larger than {limit} bytes"))
            }
            other => ExpressionError::new(other.to_string()),
        })
}
