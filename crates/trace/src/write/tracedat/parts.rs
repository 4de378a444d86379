//! The parts that both layouts share: headers, format texts, symbols, thread names.

use super::TraceDat;
use super::options::text_with_nul;
use std::fmt::Write;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Magic, version, byte order, size of a long, size of a page.
pub(in crate::write) fn head(dat: &TraceDat, version: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    text_with_nul(&mut out, version);
    out.push(u8::from(dat.machine.endian == crate::format::Endian::Big));
    out.push(dat.machine.long_bytes);
    dat.machine.put(&mut out, u64::from(dat.page_bytes), 4);
    out
}

pub(in crate::write) fn headers(dat: &TraceDat) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, text) in [("header_page", &dat.header_page), ("header_event", &dat.header_event)] {
        text_with_nul(&mut out, name);
        sized_text(dat, &mut out, text, 8);
    }
    out
}

pub(in crate::write) fn ftrace_formats(dat: &TraceDat) -> Vec<u8> {
    let mut out = Vec::new();
    dat.machine.put(&mut out, dat.ftrace_formats.len() as u64, 4);
    dat.ftrace_formats.iter().for_each(|text| sized_text(dat, &mut out, text, 8));
    out
}

pub(in crate::write) fn formats(dat: &TraceDat) -> Vec<u8> {
    let mut out = Vec::new();
    dat.machine.put(&mut out, dat.formats.len() as u64, 4);
    for (system, texts) in &dat.formats {
        text_with_nul(&mut out, system);
        dat.machine.put(&mut out, texts.len() as u64, 4);
        texts.iter().for_each(|text| sized_text(dat, &mut out, text, 8));
    }
    out
}

pub(in crate::write) fn kallsyms(dat: &TraceDat) -> Vec<u8> {
    let mut out = Vec::new();
    sized_text(dat, &mut out, &dat.kallsyms, 4);
    out
}

pub(in crate::write) fn printk(dat: &TraceDat) -> Vec<u8> {
    let mut out = Vec::new();
    sized_text(dat, &mut out, &dat.printk, 4);
    out
}

pub(in crate::write) fn cmdlines(dat: &TraceDat) -> Vec<u8> {
    let mut text = String::new();
    for (tid, comm) in &dat.comms {
        let _ = writeln!(text, "{tid} {comm}");
    }
    let mut out = Vec::new();
    sized_text(dat, &mut out, &text, 8);
    out
}

fn sized_text(dat: &TraceDat, out: &mut Vec<u8>, text: &str, size_bytes: usize) {
    dat.machine.put(out, text.len() as u64, size_bytes);
    out.extend_from_slice(text.as_bytes());
}
