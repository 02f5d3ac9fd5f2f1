//! From text to programs, which are verified before they are handed out.

use std::collections::HashMap;

use super::lex::{Place, Token, tokens};
use crate::literal::{decode_hex, encode_floats, encode_ints};
use crate::ops::{self, OpSpec, Opset};
use crate::program::{Arg, Def, Function, Literal, Op, Payload, Program, Value, ValueId};
use crate::verify::{VerifyError, verify, verify_function};
use crate::{DType, Shape, TensorType, ValueType};

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Something else was expected at a place; lines and columns count from 1.
    #[error("line {line}, column {column}: expected {expected}, found {found}")]
    Syntax {
        /// Line of the place.
        line: usize,
        /// Column of the place, in bytes.
        column: usize,
        /// What could stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// The text can be read, but the program does not hold together.
    #[error(transparent)]
    Program(#[from] VerifyError),
}

impl TextError {
    pub(super) fn syntax(place: Place, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let Place { line, column } = place;
        TextError::Syntax { line, column, expected: expected.into(), found: found.into() }
    }
}

/// Reads a program; its first function is the default one.
///
/// # Errors
/// [`TextError`] for the first thing that is wrong.
pub fn parse(text: &str) -> Result<Program, TextError> {
    let mut parser = Parser::new(text)?;
    let mut functions = vec![parser.function()?];
    while *parser.peek() != Token::End {
        functions.push(parser.function()?);
    }
    let program = Program { default_function: functions[0].name.clone(), functions };
    verify(&program)?;
    Ok(program)
}

/// Reads one function.
///
/// # Errors
/// As [`parse`].
pub fn parse_function(text: &str) -> Result<Function, TextError> {
    let mut parser = Parser::new(text)?;
    let function = parser.function()?;
    match parser.peek() {
        Token::End => {}
        other => return Err(parser.expected("the end", other)),
    }
    verify_function(&function)?;
    Ok(function)
}

struct Parser {
    tokens: Vec<(Token, Place)>,
    next: usize,
    /// The values of the function at hand, by name.
    names: HashMap<String, ValueId>,
}

type Parsed<T> = Result<T, TextError>;

impl Parser {
    fn new(text: &str) -> Parsed<Self> {
        Ok(Parser { tokens: tokens(text)?, next: 0, names: HashMap::new() })
    }

    fn function(&mut self) -> Parsed<Function> {
        self.names.clear();
        self.keyword("func")?;
        let name = self.word("the name of a function")?;
        self.mark("<")?;
        let opset_name = self.word("an opset")?;
        let opset = Opset::from_name(&opset_name).ok_or_else(|| self.refused("CoreML5 to CoreML9"))?;
        self.mark(">")?;
        let mut function = Function {
            name,
            opset: opset_name,
            values: vec![],
            ops: vec![],
            inputs: vec![],
            outputs: vec![],
        };
        for (position, (name, ty)) in self.parenthesized(Self::typed)?.into_iter().enumerate() {
            let id = self.define(&mut function, name, ty, Def::Input(position));
            function.inputs.push(id);
        }
        self.mark("->")?;
        // Outputs are named before they are defined.
        let outputs = self.parenthesized(|parser| Ok((parser.place(), parser.word("an output")?)))?;
        self.mark("{")?;
        while !self.skip("}") {
            self.op(&mut function, opset)?;
        }
        for (place, name) in outputs {
            let id = self
                .names
                .get(&name)
                .ok_or_else(|| TextError::syntax(place, "the name of a value", format!("`{name}`")))?;
            function.outputs.push(*id);
        }
        Ok(function)
    }

    fn op(&mut self, function: &mut Function, opset: Opset) -> Parsed<()> {
        let has_results = self.tokens.get(self.next + 1).is_some_and(|(token, _)| *token == Token::Mark(":"));
        let mut results = Vec::new();
        if has_results {
            results.push(self.typed()?);
            while self.skip(",") {
                results.push(self.typed()?);
            }
            self.mark("=")?;
        }
        let op_name = self.word("an operation")?;
        let spec = ops::find(&op_name, opset)
            .map_err(|_| self.refused(&format!("an operation of {}", opset.name())))?;
        let args = self.args(spec)?;
        let name = match results.as_slice() {
            [(only, _)] if *self.peek() != Token::Mark("[") => only.clone(),
            _ => self.op_name()?,
        };
        let op = function.ops.len();
        let outputs = (results.into_iter().enumerate())
            .map(|(output, (name, ty))| self.define(function, name, ty, Def::Op { op, output }))
            .collect();
        function.ops.push(Op { spec, name, args, outputs });
        Ok(())
    }

    fn args(&mut self, spec: &'static OpSpec) -> Parsed<Vec<Option<Arg>>> {
        let mut args = vec![None; spec.params.len()];
        for (position, arg) in self.parenthesized(|parser| {
            let param = parser.word("a parameter")?;
            let position = spec
                .position(&param)
                .ok_or_else(|| parser.refused(&format!("a parameter of {}", spec.name)))?;
            parser.mark("=")?;
            Ok((position, parser.arg()?))
        })? {
            args[position] = Some(arg);
        }
        Ok(args)
    }

    fn op_name(&mut self) -> Parsed<String> {
        self.mark("[")?;
        self.keyword("name")?;
        self.mark("=")?;
        let name = self.quoted()?;
        self.mark("]")?;
        Ok(name)
    }

    fn arg(&mut self) -> Parsed<Arg> {
        if *self.peek() == Token::Mark("(") {
            return Ok(Arg::Values(self.parenthesized(Self::value)?));
        }
        // A type, unlike a value, is the name of an element type.
        match self.peek() {
            Token::Word(word) if DType::from_name(word).is_some() => Ok(Arg::Literal(self.literal()?)),
            _ => Ok(Arg::Value(self.value()?)),
        }
    }

    fn value(&mut self) -> Parsed<ValueId> {
        let name = self.word("a value")?;
        self.names.get(&name).copied().ok_or_else(|| self.refused("a value that is defined before"))
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let ty = self.tensor_type()?;
        let payload = match self.peek().clone() {
            Token::Word(word) if word == "blob" => {
                self.next += 1;
                Payload::Blob(self.number("an offset")?)
            }
            Token::Word(word) if word == "bits" => {
                self.next += 1;
                let digits = self.word("hexadecimal bytes")?;
                let bytes = decode_hex(&digits).ok_or_else(|| self.refused("hexadecimal bytes"))?;
                Payload::Bytes(bytes.into())
            }
            Token::Mark("[") => {
                self.next += 1;
                let elements = self.until("]", |parser| Ok(parser.take()))?;
                self.payload(&ty, &elements)?
            }
            _ => {
                let element = self.take();
                self.payload(&ty, &[element])?
            }
        };
        let literal = Literal { ty, payload };
        if literal.is_consistent() {
            Ok(literal)
        } else {
            Err(self.refused(&format!("as many elements as {} has", literal.ty)))
        }
    }

    /// The elements of a literal of `ty`, written out.
    fn payload(&self, ty: &TensorType, elements: &[Token]) -> Parsed<Payload> {
        if ty.dtype == DType::String {
            let strings = elements.iter().map(|token| match token {
                Token::Quoted(string) => Some(string.clone()),
                _ => None,
            });
            let strings: Option<Vec<String>> = strings.collect();
            return strings.map(|s| Payload::Strings(s.into())).ok_or_else(|| self.refused("strings"));
        }
        let words = elements.iter().map(|token| match token {
            Token::Word(word) => Some(word.as_str()),
            _ => None,
        });
        let words: Option<Vec<&str>> = words.collect();
        let bytes = words.and_then(|words| match ty.dtype.is_float() {
            true => encode_floats(
                ty.dtype,
                &words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<_>>>()?,
            ),
            false => encode_ints(
                ty.dtype,
                &words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<_>>>()?,
            ),
        });
        bytes
            .map(|bytes| Payload::Bytes(bytes.into()))
            .ok_or_else(|| self.refused(&format!("values of {}", ty.dtype)))
    }

    fn typed(&mut self) -> Parsed<(String, ValueType)> {
        let name = self.word("a name")?;
        self.mark(":")?;
        if *self.peek() != Token::Word("state".to_owned()) {
            return Ok((name, self.tensor_type()?.into()));
        }
        self.next += 1;
        self.mark("<")?;
        let ty = self.tensor_type()?;
        self.mark(">")?;
        Ok((name, ValueType::State(ty)))
    }

    fn tensor_type(&mut self) -> Parsed<TensorType> {
        let name = self.word("a type")?;
        let dtype = DType::from_name(&name).ok_or_else(|| self.refused("a type"))?;
        let dims = self.parenthesized(|parser| parser.number("a dimension"))?;
        let dims = dims.into_iter().map(|dim| usize::try_from(dim).ok()).collect::<Option<Vec<_>>>();
        let dims = dims.ok_or_else(|| self.refused("smaller dimensions"))?;
        Ok(TensorType::new(dtype, Shape::new(dims)))
    }

    fn define(&mut self, function: &mut Function, name: String, ty: ValueType, def: Def) -> ValueId {
        let id = ValueId(function.values.len() as u32);
        self.names.insert(name.clone(), id);
        function.values.push(Value { name, ty, def });
        id
    }
}

/// Tokens.
impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn place(&self) -> Place {
        self.tokens[self.next].1
    }

    /// The next token; the end stays where it is.
    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn expected(&self, expected: &str, found: &Token) -> TextError {
        TextError::syntax(self.place(), expected, found.describe())
    }

    /// The token before the next one is not what was expected.
    fn refused(&self, expected: &str) -> TextError {
        let (token, place) = &self.tokens[self.next.saturating_sub(1)];
        TextError::syntax(*place, expected, token.describe())
    }

    fn skip(&mut self, mark: &'static str) -> bool {
        let found = *self.peek() == Token::Mark(mark);
        self.next += usize::from(found);
        found
    }

    fn mark(&mut self, mark: &'static str) -> Parsed<()> {
        if self.skip(mark) { Ok(()) } else { Err(self.expected(&format!("`{mark}`"), self.peek())) }
    }

    fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        match self.peek() {
            Token::Word(word) if word == keyword => {
                self.next += 1;
                Ok(())
            }
            other => Err(self.expected(&format!("`{keyword}`"), other)),
        }
    }

    fn word(&mut self, expected: &str) -> Parsed<String> {
        match self.peek().clone() {
            Token::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            other => Err(self.expected(expected, &other)),
        }
    }

    fn quoted(&mut self) -> Parsed<String> {
        match self.peek().clone() {
            Token::Quoted(string) => {
                self.next += 1;
                Ok(string)
            }
            other => Err(self.expected("a quoted string", &other)),
        }
    }

    fn number(&mut self, expected: &str) -> Parsed<u64> {
        let word = self.word(expected)?;
        word.parse().map_err(|_| self.refused(expected))
    }

    fn parenthesized<T>(&mut self, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.mark("(")?;
        self.until(")", item)
    }

    /// Items with commas between them, up to `close`.
    fn until<T>(&mut self, close: &'static str, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.skip(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.skip(close) {
                return Ok(items);
            }
            self.mark(",")?;
        }
    }
}
