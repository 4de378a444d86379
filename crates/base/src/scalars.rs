//! A JSON document as its numbers and texts, each with the names that lead to it, in the order of the file.
//!
//! So what stands before damage, or before the end of a file that was cut, is read.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Deeper names are read and not told.
const MOST_NAMES: usize = 8;

/// A number or a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A number that is whole and not negative.
    Count(u64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Scalar {
    /// It, if it is whole and not negative.
    pub fn count(&self) -> Option<u64> {
        match self {
            Scalar::Count(count) => Some(*count),
            Scalar::Number(_) | Scalar::Text(_) => None,
        }
    }

    /// It, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Count(count) => Some(*count as f64),
            Scalar::Number(number) => Some(*number).filter(|number| number.is_finite()),
            Scalar::Text(_) => None,
        }
    }
}

/// Where a document ends too early, or is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The byte.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// Calls `hear` with the names and the value of each.
///
/// # Errors
/// If the document is damaged: what stands before that was told.
pub fn each(bytes: &[u8], hear: &mut dyn FnMut(&[String], Scalar)) -> Result<(), Broken> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let walk = Walk { names: &mut Vec::new(), hear };
    walk.deserialize(&mut document)
        .and_then(|()| document.end())
        .map_err(|error| Broken { offset: offset_of(bytes, error.line(), error.column()), reason: error.to_string() })
}

/// The byte of a place that is told by line and column, both from 1.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let before: usize =
        bytes.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(bytes.len()) as u64
}

struct Walk<'w> {
    names: &'w mut Vec<String>,
    hear: &'w mut dyn FnMut(&[String], Scalar),
}

impl Walk<'_> {
    fn tell<E>(self, value: Scalar) -> Result<(), E> {
        (self.hear)(self.names, value);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.tell(Scalar::Count(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.tell(Scalar::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.tell(Scalar::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.tell(Scalar::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walk { names: self.names, hear: self.hear })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let is_told = self.names.len() < MOST_NAMES;
            if is_told {
                self.names.push(name);
            }
            map.next_value_seed(Walk { names: self.names, hear: self.hear })?;
            if is_told {
                self.names.pop();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (Vec<String>, Option<u64>) {
        let mut told = Vec::new();
        let done = each(text.as_bytes(), &mut |names, value| told.push(format!("{}={value:?}", names.join("."))));
        (told, done.err().map(|broken| broken.offset))
    }

    #[test]
    fn every_number_is_told_with_its_names() {
        let (all, broken) = told(r#"{"a": {"1": 7, "b": [-2, 0.5, null]}, "c": "d"}"#);
        assert_eq!(all, ["a.1=Count(7)", "a.b=Number(-2.0)", "a.b=Number(0.5)", "c=Text(\"d\")"]);
        assert_eq!(broken, None);
    }

    #[test]
    fn what_stands_before_damage_is_told_with_its_place() {
        let (before, broken) = told("{\"a\": {\"1\": 7,\n\"2\": 9,\n\"3\": x}}");
        assert_eq!(before, ["a.1=Count(7)", "a.2=Count(9)"]);
        assert_eq!(broken, Some(28));
        let (cut, broken) = told("{\"a\": {\"1\": 7,\n\"2\": 9,");
        assert!(cut.len() == 2 && broken.is_some());
        assert!(told(&"[".repeat(100_000)).1.is_some(), "a tower of brackets ends");
    }
}
