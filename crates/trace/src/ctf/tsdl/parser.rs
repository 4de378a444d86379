//! Moving over the words of a TSDL text, and the statements of its blocks.
//!
//! CTF 1.8.3 appendix C: a block is a list of `name = value;`, `name := type;` and type declarations.

use super::lexer::{Token, Word, words};
use crate::Error;
use crate::ctf::metadata::Metadata;
use crate::ctf::model::Class;
use crate::format::Endian;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A position in a TSDL text, and the type names known there.
pub(super) struct Parser<'m> {
    metadata: &'m Metadata,
    tokens: Vec<Token>,
    at: usize,
    /// Types by name, from the outermost block to the innermost; `struct x`, `enum x`, `variant x` with their keyword.
    scopes: Vec<FxHashMap<String, (Arc<Class>, usize)>>,
    /// How deeply the type being read is nested.
    pub depth: usize,
    /// How many levels the type read last has inside, itself included.
    pub height: usize,
    /// What `byte_order = native` means, as the trace block says it.
    pub native: Endian,
}

/// The right side of `name = value;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(i128),
    Text(String),
    /// Names with dots between them: `true`, `le`, `clock.monotonic.value`.
    Names(Vec<String>),
}

pub(super) enum Statement {
    /// `a.b = value;`
    Assign(Vec<String>, Value, usize),
    /// `a.b := type;`
    Type(Vec<String>, Arc<Class>),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            Value::Names(names) => f.write_str(&names.join(".")),
        }
    }
}

impl<'m> Parser<'m> {
    /// Cuts the text into words and finds the trace's byte order, which integers declared before it may need.
    ///
    /// # Errors
    /// If the text has a word that is none of TSDL, or no trace block with a byte order.
    pub(super) fn new(metadata: &'m Metadata) -> Result<Self, Error> {
        let tokens = words(metadata)?;
        let native = match byte_order_of_trace(&tokens) {
            Some(order) => order,
            None => {
                return Err(metadata.damaged(0, "a trace block with `byte_order = le` or `be`", "none in the text"));
            }
        };
        Ok(Self { metadata, tokens, at: 0, scopes: vec![FxHashMap::default()], depth: 0, height: 0, native })
    }

    pub(super) fn peek(&self) -> &Word {
        &self.tokens[self.at.min(self.tokens.len() - 1)].word
    }

    /// The word after the next.
    pub(super) fn peek_second(&self) -> &Word {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].word
    }

    /// Byte of the text at which the next word stands.
    pub(super) fn place(&self) -> usize {
        self.tokens[self.at.min(self.tokens.len() - 1)].at
    }

    pub(super) fn next(&mut self) -> Word {
        let word = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        word
    }

    /// True if the next word is this mark, which is then taken.
    pub(super) fn takes(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Word::Mark(next) if *next == mark);
        if found {
            self.next();
        }
        found
    }

    /// True if the next word is this name, which is then taken.
    pub(super) fn takes_name(&mut self, name: &str) -> bool {
        let found = self.sees_name(name);
        if found {
            self.next();
        }
        found
    }

    /// True if the next word is this name.
    pub(super) fn sees_name(&self, name: &str) -> bool {
        matches!(self.peek(), Word::Name(next) if next == name)
    }

    /// True if the next word is this mark.
    pub(super) fn sees(&self, mark: &str) -> bool {
        matches!(self.peek(), Word::Mark(next) if *next == mark)
    }

    /// Takes this mark.
    ///
    /// # Errors
    /// If the next word is another.
    pub(super) fn expect(&mut self, mark: &str) -> Result<(), Error> {
        if self.takes(mark) { Ok(()) } else { Err(self.instead_of(&format!("`{mark}`"))) }
    }

    /// Takes a name.
    ///
    /// # Errors
    /// If the next word is none.
    pub(super) fn name(&mut self) -> Result<String, Error> {
        match self.peek().clone() {
            Word::Name(name) => {
                self.next();
                Ok(name)
            }
            _ => Err(self.instead_of("a name")),
        }
    }

    /// Takes names with dots between them.
    ///
    /// # Errors
    /// If the next word is no name, or a dot has none after it.
    pub(super) fn names(&mut self) -> Result<Vec<String>, Error> {
        let mut names = vec![self.name()?];
        while self.takes(".") {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// The error that the next word is not what was expected.
    pub(super) fn instead_of(&self, expected: &str) -> Error {
        self.metadata.damaged(self.place(), expected, self.peek().to_string())
    }

    /// The error that something at byte `at` is not what was expected.
    pub(super) fn damaged(&self, at: usize, expected: &str, found: impl Into<String>) -> Error {
        self.metadata.damaged(at, expected, found)
    }

    /// Takes the right side of an assignment.
    ///
    /// # Errors
    /// If no value follows.
    pub(super) fn value(&mut self) -> Result<Value, Error> {
        let negative = self.takes("-");
        if !negative {
            self.takes("+");
        }
        match self.peek().clone() {
            Word::Number(number) => {
                self.next();
                let number = i128::from(number);
                Ok(Value::Number(if negative { -number } else { number }))
            }
            Word::Quoted(mut text) if !negative => {
                self.next();
                while let Word::Quoted(more) = self.peek().clone() {
                    text.push_str(&more);
                    self.next();
                }
                Ok(Value::Text(text))
            }
            Word::Name(_) if !negative => Ok(Value::Names(self.names()?)),
            _ => Err(self.instead_of("a value")),
        }
    }

    /// The statements of a block, from its opening to its closing brace. Types declared in it end with it.
    ///
    /// # Errors
    /// If a statement is damaged.
    pub(super) fn block(&mut self) -> Result<Vec<Statement>, Error> {
        self.expect("{")?;
        self.open_scope();
        let mut statements = Vec::new();
        while !self.takes("}") {
            if self.takes(";") || self.declaration()? {
                continue;
            }
            let place = self.place();
            let names = self.names()?;
            if self.takes(":=") {
                statements.push(Statement::Type(names, self.class(false)?));
            } else {
                self.expect("=")?;
                statements.push(Statement::Assign(names, self.value()?, place));
            }
            self.expect(";")?;
        }
        self.close_scope();
        Ok(statements)
    }

    /// Opens a block in which types may be declared.
    pub(super) fn open_scope(&mut self) {
        self.scopes.push(FxHashMap::default());
    }

    /// Forgets the types declared since [`Parser::open_scope`].
    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
    }

    /// Gives the type read last a name in the innermost block.
    pub(super) fn declare(&mut self, name: String, class: Arc<Class>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, (class, self.height));
        }
    }

    /// The type that goes by this name here.
    pub(super) fn declared(&mut self, name: &str) -> Option<Arc<Class>> {
        let (class, height) = self.scopes.iter().rev().find_map(|scope| scope.get(name))?;
        self.height = *height;
        Some(class.clone())
    }
}

/// The byte order that the trace block states.
fn byte_order_of_trace(tokens: &[Token]) -> Option<Endian> {
    let mut depth = 0u32;
    let mut in_trace = false;
    for three in tokens.windows(3) {
        let [first, second, third] = three else { continue };
        match (&first.word, &second.word, &third.word) {
            (Word::Name(name), Word::Mark("{"), _) if depth == 0 && name == "trace" => in_trace = true,
            (Word::Name(name), Word::Mark("="), Word::Name(order))
                if in_trace && depth == 1 && name == "byte_order" =>
            {
                return order_named(order);
            }
            (Word::Mark("{"), ..) => depth += 1,
            (Word::Mark("}"), ..) => {
                depth = depth.saturating_sub(1);
                in_trace &= depth > 0;
            }
            _ => {}
        }
    }
    None
}

/// `le`, `be` or `network`.
pub(super) fn order_named(name: &str) -> Option<Endian> {
    match name {
        "le" => Some(Endian::Little),
        "be" | "network" => Some(Endian::Big),
        _ => None,
    }
}
