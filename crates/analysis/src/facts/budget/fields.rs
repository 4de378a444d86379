//! The keys of a table of TOML, each read with its place, so that an error names line and column.

use super::Error;
use base::nearest::instead;
use base::plain::{beginning, plain};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// As much of a key that nobody knows as an error repeats.
const MOST_KEY_BYTES: usize = 60;

/// The text that is read.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    /// What the user calls it.
    pub file: &'s str,
    /// All of it.
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
pub(super) struct Fields<'s, 'd> {
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

    /// What a key says, as `how` reads it; `None` if it is not there.
    pub fn read<T>(
        &self,
        key: &str,
        how: impl FnOnce(&'d DeValue<'s>) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.value(key) else { return Ok(None) };
        how(value.get_ref()).map(Some).map_err(|text| self.source.error(value.span().start, format!("{key}: {text}")))
    }

    /// The same of a key that has to be there.
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
pub(super) fn text<'d>(value: &'d DeValue<'_>) -> Result<&'d str, String> {
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

/// A time with its unit, in ns.
pub(super) fn time(value: &DeValue<'_>) -> Result<u64, String> {
    match value {
        DeValue::String(text) => super::quantity::time(text),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => Err("write a time with its unit in quotes, such as \"20us\"".to_owned()),
    }
}

/// A number of things.
pub(super) fn count(value: &DeValue<'_>) -> Result<u64, String> {
    let number = value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    number.ok_or_else(|| "write a whole number from 0".to_owned())
}

/// A share, from 0 to 1.
pub(super) fn share(value: &DeValue<'_>) -> Result<f64, String> {
    let written = match value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => "",
    };
    let share = written.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.0001".to_owned())
}

/// One of some choices, by its name.
pub(super) fn one_of<T: Copy>(value: &DeValue<'_>, choices: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let written = text(value)?;
    let found = choices.iter().find(|choice| name(**choice) == written);
    found.copied().ok_or_else(|| {
        let names = choices.iter().map(|choice| name(*choice));
        format!("`{}` is not known; {}", plain(beginning(written, MOST_KEY_BYTES)), instead(written, names))
    })
}
