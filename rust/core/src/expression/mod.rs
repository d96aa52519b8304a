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

use output::Output;
use regex::bytes::{Regex, RegexBuilder};
use std::marker::PhantomData;
use thiserror::Error;

/// The longest name of a topic. Larger counts of repetitions are all equivalent, since no name is longer, and are cut off.
const LONGEST_NAME: u32 = 249;

/// The largest depth of nested groups: the compiler recurses.
const DEEPEST: u32 = 200;

/// The limits of an application's own expression: an alternation of tens of thousands of names fits.
const OWN: Limits = Limits { text: 4 << 20, compiled: 64 << 20, cache: 4 << 20 };

/// The limits of an expression in a request. Its sender is not trusted: the time of matching grows with the product of the size of
/// the compiled expression and the length of the name.
const REQUESTED: Limits = Limits { text: 16 << 10, compiled: 64 << 10, cache: 1 << 20 };

/// Bytes of the text, of the compiled program, and of the states kept while matching.
struct Limits {
    text: usize,
    compiled: usize,
    cache: usize,
}

/// Why an expression is refused, and at which character.
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
    /// POSIX extended syntax with GNU's additions, found anywhere in a name. This is how librdkafka reads a subscription, by
    /// `regcomp` of the C library, in the C locale. Back-references are refused, since no engine matches them in linear time.
    ///
    /// # Errors
    ///
    /// An expression that `regcomp` refuses, that has back-references or that is too large.
    pub fn posix(text: &str) -> Result<Self, ExpressionError> {
        compile(text, &OWN, posix::translate)
    }

    /// RE2's syntax, matched against the whole name. This is how a broker reads the subscription of a KIP-848 member.
    ///
    /// # Errors
    ///
    /// An expression that RE2 refuses, or that is too large for an expression in a request.
    pub fn re2(text: &str) -> Result<Self, ExpressionError> {
        let whole = |text: &str| Ok(format!(r"\A(?:{})\z", re2::translate(text)?));
        compile(text, &REQUESTED, whole)
    }

    /// RE2's syntax, found anywhere in a name: an application's own choice of groups or topics.
    ///
    /// # Errors
    ///
    /// An expression that RE2 refuses, or that is too large.
    pub fn search(text: &str) -> Result<Self, ExpressionError> {
        compile(text, &OWN, re2::translate)
    }

    /// Whether a name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

/// An expression in the syntax `S`, read up to `at`, and the translation of that part.
struct Parser<S> {
    text: Vec<char>,
    at: usize,
    output: Output,
    syntax: PhantomData<S>,
}

impl<S> Parser<S> {
    /// The whole translation, by `read`, which reads the text to its end.
    fn translate(
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<(), ExpressionError>,
    ) -> Result<String, ExpressionError> {
        let mut parser = Self { text: text.chars().collect(), at: 0, output: Output::default(), syntax: PhantomData };
        read(&mut parser)?;
        Ok(parser.output.end())
    }

    /// The next character, which stays unread.
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
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
