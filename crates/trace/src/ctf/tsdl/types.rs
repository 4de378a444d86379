//! TSDL's types: what stands left of a field's name, and what `typealias`, `typedef` and tags give a name.
//!
//! CTF 1.8.3 sections 4.1 (basic types) and 4.2 (compound types); defaults of attributes from there.

use super::lexer::Word;
use super::parser::{Parser, Value};
use crate::Error;
use crate::ctf::model::{Choice, Class, Integer, Length, Path, Scope};
use std::sync::Arc;

/// Deepest nesting of types; LTTng needs 4.
const DEEPEST: usize = 64;

impl Parser<'_> {
    /// Takes a declaration that only names types; false if something else follows.
    ///
    /// # Errors
    /// If the declaration is damaged.
    pub(super) fn declaration(&mut self) -> Result<bool, Error> {
        let Word::Name(keyword) = self.peek().clone() else { return Ok(false) };
        match keyword.as_str() {
            "typealias" => {
                self.next();
                let class = self.class(false)?;
                self.expect(":=")?;
                let name = self.type_name(false)?;
                self.declare(name, class);
            }
            "typedef" => {
                self.next();
                let class = self.class(true)?;
                let height = self.height;
                loop {
                    self.height = height;
                    let (name, class) = self.declarator(class.clone())?;
                    self.declare(name, class);
                    if !self.takes(",") {
                        break;
                    }
                }
            }
            // It ends with its brace; some writers leave out the semicolon.
            "struct" | "variant" | "enum" => {
                self.class(false)?;
                self.takes(";");
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.expect(";")?;
        Ok(true)
    }

    /// Takes a type; `named`: the name of a field follows it, and is left.
    ///
    /// # Errors
    /// If the type is damaged, unknown, or nested too deeply.
    pub(super) fn class(&mut self, named: bool) -> Result<Arc<Class>, Error> {
        self.depth += 1;
        self.height = 1;
        if self.depth > DEEPEST {
            return Err(self.instead_of("types nested at most 64 deep"));
        }
        let place = self.place();
        while self.takes_name("const") {}
        let class = match self.peek().clone() {
            Word::Name(keyword) => match (keyword.as_str(), self.peek_second()) {
                ("integer", Word::Mark("{")) => self.integer()?,
                ("floating_point", Word::Mark("{")) => self.float()?,
                ("string", Word::Mark("{")) => self.string()?,
                ("string", _) => self.string()?,
                ("struct", _) => self.structure()?,
                ("variant", _) => self.variant()?,
                ("enum", _) => self.enumeration()?,
                _ => {
                    let name = self.type_name(named)?;
                    let found = format!("`{name}`, which nothing declares");
                    let class = self.declared(&name).ok_or_else(|| self.damaged(place, "the name of a type", found))?;
                    if self.sees("<") { self.tagged(&class, place)? } else { class }
                }
            },
            _ => return Err(self.instead_of("a type")),
        };
        self.depth -= 1;
        self.bounded(class)
    }

    /// The words of a type's name; `named`: the last one is the field's and is left.
    fn type_name(&mut self, named: bool) -> Result<String, Error> {
        let mut words = Vec::new();
        loop {
            let last = !matches!(self.peek_second(), Word::Name(_) | Word::Mark("*" | "<"));
            match self.peek().clone() {
                Word::Name(_) if named && last && !words.is_empty() => break,
                Word::Name(word) => words.push(word),
                Word::Mark("*") => words.push("*".to_owned()),
                _ => break,
            }
            self.next();
        }
        if words.is_empty() { Err(self.instead_of("the name of a type")) } else { Ok(words.join(" ")) }
    }

    /// A field's name with its array lengths, around a type.
    fn declarator(&mut self, class: Arc<Class>) -> Result<(String, Arc<Class>), Error> {
        let name = self.name()?;
        let mut lengths = Vec::new();
        while self.takes("[") {
            let length = match self.peek().clone() {
                Word::Number(length) => {
                    self.next();
                    Length::Fixed(length)
                }
                _ => Length::Field(self.path()?),
            };
            lengths.push(length);
            self.expect("]")?;
        }
        self.height += lengths.len();
        let class = self.bounded(class)?;
        let array = |element, length| Arc::new(array_of(element, length));
        Ok((name, lengths.into_iter().rev().fold(class, array)))
    }

    /// Refuses a type with too many levels: whoever visits it visits them one inside the other.
    fn bounded(&self, class: Arc<Class>) -> Result<Arc<Class>, Error> {
        if self.height > DEEPEST { Err(self.instead_of("types nested at most 64 deep")) } else { Ok(class) }
    }

    fn path(&mut self) -> Result<Path, Error> {
        const ROOTS: [(&[&str], Scope); 6] = [
            (&["trace", "packet", "header"], Scope::PacketHeader),
            (&["stream", "packet", "context"], Scope::PacketContext),
            (&["stream", "event", "header"], Scope::EventHeader),
            (&["stream", "event", "context"], Scope::StreamContext),
            (&["event", "context"], Scope::EventContext),
            (&["event", "fields"], Scope::Payload),
        ];
        let names = self.names()?;
        let root =
            ROOTS.iter().find(|(root, _)| names.len() > root.len() && names.iter().zip(*root).all(|(a, b)| a == b));
        Ok(match root {
            Some((root, scope)) => Path { scope: Some(*scope), names: names[root.len()..].to_vec() },
            None => Path { scope: None, names },
        })
    }

    fn structure(&mut self) -> Result<Arc<Class>, Error> {
        self.next();
        let tag = self.tag("struct")?;
        if !self.sees("{") {
            return self.of_tag(tag);
        }
        let members = self.members()?;
        let mut align = 1;
        if self.takes_name("align") {
            self.expect("(")?;
            let attribute = ("align".to_owned(), self.value()?, self.place());
            align = self.alignment(&attribute)?;
            self.expect(")")?;
        }
        Ok(self.tagged_as(tag, Arc::new(Class::structure(align, members))))
    }

    fn variant(&mut self) -> Result<Arc<Class>, Error> {
        let place = self.place();
        self.next();
        let tag = self.tag("variant")?;
        let selector = if self.takes("<") {
            let path = self.path()?;
            self.expect(">")?;
            Some(path)
        } else {
            None
        };
        if !self.sees("{") {
            let class = self.of_tag(tag)?;
            return Ok(selector.map_or(class.clone(), |selector| with_selector(&class, selector)));
        }
        let options = self.members()?;
        if options.is_empty() {
            return Err(self.damaged(place, "a variant with options", "none"));
        }
        let options = options.into_iter().map(|(name, class)| Choice { name, ranges: None, class }).collect();
        let selector = selector.unwrap_or(Path { scope: None, names: Vec::new() });
        Ok(self.tagged_as(tag, Arc::new(Class::Variant { selector, options })))
    }

    /// `alias <tag>`: a variant that got its name before its selector.
    fn tagged(&mut self, class: &Arc<Class>, place: usize) -> Result<Arc<Class>, Error> {
        self.expect("<")?;
        let selector = self.path()?;
        self.expect(">")?;
        match class.as_ref() {
            Class::Variant { .. } => Ok(with_selector(class, selector)),
            _ => Err(self.damaged(place, "a variant before `<`", "another type")),
        }
    }

    /// The fields between braces.
    fn members(&mut self) -> Result<Vec<(String, Arc<Class>)>, Error> {
        self.expect("{")?;
        self.open_scope();
        let mut members = Vec::new();
        let mut highest = 0;
        while !self.takes("}") {
            if self.sees_name("typealias") || self.sees_name("typedef") {
                self.declaration()?;
                continue;
            }
            let class = self.class(true)?;
            // A type with a tag and no field name only declares.
            if self.takes(";") {
                continue;
            }
            let height = self.height;
            loop {
                self.height = height;
                members.push(self.declarator(class.clone())?);
                highest = highest.max(self.height);
                if !self.takes(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.close_scope();
        self.height = highest + 1;
        Ok(members)
    }

    fn enumeration(&mut self) -> Result<Arc<Class>, Error> {
        let place = self.place();
        self.next();
        let tag = self.tag("enum")?;
        let container = if self.takes(":") {
            Some(self.class(false)?)
        } else if self.sees("{") {
            self.declared("int")
        } else {
            return self.of_tag(tag);
        };
        let Some(Class::Integer(container)) = container.as_deref().cloned() else {
            return Err(self.damaged(place, "an integer to hold the enumeration", "none"));
        };
        let labels = self.labels()?;
        Ok(self.tagged_as(tag, Arc::new(Class::Integer(Integer { labels, ..container }))))
    }

    /// `{ NAME, NAME = 3, "name" = 4 ... 7, }`
    fn labels(&mut self) -> Result<Vec<(i128, i128, String)>, Error> {
        self.expect("{")?;
        let mut labels = Vec::new();
        let mut next = 0;
        while !self.takes("}") {
            let name = match self.next() {
                Word::Name(name) | Word::Quoted(name) => name,
                _ => return Err(self.instead_of("the name of a value")),
            };
            let (mut first, mut last) = (next, next);
            if self.takes("=") {
                first = self.number()?;
                last = if self.takes("...") { self.number()? } else { first };
            }
            labels.push((first, last, name));
            next = last.saturating_add(1);
            if !self.takes(",") && !self.sees("}") {
                return Err(self.instead_of("`,` or `}`"));
            }
        }
        Ok(labels)
    }

    fn number(&mut self) -> Result<i128, Error> {
        let place = self.place();
        match self.value()? {
            Value::Number(number) => Ok(number),
            other => Err(self.damaged(place, "a number", other.to_string())),
        }
    }

    /// The tag after `struct`, `variant` or `enum`, as the name under which the type is kept.
    fn tag(&mut self, keyword: &str) -> Result<Option<String>, Error> {
        match self.peek() {
            Word::Name(_) => Ok(Some(format!("{keyword} {}", self.name()?))),
            _ => Ok(None),
        }
    }

    fn of_tag(&mut self, tag: Option<String>) -> Result<Arc<Class>, Error> {
        let Some(tag) = tag else { return Err(self.instead_of("`{`")) };
        let found = format!("`{tag}`, which nothing declares");
        self.declared(&tag).ok_or_else(|| self.damaged(self.place(), "a declared type", found))
    }

    fn tagged_as(&mut self, tag: Option<String>, class: Arc<Class>) -> Arc<Class> {
        if let Some(tag) = tag {
            self.declare(tag, class.clone());
        }
        class
    }
}

/// Characters of 8 bits at byte boundaries are text; other elements are elements.
fn array_of(element: Arc<Class>, length: Length) -> Class {
    match element.as_ref() {
        Class::Integer(integer) if integer.text && integer.bits == 8 && integer.align.is_multiple_of(8) => {
            Class::Counted { length, text: true }
        }
        _ => Class::Array { length, align: 1, element },
    }
}

fn with_selector(class: &Arc<Class>, selector: Path) -> Arc<Class> {
    match class.as_ref() {
        Class::Variant { options, .. } => Arc::new(Class::Variant { selector, options: options.clone() }),
        _ => class.clone(),
    }
}
