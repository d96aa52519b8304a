//! What a translation writes: the same expression in the syntax of the `regex` crate.

use super::class::Class;
use super::{DEEPEST, ExpressionError, LONGEST_NAME};
use std::fmt::Write as _;

/// A repetition: at least, and at most or without end.
type Bounds = (u32, Option<u32>);

/// What a repetition that follows applies to.
struct Atom {
    start: usize,
    /// The end of what is repeated, and how often.
    repeated: Option<(usize, Bounds)>,
}

#[derive(Default)]
pub(super) struct Output {
    text: String,
    atom: Option<Atom>,
    /// Where the open groups begin.
    groups: Vec<usize>,
    /// Groups that were put around repetitions of repetitions.
    wraps: u32,
}

impl Output {
    pub(super) fn literal(&mut self, literal: char) {
        self.begin();
        match literal {
            'A'..='Z' | 'a'..='z' | '0'..='9' => self.text.push(literal),
            other if other.is_ascii() => {
                let _ = write!(self.text, r"\x{:02X}", other as u32);
            }
            other => {
                // One thing for a repetition that follows.
                let _ = write!(self.text, "(?:{other})");
            }
        }
    }

    pub(super) fn class(&mut self, class: &Class, negated: bool) {
        self.begin();
        class.write(negated, &mut self.text);
    }

    /// Something of the `regex` crate's own syntax that can be repeated as it is.
    pub(super) fn raw(&mut self, text: &str) {
        self.begin();
        self.text.push_str(text);
    }

    /// Something that cannot be repeated: flags, an anchor.
    pub(super) fn unrepeatable(&mut self, text: &str) {
        self.text.push_str(text);
        self.atom = None;
    }

    pub(super) fn open(&mut self, text: &str, position: usize) -> Result<(), ExpressionError> {
        if self.groups.len() >= DEEPEST as usize {
            return Err(ExpressionError::at(position, "groups are nested too deeply"));
        }
        self.groups.push(self.text.len());
        self.unrepeatable(text);
        Ok(())
    }

    /// The end of a group; false if none is open.
    pub(super) fn close(&mut self) -> bool {
        let Some(start) = self.groups.pop() else { return false };
        self.text.push(')');
        self.atom = Some(Atom { start, repeated: None });
        true
    }

    pub(super) fn is_open(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Repeats what came last; false if there is nothing to repeat.
    pub(super) fn repeat(&mut self, bounds: Bounds, position: usize) -> Result<bool, ExpressionError> {
        let Some(atom) = &mut self.atom else { return Ok(false) };
        let (least, most) = bounds;
        let mut bounds = (least.min(LONGEST_NAME + 1), most.filter(|&most| most <= LONGEST_NAME));
        match atom.repeated {
            Some((end, before)) if is_simple(before) && is_simple(bounds) => {
                self.text.truncate(end);
                let endless = before.1.and(bounds.1).map(|_| 1);
                bounds = (before.0.min(bounds.0), endless);
            }
            Some(_) => {
                if self.wraps >= DEEPEST {
                    return Err(ExpressionError::at(position, "repetitions are nested too deeply"));
                }
                self.wraps += 1;
                self.text.insert_str(atom.start, "(?:");
                self.text.push(')');
            }
            None => {}
        }
        atom.repeated = Some((self.text.len(), bounds));
        match bounds {
            (0, None) => self.text.push('*'),
            (1, None) => self.text.push('+'),
            (0, Some(1)) => self.text.push('?'),
            (least, Some(most)) => {
                let _ = write!(self.text, "{{{least},{most}}}");
            }
            (least, None) => {
                let _ = write!(self.text, "{{{least},}}");
            }
        }
        Ok(true)
    }

    pub(super) fn end(self) -> String {
        self.text
    }

    fn begin(&mut self) {
        self.atom = Some(Atom { start: self.text.len(), repeated: None });
    }
}

/// `*`, `+` or `?`: a pair of these is one of these.
fn is_simple(bounds: Bounds) -> bool {
    matches!(bounds, (0 | 1, None) | (0, Some(1)))
}
