//! A card of one's own, out of its data sheet: TOML, schema `kvmscope.nic/1`.

use super::model::nic::Hairpin as Rule;
use super::quantity;
use super::read::of_pcie;
use super::stated::{Known, StatedCard};
use facts::MOST_PLAN_BYTES;
use facts::fields::{Error, Fields, Source, one_of, text};
use toml::de::DeTable;

/// What a file's key `schema` says.
const SHEET_SCHEMA: &str = "kvmscope.nic/1";

const OF_SHEET: &[&str] =
    &["schema", "model", "link", "ports", "pcie", "pps", "pps_of_each_port", "pps_below", "between_vfs", "source"];

/// Reads a card: its port and its link at least; what a sheet does not say stays unknown.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read_sheet(file: &str, written: &str) -> Result<StatedCard, Error> {
    let source = Source { file, text: written };
    if written.len() > MOST_PLAN_BYTES {
        return Err(source.error(0, format!("a data sheet has at most {MOST_PLAN_BYTES} bytes")));
    }
    let document = DeTable::parse(written)
        .map_err(|error| source.error(error.span().map_or(0, |span| span.start), error.message()))?;
    let fields = Fields::of(source, "a card", 0, document.get_ref(), OF_SHEET)?;
    fields.needed("schema", |value| match text(value)? {
        SHEET_SCHEMA => Ok(()),
        _ => Err(format!("this program reads \"{SHEET_SCHEMA}\"")),
    })?;
    let from = fields.read("source", text)?.map_or_else(|| file.to_owned(), str::to_owned);
    let mut card = StatedCard {
        model: Some(Known { value: fields.needed("model", text)?.to_owned(), from: from.clone() }),
        line_bits_per_s: Some(fields.needed("link", |value| quantity::bits_per_s(text(value)?))?)
            .map(|value| Known { value, from: from.clone() }),
        ..StatedCard::default()
    };
    of_pcie(&fields, &mut card, &from)?;
    of_limits(&fields, &mut card, &from)?;
    Ok(card)
}

/// Packets a second of a card, and how it forwards between its VFs, as a sheet or a plan says it.
pub(super) fn of_limits(fields: &Fields<'_, '_>, card: &mut StatedCard, from: &str) -> Result<(), Error> {
    card.packets_per_s =
        fields.read("pps", |value| quantity::pps(text(value)?))?.map(|value| Known { value, from: from.to_owned() });
    card.packets_are_of_each_port = fields.read("pps_of_each_port", facts::fields::flag)?.unwrap_or_default();
    card.packets_below_bytes = fields
        .read("pps_below", |value| u32::try_from(facts::fields::count(value)?).map_err(|_| "write bytes".to_owned()))?;
    card.between_vfs = fields.read("between_vfs", |value| one_of(value, &Rule::ALL, Rule::name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: &str = "schema = \"kvmscope.nic/1\"\nmodel = \"own\"\nlink = \"100G\"\npcie = { gen = 4, lanes = 16 }\npps = \"90 Mpps\"\n\
        pps_below = 128\nbetween_vfs = \"port-speed\"\nsource = \"sheet, page 3\"\n";

    #[test]
    fn a_sheet_is_a_card_with_its_source_and_what_is_wrong_has_a_place() {
        let card = read_sheet("f", SHEET).unwrap();
        assert_eq!((card.pcie.unwrap().value, card.line_bits_per_s.unwrap().value), ((4, 16), 100e9));
        let packets = card.packets_per_s.unwrap();
        assert_eq!((packets.value, packets.from.as_str()), (90e6, "sheet, page 3"));
        assert_eq!((card.packets_below_bytes, card.between_vfs), (Some(128), Some(Rule::PortSpeed)));
        for (from, to, expected) in [
            ("nic/1", "nic/2", "f:1:10: schema: this program reads \"kvmscope.nic/1\""),
            ("link = \"100G\"\n", "", "f:1:1: "),
            ("port-speed", "port-sped", "f:7:15: between_vfs: "),
            ("pps_below", "pps_bellow", "f:6:1: a card has no key `pps_bellow`; did you mean `pps_below`?"),
        ] {
            let error = read_sheet("f", &SHEET.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{to}: {error}");
        }
    }
}
