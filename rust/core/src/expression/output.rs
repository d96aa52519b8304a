//! The output of a translation: the same expression in the syntax of the `regex` crate.

use super::class::Class;
use super::{DEEPEST, ExpressionError, LONGEST_NAME};
use std::fmt::Write as _;

/// The least and the most repetitions; `None` for no end.
pub(super) type Bounds = (u32, Option<u32>);

/// The part that a following repetition applies to.
struct Atom {
    start: usize,
    /// The end of the repeated part and its bounds; `None` without a repetition.
    repeated: Option<(usize, Bounds)>,
}

#[derive(Default)]
pub(super) struct Output {
    text: String,
    atom: Option<Atom>,
    /// The starts of the open groups.
    groups: Vec<usize>,
    /// The number of groups put around repetitions that are repeated again. It is limited, as the compiler recurses into them.
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
                // The bytes of the character form one group. Otherwise a following repetition would apply to its last byte only.
                let _ = write!(self.text, "(?:{other})");
            }
        }
    }

    pub(super) fn class(&mut self, class: &Class, negated: bool) {
        self.begin();
        class.write(negated, &mut self.text);
    }

    /// A part in the `regex` crate's own syntax that can be repeated.
    pub(super) fn raw(&mut self, text: &str) {
        self.begin();
        self.text.push_str(text);
    }

    /// A part that cannot be repeated: flags, an anchor.
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

    /// Repeats the last part.
    pub(super) fn repeat(&mut self, bounds: Bounds, position: usize) -> Result<(), ExpressionError> {
        let Some(atom) = &mut self.atom else {
            return Err(ExpressionError::at(position, "there is nothing to repeat"));
        };
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
        Ok(())
    }

    pub(super) fn end(self) -> String {
        self.text
    }

    fn begin(&mut self) {
        self.atom = Some(Atom { start: self.text.len(), repeated: None });
    }
}

/// Whether the bounds are `*`, `+` or `?`. Two of these in a row mean the same as one of these.
fn is_simple(bounds: Bounds) -> bool {
    matches!(bounds, (0 | 1, None) | (0, Some(1)))
}
