//! Integers, floating-point numbers and strings, and the attributes in braces that say what they are like.

use super::parser::{Parser, Value, order_named};
use crate::Error;
use crate::ctf::model::{Class, Float, Integer};
use crate::format::Endian;
use std::sync::Arc;

/// Largest alignment in bits; anything above is damage.
const LARGEST_ALIGN: u64 = 1 << 16;

/// An attribute: its name, its value and where it stands.
pub(super) type Attribute = (String, Value, usize);

impl Parser<'_> {
    /// `{ name = value; ... }`
    pub(super) fn attributes(&mut self) -> Result<Vec<Attribute>, Error> {
        let mut attributes = Vec::new();
        self.expect("{")?;
        while !self.takes("}") {
            let place = self.place();
            let name = self.name()?;
            self.expect("=")?;
            attributes.push((name, self.value()?, place));
            self.expect(";")?;
        }
        Ok(attributes)
    }

    pub(super) fn integer(&mut self) -> Result<Arc<Class>, Error> {
        let place = self.place();
        self.next();
        let (mut bits, mut align, mut signed, mut order) = (None, None, false, self.native);
        let (mut text, mut clock) = (false, None);
        for attribute in self.attributes()? {
            match attribute.0.as_str() {
                "size" => bits = Some(self.count(&attribute, 1, 64)? as u8),
                "align" => align = Some(self.alignment(&attribute)?),
                "signed" => signed = self.truth(&attribute)?,
                "byte_order" => order = self.order(&attribute)?,
                "encoding" => text = is_text(&attribute.1),
                "map" => clock = clock_of(&attribute.1),
                _ => {}
            }
        }
        let bits = bits.ok_or_else(|| self.damaged(place, "the size of an integer", "an integer without one"))?;
        let align = align.unwrap_or(if bits.is_multiple_of(8) { 8 } else { 1 });
        let (labels, roles) = (Vec::new(), Vec::new());
        Ok(Arc::new(Class::Integer(Integer { bits, align, signed, order, swapped: false, text, clock, labels, roles })))
    }

    pub(super) fn float(&mut self) -> Result<Arc<Class>, Error> {
        let place = self.place();
        self.next();
        let (mut exponent, mut mantissa, mut align, mut order) = (0, 0, 1, self.native);
        for attribute in self.attributes()? {
            match attribute.0.as_str() {
                "exp_dig" => exponent = self.count(&attribute, 1, 64)?,
                "mant_dig" => mantissa = self.count(&attribute, 1, 128)?,
                "align" => align = self.alignment(&attribute)?,
                "byte_order" => order = self.order(&attribute)?,
                _ => {}
            }
        }
        // The digits of the mantissa count its hidden bit but not its sign: 8 + 24 and 11 + 53 (IEEE 754).
        let bits = match (exponent, mantissa) {
            (8, 24) => 32,
            (11, 53) => 64,
            _ => {
                let found = format!("exp_dig {exponent}, mant_dig {mantissa}");
                return Err(self.damaged(place, "a floating-point number of 8 + 24 or 11 + 53 bits", found));
            }
        };
        Ok(Arc::new(Class::Float(Float { bits, align, order, swapped: false })))
    }

    pub(super) fn string(&mut self) -> Result<Arc<Class>, Error> {
        self.next();
        if self.sees("{") {
            self.attributes()?;
        }
        Ok(Arc::new(Class::Text { unit: 1, order: self.native }))
    }

    pub(super) fn count(&self, (name, value, place): &Attribute, least: u64, most: u64) -> Result<u64, Error> {
        let number = if let Value::Number(number) = value { u64::try_from(*number).ok() } else { None };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.damaged(*place, &format!("`{name}` from {least} to {most}"), value.to_string()))
    }

    pub(super) fn alignment(&self, attribute: &Attribute) -> Result<u32, Error> {
        let align = self.count(attribute, 1, LARGEST_ALIGN)? as u32;
        if align.is_power_of_two() {
            return Ok(align);
        }
        Err(self.damaged(attribute.2, "an alignment that is a power of two", align.to_string()))
    }

    pub(super) fn order(&self, (_, value, place): &Attribute) -> Result<Endian, Error> {
        match value {
            Value::Names(names) if names.len() == 1 && names[0] == "native" => Some(self.native),
            Value::Names(names) if names.len() == 1 => order_named(&names[0]),
            _ => None,
        }
        .ok_or_else(|| self.damaged(*place, "native, network, le or be", value.to_string()))
    }

    pub(super) fn truth(&self, (_, value, place): &Attribute) -> Result<bool, Error> {
        match value {
            Value::Number(number) => Ok(*number != 0),
            Value::Names(names) if names[0].eq_ignore_ascii_case("true") => Ok(true),
            Value::Names(names) if names[0].eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.damaged(*place, "true or false", value.to_string())),
        }
    }
}

fn is_text(value: &Value) -> bool {
    let name = value.to_string().to_ascii_uppercase();
    matches!(name.as_str(), "UTF8" | "UTF-8" | "UTF_8" | "ASCII")
}

/// `clock.NAME.value`
fn clock_of(value: &Value) -> Option<String> {
    match value {
        Value::Names(names) if names.len() >= 2 && names[0] == "clock" => Some(names[1].clone()),
        _ => None,
    }
}
