//! RE2's syntax, which brokers read by RE2/J.
//!
//! The `regex` crate descends from RE2, but differs between brackets, in braces without a count, in quotation, octal numbers and
//! Unicode classes. So all of an expression is read here, and the crate gets only syntax that both read alike.

use super::class::Class;
use super::output::Bounds;
use super::{ExpressionError, Parser};

/// The largest count that RE2 allows.
const MOST_REPEATS: u32 = 1000;

struct Re2;

pub(super) fn translate(text: &str) -> Result<String, ExpressionError> {
    Parser::<Re2>::translate(text, Parser::run)
}

impl Parser<Re2> {
    fn run(&mut self) -> Result<(), ExpressionError> {
        while let Some(first) = self.peek() {
            let start = self.at;
            self.at += 1;
            match first {
                '|' => self.output.unrepeatable("|"),
                '(' => self.open(start)?,
                ')' => {
                    if !self.output.close() {
                        return Err(ExpressionError::at(start, "no group is open"));
                    }
                }
                '[' => self.bracket(start)?,
                '.' => self.output.raw("."),
                // Unlike those of POSIX, these anchors can be repeated.
                '^' => self.output.raw("(?:^)"),
                '$' => self.output.raw("(?:$)"),
                '*' => self.repeat((0, None), start)?,
                '+' => self.repeat((1, None), start)?,
                '?' => self.repeat((0, Some(1)), start)?,
                '{' => match self.count() {
                    Some(bounds) => self.repeat(bounds, start)?,
                    None => self.output.literal('{'),
                },
                '\\' => self.escape(start)?,
                other => self.output.literal(other),
            }
        }
        if self.output.is_open() {
            return Err(ExpressionError::at(self.text.len(), "a group has no end"));
        }
        Ok(())
    }

    /// Reads `wanted` if the unread text begins with it. Returns whether it does.
    fn take(&mut self, wanted: &str) -> bool {
        let wanted: Vec<char> = wanted.chars().collect();
        let found = self.text[self.at..].starts_with(&wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn repeat(&mut self, (least, most): Bounds, start: usize) -> Result<(), ExpressionError> {
        if most.unwrap_or(least) > MOST_REPEATS || most.is_some_and(|most| most < least) {
            return Err(ExpressionError::at(start, "a count is out of range"));
        }
        // A reluctant repetition matches the same names.
        self.take("?");
        self.output.repeat((least, most), start)
    }

    /// The bounds in braces, after the opening one: `n}`, `n,}` or `n,m}`. `None` for any other text, which stays unread.
    fn count(&mut self) -> Option<Bounds> {
        let start = self.at;
        let found = self.bounds();
        if found.is_none() {
            self.at = start;
        }
        found
    }

    fn bounds(&mut self) -> Option<Bounds> {
        let least = self.number()?;
        let most = if !self.take(",") {
            Some(least)
        } else if self.peek() == Some('}') {
            None
        } else {
            Some(self.number()?)
        };
        self.take("}").then_some((least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            number = Some((number.unwrap_or(0) * 10 + digit).min(MOST_REPEATS + 1));
            self.at += 1;
        }
        number
    }

    /// A group, or flags, after the parenthesis.
    fn open(&mut self, start: usize) -> Result<(), ExpressionError> {
        if !self.take("?") {
            return self.output.open("(?:", start);
        }
        if self.take("P<") || self.take("<") {
            let rest = &self.text[self.at..];
            let length = rest.iter().take_while(|&&each| each.is_ascii_alphanumeric() || each == '_').count();
            self.at += length;
            if length == 0 || !self.take(">") {
                return Err(ExpressionError::at(start, "a group has a wrong name"));
            }
            return self.output.open("(?:", start);
        }
        let flags: String = self.text[self.at..].iter().take_while(|&&each| "imsU-".contains(each)).collect();
        self.at += flags.len();
        let is_known = flags.matches('-').count() <= 1 && !flags.ends_with('-');
        if is_known && self.take(":") {
            self.output.open(&format!("(?{}:", distinct(&flags)), start)
        } else if is_known && self.take(")") {
            // RE2 accepts `(?)`, which sets no flag; the `regex` crate refuses it.
            let set = if flags.is_empty() { "(?:)".to_owned() } else { format!("(?{})", distinct(&flags)) };
            self.output.unrepeatable(&set);
            Ok(())
        } else {
            Err(ExpressionError::at(start, "a group of an unknown kind"))
        }
    }

    fn escape(&mut self, start: usize) -> Result<(), ExpressionError> {
        match self.peek() {
            Some('A') => self.anchor(r"(?:\A)"),
            Some('z') => self.anchor(r"(?:\z)"),
            Some('b') => self.anchor(r"(?:\b)"),
            Some('B') => self.anchor(r"(?:\B)"),
            Some('C') => self.anchor("(?s:.)"),
            Some('Q') => {
                self.at += 1;
                while self.at < self.text.len() && !self.take(r"\E") {
                    self.output.literal(self.text[self.at]);
                    self.at += 1;
                }
            }
            _ => match self.class_escape(start)? {
                Some((class, negated)) => self.output.class(&class, negated),
                None => {
                    let literal = self.character(start)?;
                    self.output.literal(literal);
                }
            },
        }
        Ok(())
    }

    fn anchor(&mut self, text: &str) {
        self.at += 1;
        self.output.raw(text);
    }

    /// A class such as `\d` or `\pL`, after the backslash; `None` for any other escape.
    fn class_escape(&mut self, start: usize) -> Result<Option<(Class, bool)>, ExpressionError> {
        let Some(letter) = self.peek() else { return Ok(None) };
        let class = match letter.to_ascii_lowercase() {
            'd' => Class::of(|byte| byte.is_ascii_digit()),
            's' => Class::of(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')),
            'w' => Class::word(),
            'p' => {
                self.at += 1;
                let (class, negated) = self.property(start)?;
                return Ok(Some((class, negated ^ (letter == 'P'))));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some((class, letter.is_ascii_uppercase())))
    }

    /// The ASCII characters of a Unicode property by its name, and whether they are negated.
    fn property(&mut self, start: usize) -> Result<(Class, bool), ExpressionError> {
        let wrong = || ExpressionError::at(start, "a Unicode class without a name");
        if !self.take("{") {
            let name = self.peek().filter(char::is_ascii_uppercase).ok_or_else(wrong)?;
            self.at += 1;
            return Ok((property(&name.to_string()), false));
        }
        let negated = self.take("^");
        let name: String = self.text[self.at..].iter().take_while(|&&each| each != '}').collect();
        self.at += name.chars().count();
        if name.is_empty() || !self.take("}") {
            return Err(wrong());
        }
        Ok((property(&name), negated))
    }

    /// A character by its escape, after the backslash.
    fn character(&mut self, start: usize) -> Result<char, ExpressionError> {
        let wrong = || ExpressionError::at(start, "an escape that is not known");
        let letter = self.peek().ok_or_else(wrong)?;
        self.at += 1;
        match letter {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' if self.take("{") => {
                let digits: String = self.text[self.at..].iter().take_while(|&&each| each != '}').collect();
                self.at += digits.chars().count();
                if !self.take("}") {
                    return Err(wrong());
                }
                code(&digits, 16).ok_or_else(wrong)
            }
            'x' => {
                let digits: String = self.text[self.at..].iter().take(2).collect();
                self.at += digits.chars().count();
                code(&digits, 16).filter(|_| digits.len() == 2).ok_or_else(wrong)
            }
            // One octal digit alone would be a back-reference.
            '0'..='7' if letter == '0' || self.peek().is_some_and(|next| next.is_digit(8)) => {
                let more = self.text[self.at..].iter().take(2).take_while(|next| next.is_digit(8));
                let digits: String = std::iter::once(&letter).chain(more).collect();
                self.at += digits.len() - 1;
                code(&digits, 8).ok_or_else(wrong)
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Ok(other),
            _ => Err(wrong()),
        }
    }

    fn bracket(&mut self, start: usize) -> Result<(), ExpressionError> {
        let unfinished = || ExpressionError::at(start, "a bracket has no end");
        let negated = self.take("^");
        let mut class = Class::default();
        let mut is_first = true;
        loop {
            if self.peek().ok_or_else(unfinished)? == ']' && !is_first {
                self.at += 1;
                break;
            }
            is_first = false;
            if let Some(named) = self.named(start)? {
                class.union(&named);
                continue;
            }
            let first = self.element(start)?;
            let is_range = self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|&next| next != ']');
            let mut last = first;
            if is_range {
                self.at += 1;
                last = self.element(start)?;
                if last < first {
                    return Err(ExpressionError::at(start, "a range ends before it begins"));
                }
            }
            class.insert(first, last);
        }
        self.output.class(&class, negated);
        Ok(())
    }

    /// A class within brackets: `[:alpha:]`, `[:^alpha:]`, `\d`, `\pL`.
    fn named(&mut self, start: usize) -> Result<Option<Class>, ExpressionError> {
        let rest = &self.text[self.at..];
        if rest.starts_with(&['[', ':']) {
            let Some(length) = rest[2..].windows(2).position(|pair| pair == [':', ']']) else { return Ok(None) };
            let name: String = rest[2..2 + length].iter().collect();
            self.at += length + 4;
            let (name, negated) = name.strip_prefix('^').map_or((name.as_str(), false), |name| (name, true));
            let class = match name {
                "word" => Class::word(),
                "ascii" => Class::of(|_| true),
                other => Class::named(other).ok_or_else(|| ExpressionError::at(start, "a class has no known name"))?,
            };
            return Ok(Some(if negated { class.complement() } else { class }));
        }
        if rest.first() != Some(&'\\') {
            return Ok(None);
        }
        self.at += 1;
        let found = self.class_escape(start)?;
        if found.is_none() {
            self.at -= 1;
        }
        Ok(found.map(|(class, negated)| if negated { class.complement() } else { class }))
    }

    fn element(&mut self, start: usize) -> Result<char, ExpressionError> {
        let first = self.peek().ok_or_else(|| ExpressionError::at(start, "a bracket has no end"))?;
        self.at += 1;
        if first == '\\' { self.character(start) } else { Ok(first) }
    }
}

/// The same flags, each once: the `regex` crate refuses repetitions. A flag on both sides of the hyphen is off.
fn distinct(flags: &str) -> String {
    let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
    let of = |test: &dyn Fn(char) -> bool| "imsU".chars().filter(|&flag| test(flag)).collect::<String>();
    let on = of(&|flag| on.contains(flag) && !off.contains(flag));
    let off = of(&|flag| off.contains(flag));
    if off.is_empty() { on } else { format!("{on}-{off}") }
}

fn code(digits: &str, radix: u32) -> Option<char> {
    let is_number = !digits.is_empty() && digits.chars().all(|each| each.is_digit(radix));
    char::from_u32(u32::from_str_radix(digits, radix).ok().filter(|_| is_number)?)
}

/// The ASCII characters of a general category or a script. Most have none.
fn property(name: &str) -> Class {
    Class::of(|byte| match name {
        "Any" => true,
        "L" | "Latin" => byte.is_ascii_alphabetic(),
        "Lu" => byte.is_ascii_uppercase(),
        "Ll" => byte.is_ascii_lowercase(),
        "N" | "Nd" => byte.is_ascii_digit(),
        "P" => byte.is_ascii_punctuation() && !is_symbol(byte),
        "Pc" => byte == b'_',
        "Pd" => byte == b'-',
        "Ps" => matches!(byte, b'(' | b'[' | b'{'),
        "Pe" => matches!(byte, b')' | b']' | b'}'),
        "Po" => byte.is_ascii_punctuation() && !is_symbol(byte) && !b"_-()[]{}".contains(&byte),
        "S" => is_symbol(byte),
        "Sc" => byte == b'$',
        "Sk" => matches!(byte, b'^' | b'`'),
        "Sm" => matches!(byte, b'+' | b'<' | b'=' | b'>' | b'|' | b'~'),
        "Z" | "Zs" => byte == b' ',
        "C" | "Cc" => byte.is_ascii_control(),
        "Common" => !byte.is_ascii_alphabetic(),
        _ => false,
    })
}

fn is_symbol(byte: u8) -> bool {
    b"$^`+<=>|~".contains(&byte)
}
