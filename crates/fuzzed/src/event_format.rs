//! Any text as the kernel's description of an event, and any bytes as a record of it.
//!
//! An input is the text, a NUL, and the record.

use crate::room::Room;
use trace::batch::{Row, STORED};
use trace::extract::Extract;
use trace::format::{Endian, EventFormat};
use trace::in_place::PADDING_BYTES;
use trace::records::Records;
use trace::{Batch, FieldKind, Wanted};

/// Panics where a promise is broken by these bytes.
pub fn event_format(_room: &Room, bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, record) = (String::from_utf8_lossy(&bytes[..at]), bytes.get(at + 1..).unwrap_or(&[]));
    let Some(format) = EventFormat::parse("kvm", &text) else { return };
    let event = format.event_type();
    let fields = event.fields.iter().take(trace::request::MOST_FIELDS).map(|field| vec![field.name.clone()]).collect();
    let wanted = Wanted { names: vec![event.name.clone()], fields };
    let positions = wanted.positions(&event);
    for endian in [Endian::Little, Endian::Big] {
        let extract = Extract::compile(&format, &wanted, endian);
        let mut stored = Batch::default();
        extract.add(record, &mut stored);
        assert!(stored.values.len() <= wanted.fields.len() + 1, "at most one value per field, and the mask");
        let Some(layout) = extract.in_place().filter(|layout| record.len() >= layout.needs_bytes()) else { continue };
        let records = [record, &[0xff; PADDING_BYTES]].concat();
        let in_place = Batch { records: Records::Own(records), layouts: [layout].into(), ..Batch::default() };
        let stored = stored.fields(&Row { layout: STORED, ..Row::default() });
        let in_place = in_place.fields(&Row::default());
        for (field, position) in positions.iter().enumerate() {
            let content =
                position.is_some_and(|at| matches!(event.fields[at].kind, FieldKind::Text | FieldKind::Bytes));
            match content {
                true => assert_eq!(stored.content(field), in_place.content(field), "both ways find the same"),
                false => assert_eq!(stored.get(field), in_place.get(field), "both ways find the same"),
            }
        }
    }
}
