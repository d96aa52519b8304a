//! POSIX extended expressions as glibc's `regcomp` reads them, with its GNU operators.
//!
//! The order of decisions is that of glibc's parser (`posix/regcomp.c`, `RE_SYNTAX_POSIX_EXTENDED`), so that every expression
//! that glibc accepts is accepted here and means the same.

use super::class::Class;
use super::output::Bounds;
use super::{ExpressionError, Parser};

/// The largest count that glibc allows.
const MOST_REPEATS: u32 = 0x7fff;
/// A name in `[: :]`, `[. .]` or `[= =]` has fewer characters than this.
const CLASS_NAME_END: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    /// A character, with or without a backslash before it.
    Literal(char),
    Alternative,
    Open,
    Close,
    Bracket,
    OpenCount,
    CloseCount,
    Repeat(u32, Option<u32>),
    Any,
    /// A position, which matches no character and cannot be repeated.
    Anchor(&'static str),
    Word {
        negated: bool,
    },
    Space {
        negated: bool,
    },
    BackReference,
    LoneBackslash,
}

struct Posix;

pub(super) fn translate(text: &str) -> Result<String, ExpressionError> {
    Parser::<Posix>::translate(text, Parser::run)
}

impl Parser<Posix> {
    fn run(&mut self) -> Result<(), ExpressionError> {
        loop {
            let start = self.at;
            match self.next() {
                Token::End if self.output.is_open() => return Err(ExpressionError::at(start, "a group has no end")),
                Token::End => return Ok(()),
                Token::Literal(literal) => self.output.literal(literal),
                Token::CloseCount => self.output.literal('}'),
                Token::Alternative => self.output.unrepeatable("|"),
                Token::Open => self.output.open("(?:", start)?,
                Token::Close => {
                    // Without an open group it is a character.
                    if !self.output.close() {
                        self.output.literal(')');
                    }
                }
                Token::Bracket => self.bracket(start)?,
                Token::Any => self.output.raw("(?s:.)"),
                Token::Anchor(text) => self.output.unrepeatable(text),
                Token::Word { negated } => self.output.class(&Class::word(), negated),
                Token::Space { negated } => self.output.class(&Class::space(), negated),
                Token::Repeat(least, most) => self.output.repeat((least, most), start)?,
                Token::OpenCount => {
                    let bounds = self.count(start)?;
                    self.output.repeat(bounds, start)?;
                }
                Token::BackReference => {
                    return Err(ExpressionError::at(start, "a back-reference, which is not supported,"));
                }
                Token::LoneBackslash => return Err(ExpressionError::at(start, "a backslash has nothing behind it")),
            }
        }
    }

    fn next(&mut self) -> Token {
        let Some(first) = self.peek() else { return Token::End };
        self.at += 1;
        match first {
            '\\' => {
                let Some(second) = self.peek() else { return Token::LoneBackslash };
                self.at += 1;
                match second {
                    '1'..='9' => Token::BackReference,
                    '<' => Token::Anchor(r"\b{start}"),
                    '>' => Token::Anchor(r"\b{end}"),
                    'b' => Token::Anchor(r"\b"),
                    'B' => Token::Anchor(r"\B"),
                    '`' => Token::Anchor(r"\A"),
                    '\'' => Token::Anchor(r"\z"),
                    'w' => Token::Word { negated: false },
                    'W' => Token::Word { negated: true },
                    's' => Token::Space { negated: false },
                    'S' => Token::Space { negated: true },
                    other => Token::Literal(other),
                }
            }
            '|' => Token::Alternative,
            '*' => Token::Repeat(0, None),
            '+' => Token::Repeat(1, None),
            '?' => Token::Repeat(0, Some(1)),
            '{' => Token::OpenCount,
            '}' => Token::CloseCount,
            '(' => Token::Open,
            ')' => Token::Close,
            '[' => Token::Bracket,
            '.' => Token::Any,
            '^' => Token::Anchor(r"\A"),
            '$' => Token::Anchor(r"\z"),
            other => Token::Literal(other),
        }
    }

    /// The bounds in braces, after the opening one: `n}`, `n,}`, `,m}`, `n,m}`.
    fn count(&mut self, start: usize) -> Result<Bounds, ExpressionError> {
        let wrong = || ExpressionError::at(start, "no count, as in {2} or {2,5},");
        let (least, end) = self.number().ok_or_else(wrong)?;
        let (least, most) = match (least, end) {
            (None, Token::CloseCount) => return Err(wrong()),
            (Some(count), Token::CloseCount) => (count, Some(count)),
            (least, _) => match self.number().ok_or_else(wrong)? {
                (most, Token::CloseCount) => (least.unwrap_or(0), most),
                _ => return Err(wrong()),
            },
        };
        if most.is_some_and(|most| most < least) {
            return Err(wrong());
        }
        if most.unwrap_or(least) > MOST_REPEATS {
            return Err(ExpressionError::at(start, "a count is larger than 32767"));
        }
        Ok((least, most))
    }

    /// An optional number, and the comma or brace after it; `None` if another token follows.
    fn number(&mut self) -> Option<(Option<u32>, Token)> {
        let mut number: Option<u32> = None;
        loop {
            match self.next() {
                end @ (Token::CloseCount | Token::Literal(',')) => return Some((number, end)),
                Token::Literal(digit @ '0'..='9') => {
                    let digit = digit as u32 - '0' as u32;
                    number = Some((number.unwrap_or(0) * 10 + digit).min(MOST_REPEATS + 1));
                }
                _ => return None,
            }
        }
    }

    // Between brackets a backslash is a character.

    fn bracket(&mut self, start: usize) -> Result<(), ExpressionError> {
        let unfinished = || ExpressionError::at(start, "a bracket has no end");
        let negated = self.peek() == Some('^');
        if negated {
            self.at += 1;
        }
        let mut class = Class::default();
        let mut is_first = true;
        loop {
            match self.peek() {
                None => return Err(unfinished()),
                Some(']') if !is_first => {
                    self.at += 1;
                    break;
                }
                Some(_) => {}
            }
            let element = self.element(start, is_first)?;
            is_first = false;
            let first = match element {
                Element::Class(named) => {
                    class.union(&named);
                    continue;
                }
                Element::One(first) => first,
            };
            let is_range = self.peek() == Some('-') && !self.is_triple_hyphen();
            match self.text.get(self.at + 1) {
                Some(']') | None => class.insert(first, first),
                Some(_) if is_range => {
                    self.at += 1;
                    let Element::One(last) = self.element(start, true)? else {
                        return Err(ExpressionError::at(start, "a class ends a range"));
                    };
                    if last < first {
                        return Err(ExpressionError::at(start, "a range ends before it begins"));
                    }
                    class.insert(first, last);
                }
                Some(_) => class.insert(first, first),
            }
        }
        self.output.class(&class, negated);
        Ok(())
    }

    /// Whether three hyphens follow, which are one hyphen and no range.
    fn is_triple_hyphen(&self) -> bool {
        self.text[self.at..].starts_with(&['-', '-', '-'])
    }

    fn element(&mut self, start: usize, takes_hyphen: bool) -> Result<Element, ExpressionError> {
        let first = self.peek().ok_or_else(|| ExpressionError::at(start, "a bracket has no end"))?;
        if first == '['
            && let Some(&kind @ ('.' | '=' | ':')) = self.text.get(self.at + 1)
        {
            self.at += 2;
            return self.named(start, kind);
        }
        if first == '-' {
            if self.is_triple_hyphen() {
                self.at += 3;
                return Ok(Element::One('-'));
            }
            if !takes_hyphen && self.text.get(self.at + 1).is_some_and(|&next| next != ']') {
                return Err(ExpressionError::at(self.at, "a range begins with a range"));
            }
        }
        self.at += 1;
        Ok(Element::One(first))
    }

    /// `[:alpha:]`, `[=a=]` or `[.a.]`, after its first two characters.
    fn named(&mut self, start: usize, kind: char) -> Result<Element, ExpressionError> {
        let rest = &self.text[self.at..];
        let end = rest.windows(2).position(|pair| pair == [kind, ']']);
        let Some(length) = end.filter(|&length| length < CLASS_NAME_END) else {
            return Err(ExpressionError::at(start, "a name between brackets has no end"));
        };
        let name: String = rest[..length].iter().collect();
        let only = if length == 1 { rest.first().copied() } else { None };
        self.at += length + 2;
        if kind == ':' {
            let class = Class::named(&name);
            return class.map(Element::Class).ok_or_else(|| ExpressionError::at(start, "a class has no known name"));
        }
        // In the C locale a character is equivalent to itself, and there are no others by name.
        match (only, kind) {
            (Some(only), '=') => {
                let mut class = Class::default();
                class.insert(only, only);
                Ok(Element::Class(class))
            }
            (Some(only), _) => Ok(Element::One(only)),
            (None, _) => Err(ExpressionError::at(start, "a collating element is no single character")),
        }
    }
}

/// An element between brackets.
enum Element {
    One(char),
    Class(Class),
}
