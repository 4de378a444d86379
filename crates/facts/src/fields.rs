//! The keys of a table of TOML, each read with its place, so that an error names line and column.
//!
//! What every file shares that a user writes: budgets and plans.

use base::nearest::instead;
use base::plain::{beginning, plain};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// As much of a key that nobody knows as an error repeats.
const MOST_KEY_BYTES: usize = 60;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}")]
pub struct Error {
    /// The file, as the user calls it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    pub text: String,
}

#[derive(Clone, Copy)]
pub struct Source<'s> {
    /// What the user calls it.
    pub file: &'s str,
    pub text: &'s str,
}

impl Source<'_> {
    /// What is wrong at this byte of the text.
    pub fn error(&self, at: usize, text: impl Into<String>) -> Error {
        let before = beginning(self.text, at);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error { file: self.file.to_owned(), line, column, text: text.into() }
    }
}

/// A table of which all keys are known.
pub struct Fields<'s, 'd> {
    source: Source<'s>,
    what: &'static str,
    at: usize,
    table: &'d DeTable<'s>,
}

impl<'s, 'd> Fields<'s, 'd> {
    /// The keys of a table that begins at this byte; `what` it is, as an error says it.
    pub fn of(
        source: Source<'s>,
        what: &'static str,
        at: usize,
        table: &'d DeTable<'s>,
        known: &[&str],
    ) -> Result<Self, Error> {
        let unknown = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(Self { source, what, at, table }),
            Some(key) => {
                let name = plain(beginning(key.get_ref(), MOST_KEY_BYTES));
                let instead = instead(key.get_ref(), known.iter().copied());
                Err(source.error(key.span().start, format!("{what} has no key `{name}`; {instead}")))
            }
        }
    }

    /// The same of the table under a key of this one; `None` if it is not there.
    pub fn fields_of(&self, key: &str, what: &'static str, known: &[&str]) -> Result<Option<Self>, Error> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self
                .source
                .error(value.span().start, format!("{what} is a table, such as {{ {} = .. }}", known[0])));
        };
        Self::of(self.source, what, value.span().start, table, known).map(Some)
    }

    /// The tables under a key that is repeated, such as `[[goal]]`; none if it is not there.
    pub fn tables_of(&self, key: &str, what: &'static str, known: &[&str]) -> Result<Vec<Self>, Error> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let how = || format!("{key}: write tables, each under a line [[{key}]]");
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(self.source.error(value.span().start, how()));
        };
        let table = |value: &'d Spanned<DeValue<'s>>| match value.get_ref() {
            DeValue::Table(table) => Self::of(self.source, what, value.span().start, table, known),
            DeValue::Array(_)
            | DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => Err(self.source.error(value.span().start, how())),
        };
        tables.iter().map(table).collect()
    }

    /// The tables under a key with their own names, such as `[nic.wan]`; none if it is not there.
    pub fn named_of(&self, key: &str, what: &'static str, known: &[&str]) -> Result<Vec<(String, Self)>, Error> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let how = || format!("{key}: write tables, each under a line [{key}.NAME]");
        let DeValue::Table(all) = value.get_ref() else {
            return Err(self.source.error(value.span().start, how()));
        };
        let mut named: Vec<_> = all.iter().collect();
        named.sort_by_key(|(name, _)| name.span().start);
        let table = |(name, value): (&'d Spanned<_>, &'d Spanned<DeValue<'s>>)| {
            let name: &std::borrow::Cow<'_, str> = name.get_ref();
            let DeValue::Table(table) = value.get_ref() else {
                return Err(self.source.error(value.span().start, how()));
            };
            Ok((name.clone().into_owned(), Self::of(self.source, what, value.span().start, table, known)?))
        };
        named.into_iter().map(table).collect()
    }

    /// What a key says, as `how` reads it; `None` if it is not there.
    pub fn read<T>(
        &self,
        key: &str,
        how: impl FnOnce(&'d DeValue<'s>) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.value(key) else { return Ok(None) };
        how(value.get_ref()).map(Some).map_err(|text| self.source.error(value.span().start, format!("{key}: {text}")))
    }

    pub fn needed<T>(&self, key: &str, how: impl FnOnce(&'d DeValue<'s>) -> Result<T, String>) -> Result<T, Error> {
        self.read(key, how)?.ok_or_else(|| self.error(format!("{} needs the key `{key}`", self.what)))
    }

    /// Refuses a key, if it is there, for this reason.
    pub fn refuse(&self, key: &str, because: &str) -> Result<(), Error> {
        match self.value(key) {
            Some(value) => Err(self.source.error(value.span().start, format!("{key}: {because}"))),
            None => Ok(()),
        }
    }

    /// What is wrong with the table as a whole.
    pub fn error(&self, text: impl Into<String>) -> Error {
        self.source.error(self.at, text)
    }

    fn value(&self, key: &str) -> Option<&'d Spanned<DeValue<'s>>> {
        self.table.iter().find(|(known, _)| known.get_ref() == key).map(|(_, value)| value)
    }
}

/// A text that is not empty.
pub fn text<'d>(value: &'d DeValue<'_>) -> Result<&'d str, String> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() => Ok(text),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => Err("write a text in quotes".to_owned()),
    }
}

pub fn count(value: &DeValue<'_>) -> Result<u64, String> {
    let number = value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    number.ok_or_else(|| "write a whole number from 0".to_owned())
}

/// A share, from 0 to 1.
pub fn share(value: &DeValue<'_>) -> Result<f64, String> {
    let written = match value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => "",
    };
    let share = written.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.0001".to_owned())
}

/// A number from 0, whole or not.
pub fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let written = match value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => "",
    };
    let number = written.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "write a number from 0".to_owned())
}

pub fn flag(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "write true or false".to_owned())
}

/// One of some choices, by its name.
pub fn one_of<T: Copy>(value: &DeValue<'_>, choices: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let written = text(value)?;
    let found = choices.iter().find(|choice| name(**choice) == written);
    found.copied().ok_or_else(|| {
        let names = choices.iter().map(|choice| name(*choice));
        format!("`{}` is not known; {}", plain(beginning(written, MOST_KEY_BYTES)), instead(written, names))
    })
}
