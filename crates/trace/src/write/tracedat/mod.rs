//! How are pages and descriptions put together to a `trace.dat`, version 6 or 7?
//!
//! ```text
//! v6  head | header_page, header_event | ftrace formats | formats | kallsyms | printk | cmdlines
//!     | CPUs | "options  " .. 0 | "flyrecord" (offset, size) per CPU | pages ..
//!     | "flyrecord" (offset, size) per CPU of the next instance | pages ..
//! v7  head, compression | sections 16 17 18 19 20 21 | OPTIONS -> | buffer section | OPTIONS (one BUFFER each) -> ..
//! ```
//! In: a [`TraceDat`], which is all but the events, and per CPU a reader of raw pages, as the kernel's
//! `trace_pipe_raw` gives them; nothing but one chunk of pages is held in memory. [`records::Records`] makes pages out
//! of records first. Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5); sizes and offsets of compressed buffers as
//! trace-cmd 3.1.6 writes them.

mod options;
pub(super) mod parts;
mod records;
mod v6;
mod v7;

pub use options::FileOption;
pub use records::Records;

use super::layout::Machine;
use crate::format::EventFormat;
use std::io::{self, Read, Seek, Write};

/// Everything in a trace.dat but its events.
#[derive(Debug, Clone)]
pub struct TraceDat {
    /// Which of the two layouts.
    pub version: Version,
    /// Byte order and size of a long.
    pub machine: Machine,
    /// Size of a page of the machine and of its ring buffer.
    pub page_bytes: u32,
    /// How sections and pages are compressed; version 6 knows no compression and ignores it.
    pub compression: Compression,
    /// Text of `events/header_page`.
    pub header_page: String,
    /// Text of `events/header_event`.
    pub header_event: String,
    /// Format texts of the group `ftrace`.
    pub ftrace_formats: Vec<String>,
    /// Format texts of the other groups.
    pub formats: Vec<(String, Vec<String>)>,
    /// Text of `/proc/kallsyms`, or nothing.
    pub kallsyms: String,
    /// Text of `printk_formats`, or nothing.
    pub printk: String,
    /// Thread names.
    pub comms: Vec<(i32, String)>,
    /// What the file says of itself, in this order.
    pub options: Vec<FileOption>,
    /// In version 7, put each option into an OPTIONS section of its own, to lengthen the chain.
    pub split_options: bool,
}

/// Version of the file layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One header, then pages.
    V6,
    /// Sections.
    V7,
}

/// How sections and pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// The pages of one tracing instance.
pub struct Instance<'a> {
    /// Its name; the top instance has none.
    pub name: String,
    /// Its clock.
    pub clock: String,
    /// Its CPUs and their pages. Every read must give whole pages in the end; a rest is kept as it is.
    pub cpus: Vec<(u32, Box<dyn Read + 'a>)>,
}

impl TraceDat {
    /// A description for `machine` without events, with standard headers and 4,096-byte pages.
    pub fn new(version: Version, machine: Machine) -> Self {
        let page_bytes = 4096;
        Self {
            version,
            machine,
            page_bytes,
            compression: Compression::None,
            header_page: super::page::header_page(machine, page_bytes),
            header_event: super::page::HEADER_EVENT.to_owned(),
            ftrace_formats: Vec::new(),
            formats: Vec::new(),
            kallsyms: String::new(),
            printk: String::new(),
            comms: Vec::new(),
            options: Vec::new(),
            split_options: false,
        }
    }

    /// Takes the format texts of `formats`, grouped by system in order of first appearance.
    pub fn describe(&mut self, formats: &[EventFormat]) {
        self.formats.clear();
        for format in formats {
            let text = super::layout::text(format);
            match self.formats.iter_mut().find(|(system, _)| *system == format.system) {
                Some((_, texts)) => texts.push(text),
                None => self.formats.push((format.system.clone(), vec![text])),
            }
        }
    }

    /// Writes the file; `instances` begins with the top instance.
    ///
    /// # Errors
    /// If reading pages or writing fails.
    pub fn write_to(&self, out: &mut (impl Write + Seek), instances: Vec<Instance<'_>>) -> io::Result<()> {
        match self.version {
            Version::V6 => v6::write(self, out, instances),
            Version::V7 => v7::write(self, out, instances),
        }?;
        out.flush()
    }
}
