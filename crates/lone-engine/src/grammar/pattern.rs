//! Patterns of schemas, which are ECMAScript's, as the regular expressions that grammars take, which are Rust's.
//!
//! A pattern is read as `new RegExp(pattern, "u")` reads it, and as browsers do where that allows more (`\-`, a lone
//! `}`). What comes out says the same in signs that mean one thing only: code points in hexadecimal, classes, `(?:…)`.
//! What grammars cannot follow is refused: assertions other than `^` and `$` at the ends, references back, modifiers.
//!
//! No class has U+0000, which answers never write: llguidance takes a class of all control characters for one that has
//! `"` and `\` as well.

use std::iter::Peekable;
use std::str::Chars;

/// Groups within groups.
const MOST_DEPTH: usize = 50;
/// Most that a quantifier may count to.
const MOST_REPEATS: u32 = 100_000;
/// Anything at all, before and after what is looked for.
const ANYTHING: &str = "(?s:.*)";

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Z_a-z";
/// What ECMAScript takes for white space.
const SPACE: &str =
    r"\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
const LINE_ENDS: &str = r"\x{a}\x{d}\x{2028}\x{2029}";

/// What stands side by side.
type Sequence = Vec<Term>;

enum Term {
    Start,
    End,
    /// In Rust's syntax, repeated or not.
    Atom(String),
    /// Alternatives, and how often.
    Group(Vec<Sequence>, String),
}

/// `pattern` in Rust's syntax, anchored at both ends.
///
/// # Errors
/// What is wrong with it, or cannot be followed.
pub(super) fn to_rust(pattern: &str) -> Result<String, String> {
    let mut parser = Parser { rest: pattern.chars().peekable(), depth: 0 };
    let alternatives = parser.alternatives()?;
    match parser.rest.next() {
        None => Ok(format!("^{}$", written(&alternatives, true, true)?)),
        Some(_) => Err("has a `)` too many".into()),
    }
}

/// `alternatives` as a group, with anything before and after those that are not anchored, at the ends of a pattern.
fn written(alternatives: &[Sequence], at_start: bool, at_end: bool) -> Result<String, String> {
    let written: Result<Vec<_>, _> =
        alternatives.iter().map(|sequence| written_sequence(sequence, at_start, at_end)).collect();
    Ok(format!("(?:{})", written?.join("|")))
}

fn written_sequence(mut terms: &[Term], at_start: bool, at_end: bool) -> Result<String, String> {
    let is_start = |term: &&Term| at_start && matches!(term, Term::Start);
    let starts = terms.iter().take_while(is_start).count();
    terms = &terms[starts..];
    let is_end = |term: &&Term| at_end && matches!(term, Term::End);
    let ends = terms.iter().rev().take_while(is_end).count();
    terms = &terms[..terms.len() - ends];
    let (at_start, at_end) = (at_start && starts == 0, at_end && ends == 0);
    let is_open = |term: Option<&Term>| matches!(term, Some(Term::Group(_, repeats)) if repeats.is_empty());
    let (opens, closes) = (is_open(terms.first()), is_open(terms.last()));
    let mut text = String::new();
    if at_start && !opens {
        text.push_str(ANYTHING);
    }
    for (i, term) in terms.iter().enumerate() {
        match term {
            Term::Start | Term::End => {
                return Err("has `^` or `$` elsewhere than at its ends, which is not supported".into());
            }
            Term::Atom(atom) => text.push_str(atom),
            Term::Group(alternatives, repeats) => {
                let at_start = at_start && opens && i == 0;
                let at_end = at_end && closes && i + 1 == terms.len();
                text.push_str(&written(alternatives, at_start, at_end)?);
                text.push_str(repeats);
            }
        }
    }
    if at_end && !closes {
        text.push_str(ANYTHING);
    }
    Ok(text)
}

/// One thing in a class.
enum Item {
    Character(char),
    /// Of a class by a letter, in Rust's syntax.
    Set(String),
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn takes(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// To the end, or to the `)` that nothing here has opened.
    fn alternatives(&mut self) -> Result<Vec<Sequence>, String> {
        let mut alternatives = vec![Vec::new()];
        while let Some(&next) = self.rest.peek() {
            match next {
                ')' => break,
                '|' => {
                    self.rest.next();
                    alternatives.push(Vec::new());
                }
                _ => {
                    let term = self.term()?;
                    alternatives.last_mut().expect("there is one from the start").push(term);
                }
            }
        }
        Ok(alternatives)
    }

    fn term(&mut self) -> Result<Term, String> {
        if self.rest.peek() == Some(&'{') && self.counts().is_some() {
            return Err("has a `{` with nothing to repeat".into());
        }
        let atom = match self.rest.next().expect("the caller has seen a character") {
            '^' => return Ok(Term::Start),
            '$' => return Ok(Term::End),
            '(' => {
                let alternatives = self.group()?;
                return Ok(Term::Group(alternatives, self.repeats()?));
            }
            '[' => self.class()?,
            '.' => class(true, LINE_ENDS),
            '\\' => match self.escape(false)? {
                Item::Character(character) => literal(character),
                Item::Set(set) => class(false, &set),
            },
            sign @ ('*' | '+' | '?') => return Err(format!("has a `{sign}` with nothing to repeat")),
            character => literal(character),
        };
        Ok(Term::Atom(atom + &self.repeats()?))
    }

    /// What is between a `(` and its `)`.
    fn group(&mut self) -> Result<Vec<Sequence>, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("has groups within groups more than {MOST_DEPTH} deep"));
        }
        if self.takes('?') {
            match self.rest.next() {
                Some(':') => {}
                Some('<') if !matches!(self.rest.peek(), Some('=' | '!')) => {
                    let mut name = self.rest.by_ref().take_while(|&c| c != '>');
                    if !name.all(|c| c == '_' || c == '$' || c.is_alphanumeric()) {
                        return Err("has a group with no proper name".into());
                    }
                }
                _ => return Err("has an assertion or a modifier, `(?…)`, which is not supported".into()),
            }
        }
        let alternatives = self.alternatives()?;
        self.depth -= 1;
        if self.takes(')') { Ok(alternatives) } else { Err("has a `(` without its `)`".into()) }
    }

    /// A quantifier, or nothing. Whether it is a lazy one makes no difference to what fits.
    fn repeats(&mut self) -> Result<String, String> {
        let repeats = match self.rest.peek() {
            Some(&sign @ ('*' | '+' | '?')) => {
                self.rest.next();
                sign.to_string()
            }
            Some('{') => match self.counts() {
                Some((_, Some(most))) | Some((most, None)) if most > MOST_REPEATS => {
                    return Err(format!("repeats something more than {MOST_REPEATS} times"));
                }
                Some((least, Some(most))) if least > most => {
                    return Err(format!("repeats something {least} to {most} times"));
                }
                Some((least, most)) => {
                    format!("{{{least},{}}}", most.map(|most| most.to_string()).unwrap_or_default())
                }
                None => return Ok(String::new()),
            },
            _ => return Ok(String::new()),
        };
        self.takes('?');
        match self.rest.peek() {
            Some(&sign @ ('*' | '+' | '?')) => Err(format!("has a `{sign}` with nothing to repeat")),
            _ => Ok(repeats),
        }
    }

    /// The counts of `{2}`, `{2,}` or `{2,3}`, if that is what comes.
    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        let inside: String = self.rest.clone().skip(1).take_while(|&c| c != '}').take(24).collect();
        let count = |digits: &str| {
            let is_count = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_count.then(|| digits.parse().unwrap_or(u32::MAX))
        };
        let counts = match inside.split_once(',') {
            None => count(&inside).map(|count| (count, Some(count))),
            Some((least, "")) => count(least).map(|least| (least, None)),
            Some((least, most)) => count(least).zip(count(most).map(Some)),
        }?;
        // The brackets as well; without the second it is no quantifier.
        let mut after = self.rest.clone();
        (after.nth(inside.len() + 1) == Some('}')).then(|| self.rest = after)?;
        Some(counts)
    }

    /// What is between a `[` and its `]`.
    fn class(&mut self) -> Result<String, String> {
        let is_negated = self.takes('^');
        let mut items = String::new();
        loop {
            let first = match self.item()? {
                None => break,
                Some(first) => first,
            };
            let is_range =
                self.rest.peek() == Some(&'-') && self.rest.clone().nth(1).is_some_and(|c| c != ']');
            if !is_range {
                items.push_str(&first.written());
                continue;
            }
            self.rest.next();
            match (first, self.item()?) {
                (Item::Character(from), Some(Item::Character(to))) if from <= to => {
                    items.push_str(&format!("{}-{}", code_point(from), code_point(to)));
                }
                (Item::Character(from), Some(Item::Character(to))) => {
                    return Err(format!("has a class from {from:?} to {to:?}, which is backwards"));
                }
                // A class by a letter begins or ends no range, and the hyphen is one.
                (first, second) => {
                    items.push_str(&first.written());
                    items.push_str(&code_point('-'));
                    items.push_str(&second.map(|item| item.written()).unwrap_or_default());
                }
            }
        }
        match (items.is_empty(), is_negated) {
            (true, false) => Err("has a class of no character, `[]`".into()),
            (true, true) => Ok(class(true, &code_point('\0'))),
            (false, _) => Ok(class(is_negated, &items)),
        }
    }

    /// The next thing in a class, or `None` at its end.
    fn item(&mut self) -> Result<Option<Item>, String> {
        match self.rest.next() {
            None => Err("has a `[` without its `]`".into()),
            Some(']') => Ok(None),
            Some('\\') => self.escape(true).map(Some),
            Some(character) => Ok(Some(Item::Character(character))),
        }
    }

    /// What follows a `\`.
    fn escape(&mut self, in_class: bool) -> Result<Item, String> {
        let letter = self.rest.next().ok_or("ends in a `\\`")?;
        let character = match letter {
            'd' => return Ok(Item::Set(DIGIT.into())),
            'D' => return Ok(Item::Set(format!("[^{DIGIT}]"))),
            'w' => return Ok(Item::Set(WORD.into())),
            'W' => return Ok(Item::Set(format!("[^{WORD}]"))),
            's' => return Ok(Item::Set(SPACE.into())),
            'S' => return Ok(Item::Set(format!("[^{SPACE}]"))),
            'p' | 'P' => return self.property(letter),
            't' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'b' if in_class => '\x08',
            '0' if !matches!(self.rest.peek(), Some('0'..='9')) => '\0',
            'c' => match self.rest.next() {
                Some(letter) if letter.is_ascii_alphabetic() => char::from(letter as u8 % 32),
                _ => return Err("has a `\\c` without its letter".into()),
            },
            'x' => {
                self.hexadecimal(2).and_then(char::from_u32).ok_or("has a `\\x` without its two digits")?
            }
            'u' => self.unicode().ok_or("has a `\\u` that is no character")?,
            letter if letter.is_ascii_alphanumeric() => {
                return Err(format!("has `\\{letter}`, which is not supported"));
            }
            character => character,
        };
        Ok(Item::Character(character))
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |value, _| Some(value * 16 + self.rest.next()?.to_digit(16)?))
    }

    /// The character of `\u61`, as `0061`, as `{61}`, or as two surrogates.
    fn unicode(&mut self) -> Option<char> {
        if self.takes('{') {
            let digits: String = self.rest.by_ref().take_while(|&c| c != '}').collect();
            return u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
        }
        let first = self.hexadecimal(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        let is_pair = self.takes('\\') && self.takes('u');
        let second = self.hexadecimal(4).filter(|second| is_pair && (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    /// The property of `\p{…}`, by a name that Rust knows too or refuses.
    fn property(&mut self, letter: char) -> Result<Item, String> {
        let name: String = match self.takes('{') {
            true => self.rest.by_ref().take_while(|&c| c != '}').collect(),
            false => String::new(),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '=');
        match !name.is_empty() && name.chars().all(is_name) {
            true => Ok(Item::Set(format!("\\{letter}{{{name}}}"))),
            false => Err(format!("has a `\\{letter}` that names no property")),
        }
    }
}

impl Item {
    fn written(&self) -> String {
        match self {
            Item::Character(character) => code_point(*character),
            Item::Set(set) => set.clone(),
        }
    }
}

fn code_point(character: char) -> String {
    format!("\\x{{{:x}}}", u32::from(character))
}

fn literal(character: char) -> String {
    match character {
        '\0' => class(false, &code_point('\0')),
        character if character.is_ascii_alphanumeric() => character.to_string(),
        character => code_point(character),
    }
}

/// The class of `items`, or of all others.
fn class(is_negated: bool, items: &str) -> String {
    let not = if is_negated { "^" } else { "" };
    format!(r"[[{not}{items}]&&[^\x{{0}}]]")
}

#[cfg(test)]
mod tests;
