//! Python's literals, which are nearly a superset of JSON's.

use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::Value;

/// Literals inside literals, at most: as deep as arguments are read that come back with a conversation.
const DEEPEST: usize = 125;

/// Why text is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It ends before it is complete.
    Incomplete,
    /// No continuation could mend it.
    Malformed,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Text(String),
    /// In JSON's spelling; a number of any size stays as it is.
    Number(String),
    Bool(bool),
    None,
    List(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

impl Literal {
    /// Appends it to `json`.
    pub(super) fn write_json(&self, json: &mut String) {
        match self {
            Literal::Text(text) => json.push_str(&Value::from(text.as_str()).to_string()),
            Literal::Number(number) => json.push_str(number),
            Literal::Bool(truth) => json.push_str(if *truth { "true" } else { "false" }),
            Literal::None => json.push_str("null"),
            Literal::List(items) => {
                write_between(json, ['[', ']'], items, |item, json| item.write_json(json))
            }
            Literal::Dict(entries) => write_between(json, ['{', '}'], entries, |(key, value), json| {
                json.push_str(&Value::from(key.as_str()).to_string());
                json.push(':');
                value.write_json(json);
            }),
        }
    }
}

fn write_between<T>(
    json: &mut String,
    [open, close]: [char; 2],
    items: &[T],
    write: impl Fn(&T, &mut String),
) {
    json.push(open);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            json.push(',');
        }
        write(item, json);
    }
    json.push(close);
}

/// `value` as Python writes it.
pub(super) fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(python_literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), python_literal(value))
            };
            let entries: Vec<_> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Reads text from front to back.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Reader { text, chars: text.char_indices().peekable() }
    }

    /// Bytes read so far.
    pub(super) fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    pub(super) fn peek(&mut self) -> Result<char, Flaw> {
        self.chars.peek().map(|(_, c)| *c).ok_or(Flaw::Incomplete)
    }

    fn next(&mut self) -> Result<char, Flaw> {
        self.chars.next().map(|(_, c)| c).ok_or(Flaw::Incomplete)
    }

    pub(super) fn skip_space(&mut self) {
        while self.chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
    }

    /// Takes `wanted` if it comes next, after space.
    pub(super) fn take(&mut self, wanted: char) -> Result<bool, Flaw> {
        self.skip_space();
        let found = self.peek()? == wanted;
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, wanted: char) -> Result<(), Flaw> {
        if self.take(wanted)? { Ok(()) } else { Err(Flaw::Malformed) }
    }

    /// A name, dotted or not; empty if there is none.
    pub(super) fn name(&mut self) -> Result<&'a str, Flaw> {
        self.skip_space();
        let start = self.at();
        while self.chars.next_if(|(_, c)| c.is_alphanumeric() || *c == '_' || *c == '.').is_some() {}
        // More of the name might follow.
        self.peek()?;
        let end = self.at();
        Ok(&self.text[start..end])
    }

    /// Items up to `close`, between commas, of which one may be the last.
    pub(super) fn items<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, Flaw>,
    ) -> Result<Vec<T>, Flaw> {
        let mut items = Vec::new();
        while !self.take(close)? {
            items.push(item(self)?);
            if !self.take(',')? {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    pub(super) fn literal(&mut self, depth: usize) -> Result<Literal, Flaw> {
        if depth > DEEPEST {
            return Err(Flaw::Malformed);
        }
        self.skip_space();
        match self.peek()? {
            '"' | '\'' => self.text().map(Literal::Text),
            '[' => {
                self.next()?;
                self.items(']', |reader| reader.literal(depth + 1)).map(Literal::List)
            }
            '(' => {
                self.next()?;
                self.parenthesized(depth + 1)
            }
            '{' => {
                self.next()?;
                self.items('}', |reader| reader.entry(depth + 1)).map(Literal::Dict)
            }
            c if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number().map(Literal::Number),
            _ => match self.name()? {
                "True" | "true" => Ok(Literal::Bool(true)),
                "False" | "false" => Ok(Literal::Bool(false)),
                "None" | "null" => Ok(Literal::None),
                _ => Err(Flaw::Malformed),
            },
        }
    }

    /// The rest of a tuple, or of a value between parentheses: a comma makes the difference.
    fn parenthesized(&mut self, depth: usize) -> Result<Literal, Flaw> {
        if self.take(')')? {
            return Ok(Literal::List(Vec::new()));
        }
        let first = self.literal(depth)?;
        if self.take(')')? {
            return Ok(first);
        }
        self.expect(',')?;
        let mut items = vec![first];
        items.extend(self.items(')', |reader| reader.literal(depth))?);
        Ok(Literal::List(items))
    }

    fn entry(&mut self, depth: usize) -> Result<(String, Literal), Flaw> {
        self.skip_space();
        let key = match self.peek()? {
            '"' | '\'' => self.text()?,
            _ => return Err(Flaw::Malformed),
        };
        self.expect(':')?;
        Ok((key, self.literal(depth)?))
    }

    /// One or more strings side by side, which Python joins.
    fn text(&mut self) -> Result<String, Flaw> {
        let mut text = String::new();
        loop {
            let quote = self.next()?;
            let triple = self.text[self.at()..].starts_with(&[quote; 2].iter().collect::<String>());
            if triple {
                self.next()?;
                self.next()?;
            }
            self.quoted(quote, triple, &mut text)?;
            self.skip_space();
            if !matches!(self.peek()?, '"' | '\'') {
                return Ok(text);
            }
        }
    }

    /// The rest of a string, its closing quotes included.
    fn quoted(&mut self, quote: char, triple: bool, text: &mut String) -> Result<(), Flaw> {
        loop {
            match self.next()? {
                '\\' => self.escape(text)?,
                c if c == quote && !triple => return Ok(()),
                c if c == quote => {
                    if self.text[self.at()..].starts_with(&[quote; 2].iter().collect::<String>()) {
                        self.next()?;
                        self.next()?;
                        return Ok(());
                    }
                    text.push(c);
                }
                c => text.push(c),
            }
        }
    }

    /// What follows a backslash. What is no escape keeps the backslash, as in Python, but for JSON's `\/`.
    fn escape(&mut self, text: &mut String) -> Result<(), Flaw> {
        let c = match self.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'a' => '\u{7}',
            c @ '0'..='7' => self.octal(c),
            c @ ('\\' | '\'' | '"' | '/') => c,
            '\n' => return Ok(()),
            'x' => self.character(2)?,
            'u' => self.character(4)?,
            'U' => self.character(8)?,
            c => {
                text.push('\\');
                c
            }
        };
        text.push(c);
        Ok(())
    }

    /// A character of up to three octal digits, of which `first` is one.
    fn octal(&mut self, first: char) -> char {
        let mut digits = String::from(first);
        while digits.len() < 3
            && let Some((_, digit)) = self.chars.next_if(|(_, c)| c.is_digit(8))
        {
            digits.push(digit);
        }
        let value = u32::from_str_radix(&digits, 8).expect("the digits are octal");
        char::from_u32(value).expect("511 is a character")
    }

    /// A character of so many hexadecimal digits; JSON writes large ones as two of four digits.
    fn character(&mut self, digits: usize) -> Result<char, Flaw> {
        let high = self.hexadecimal(digits)?;
        if digits != 4 || !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or(Flaw::Malformed);
        }
        for expected in ['\\', 'u'] {
            if self.next()? != expected {
                return Err(Flaw::Malformed);
            }
        }
        let low = self.hexadecimal(4)?.checked_sub(0xdc00).filter(|low| *low < 0x400);
        let low = low.ok_or(Flaw::Malformed)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low).ok_or(Flaw::Malformed)
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, Flaw> {
        let mut value = 0u32;
        for _ in 0..digits {
            let digit = self.next()?.to_digit(16).ok_or(Flaw::Malformed)?;
            value = value.checked_mul(16).ok_or(Flaw::Malformed)? + digit;
        }
        Ok(value)
    }

    /// A number, respelled as JSON has it.
    fn number(&mut self) -> Result<String, Flaw> {
        let start = self.at();
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let mut last = ' ';
        while let Some((_, c)) = self.chars.next_if(|(at, c)| {
            belongs(*c) || (matches!(c, '+' | '-') && (*at == start || matches!(last, 'e' | 'E')))
        }) {
            last = c;
        }
        // More of it might follow.
        self.peek()?;
        let end = self.at();
        json_number(&self.text[start..end].replace('_', "")).ok_or(Flaw::Malformed)
    }
}

/// `-0x1F`, `+5`, `.5` and `1.` as JSON has them. One that no double holds stays as it is.
fn json_number(python: &str) -> Option<String> {
    let (sign, digits) = match python.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", python.strip_prefix('+').unwrap_or(python)),
    };
    let prefixed = |prefix: &str, radix| {
        let digits = digits.to_ascii_lowercase();
        u64::from_str_radix(digits.strip_prefix(prefix)?, radix).ok()
    };
    if let Some(value) = prefixed("0x", 16).or(prefixed("0o", 8)).or(prefixed("0b", 2)) {
        return Some(format!("{sign}{value}"));
    }
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => digits.split_at(at),
        None => (digits, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.get(1..).map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
    let is_power = power.is_none_or(|power| !power.is_empty() && is_digits(power));
    if !(is_digits(whole) && is_digits(fraction) && is_power) {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = match (mantissa.contains('.'), fraction) {
        (false, _) => String::new(),
        (true, "") => ".0".into(),
        (true, fraction) => format!(".{fraction}"),
    };
    Some(format!("{sign}{whole}{fraction}{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(python: &str) -> Result<String, Flaw> {
        // Whatever could go on must be seen to end.
        let text = format!("{python} ;");
        let mut json = String::new();
        Reader::new(&text).literal(0)?.write_json(&mut json);
        Ok(json)
    }

    #[test]
    fn literals_become_json() {
        let table = [
            (r"'it\'s'", r#""it's""#),
            (r#""a\tb\x41\u00e9\U0001F600\ud83d\ude00\/\d""#, r#""a\tbAé😀😀/\\d""#),
            (r#"'''a "quoted" 'word' '''"#, r#""a \"quoted\" 'word' ""#),
            (r#""one " 'two'"#, r#""one two""#),
            ("''", r#""""#),
            ("[1, 'a', [True, false], None, null,]", r#"[1,"a",[true,false],null,null]"#),
            ("(1, 2)", "[1,2]"),
            ("((), (1,), (1), ('a'\n'b'))", r#"[[],[1],1,"ab"]"#),
            (r"'\033[0m\0\1018'", r#""\u001b[0m\u0000A8""#),
            ("1e999", "1e999"),
            ("{'a': {'b': []}, \"c\": 1}", r#"{"a":{"b":[]},"c":1}"#),
            ("-3", "-3"),
            ("+5", "5"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("1e-3", "1e-3"),
            ("1_000", "1000"),
            ("0x1F", "31"),
            ("007", "7"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ];
        for (python, expected) in table {
            assert_eq!(json(python).as_deref(), Ok(expected), "{python}");
        }
    }

    #[test]
    fn what_is_no_literal_is_malformed() {
        for text in [
            "maybe",
            "1..2",
            "1.2.3",
            "1x",
            "1e",
            "1e+",
            "e5",
            "1e5.5",
            ".",
            "{1: 2}",
            "[1 2]",
            "'\\ud83d'",
            "'\\xzz'",
            "-",
            "--1",
        ] {
            assert_eq!(json(text), Err(Flaw::Malformed), "{text}");
        }
        assert_eq!(json(&"[".repeat(1000)), Err(Flaw::Malformed));
    }

    #[test]
    fn what_could_still_become_one_is_incomplete() {
        for text in ["'ab", "[1, ", "{'a'", "12", "Tru", "'''a'", "'a'"] {
            assert_eq!(Reader::new(text).literal(0), Err(Flaw::Incomplete), "{text}");
        }
    }
}
