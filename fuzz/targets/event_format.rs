//! Any text as the kernel's description of an event, and any bytes as a record of it.
//!
//! An input is the text, a NUL, and the record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::extract::Extract;
use trace::format::{Endian, EventFormat};
use trace::{Batch, Wanted};

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, record) = (String::from_utf8_lossy(&bytes[..at]), bytes.get(at + 1..).unwrap_or(&[]));
    let Some(format) = EventFormat::parse("kvm", &text) else { return };
    let event = format.event_type();
    let fields = event.fields.iter().take(trace::request::MOST_FIELDS).map(|field| vec![field.name.clone()]).collect();
    let wanted = Wanted { names: vec![event.name], fields };
    for endian in [Endian::Little, Endian::Big] {
        let extract = Extract::compile(&format, &wanted, endian);
        let (mut words, mut contents, mut plain) = (vec![0; extract.words()], Vec::new(), Batch::default());
        match endian {
            Endian::Little => extract.fill::<false>(record, record.first_chunk(), &mut words, &mut contents),
            Endian::Big => extract.fill::<true>(record, record.first_chunk(), &mut words, &mut contents),
        }
        extract.add(record, &mut plain);
        assert!(words.len() <= wanted.fields.len() + 1, "at most one value per field, and the mask");
        assert_eq!((&words[..], contents), (&plain.values[..], plain.bytes), "both ways find the same");
    }
});
