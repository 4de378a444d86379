//! Where in a perf.data file do the attributes, the features and the records lie?
//!
//! ```text
//! file form   [header 104][ids of each event][attrs][records ......][feature table][features: formats, host name, ..]
//! pipe form   [header  16][ATTR records][FEATURE records][TRACING_DATA record + formats][records ................]
//! ```
//! In:  the bytes of the file. Out: byte ranges, all of them inside the file, and what was wrong with the others.
//! Source: tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/header.c, Linux 6.12.

use super::attr::Attr;
use super::records::{Record, RecordKind, Records};
use crate::Error;
use crate::format::Endian;
use base::{Problem, Problems};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// `PERFILE2` as a little-endian machine writes it.
const MAGIC: [u8; 8] = *b"PERFILE2";
/// The same of a big-endian machine.
const MAGIC_SWAPPED: [u8; 8] = *b"2ELIFREP";
/// Size that marks the pipe form (`struct perf_pipe_file_header`).
pub(super) const PIPE_HEADER: u64 = 16;
/// Size of `struct perf_file_header`.
pub(super) const FILE_HEADER: usize = 104;
/// Size of the (offset, size) pair that ends each entry of the attribute section.
pub(super) const SECTION: usize = 16;

/// Most counters of all events: 2,500 tracepoints, as many as a kernel has, on 1,024 CPUs, or 512 on the most CPUs that a
/// kernel may have (8,192).
const MOST_IDS: usize = 1 << 22;

/// Feature numbers (`enum` in tools/perf/util/header.h) that we use.
pub(super) mod feature {
    /// The formats of the recorded tracepoints.
    pub(crate) const TRACING_DATA: u32 = 1;
    /// `uname -n`.
    pub(crate) const HOSTNAME: u32 = 3;
    /// `uname -r`.
    pub(crate) const OSRELEASE: u32 = 4;
    /// Version of perf.
    pub(crate) const VERSION: u32 = 5;
    /// `uname -m`.
    pub(crate) const ARCH: u32 = 6;
    /// Number of CPUs.
    pub(crate) const NRCPUS: u32 = 7;
    /// CPU model.
    pub(crate) const CPUDESC: u32 = 8;
    /// perf's command line.
    pub(crate) const CMDLINE: u32 = 11;
    /// Names of the events, with their attributes and ids.
    pub(crate) const EVENT_DESC: u32 = 12;
    /// Where hardware trace bytes lie in the file.
    pub(crate) const AUXTRACE: u32 = 18;
    /// Times of the first and the last sample.
    pub(crate) const SAMPLE_TIME: u32 = 21;
    /// The records lie in several files of a directory.
    pub(crate) const DIR_FORMAT: u32 = 24;
    /// How records are packed.
    pub(crate) const COMPRESSED: u32 = 27;
    /// simpleperf's: names and values, the events' names among them.
    pub(crate) const META_INFO: u32 = 129;
    /// Clock of the time stamps and the wall clock at one of its instants.
    pub(crate) const CLOCK_DATA: u32 = 29;
}

/// True for perf.data, of either byte order and form.
pub(super) fn is_perf_data(first: &[u8]) -> bool {
    first.starts_with(&MAGIC) || first.starts_with(&MAGIC_SWAPPED)
}

/// A perf.data file taken apart, its records not yet looked at.
#[derive(Debug)]
pub(super) struct Container {
    /// Byte order of everything in it.
    pub endian: Endian,
    /// True for what `perf record -o -` writes.
    pub pipe: bool,
    /// The events that were opened.
    pub(crate) attrs: Vec<Attr>,
    /// Where the `struct perf_event_attr` of each of them lies.
    pub(crate) attr_places: Vec<Range<usize>>,
    /// Where the contents of each feature lie.
    pub features: BTreeMap<u32, Range<usize>>,
    pub records: Range<usize>,
    /// Ids that may still be taken in.
    ids_left: usize,
    pub problems: Problems,
}

impl Container {
    /// Takes `bytes` apart.
    ///
    /// # Errors
    /// If the header is cut short, or no event is described.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let endian = if bytes.starts_with(&MAGIC) { Endian::Little } else { Endian::Big };
        let header = |at: usize| bytes.get(at..at + 8).map(|word| endian.unsigned(word));
        let mut container = Self {
            endian,
            pipe: header(8) == Some(PIPE_HEADER),
            attrs: Vec::new(),
            attr_places: Vec::new(),
            features: BTreeMap::new(),
            records: 0..0,
            ids_left: MOST_IDS,
            problems: Problems::default(),
        };
        if container.pipe {
            container.records = PIPE_HEADER as usize..bytes.len();
            container.parse_pipe(bytes, path);
        } else if bytes.len() >= FILE_HEADER {
            container.parse_file(bytes, path);
        } else {
            return Err(Error::Damaged {
                file: path.to_owned(),
                offset: 0,
                expected: format!("a header of {FILE_HEADER} bytes"),
                found: format!("{} bytes", bytes.len()),
            });
        }
        if container.attrs.is_empty() {
            return Err(Error::Damaged {
                file: path.to_owned(),
                offset: if container.pipe { PIPE_HEADER } else { header(24).unwrap_or(0) },
                expected: "the attributes of at least one event".into(),
                found: "none".into(),
            });
        }
        Ok(container)
    }

    fn parse_file(&mut self, bytes: &[u8], path: &Path) {
        let endian = self.endian;
        let word = |at: usize| bytes.get(at..at + 8).map_or(0, |word| endian.unsigned(word));
        self.parse_attrs(bytes, path, word(16), word(24), word(32));
        let (offset, size) = (word(40), word(48));
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        if size == 0 {
            // perf fills in the size when it ends; a killed one leaves 0, and no features behind the records.
            self.records = start..bytes.len();
            self.problems.note(Problem::at(
                path.display().to_string(),
                48,
                "the size of the record section",
                "0",
                0,
                "perf was killed before it wrote the size of its records and the formats of its tracepoints; \
                 the records are read up to the end of the file",
            ));
            return;
        }
        let end = offset.saturating_add(size);
        let end_in_file = usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len());
        self.records = start..end_in_file.max(start);
        if end > bytes.len() as u64 {
            self.problems.note(Problem::at(
                path.display().to_string(),
                offset,
                format!("{size} bytes of records and the features behind them"),
                format!("the end of the file after {} bytes", self.records.len()),
                0,
                "the file is truncated: the formats of its tracepoints were at its end",
            ));
            return;
        }
        let bitmap: Vec<u64> = (0..4).map(|index| word(72 + 8 * index)).collect();
        let mut entry = end_in_file;
        for number in (0..256).filter(|number| bitmap[number / 64] >> (number % 64) & 1 == 1) {
            let (offset, size) = (word(entry), word(entry + 8));
            match range_in(bytes, offset, size) {
                Some(range) if entry + SECTION <= bytes.len() => {
                    self.features.insert(number as u32, range);
                }
                _ => self.problems.note(Problem::at(
                    path.display().to_string(),
                    entry as u64,
                    "a feature section inside the file",
                    format!("feature {number}: {size} bytes at {offset:#x}"),
                    size.min(bytes.len() as u64),
                    "a feature section of perf.data is outside the file and is ignored",
                )),
            }
            entry += SECTION;
        }
    }

    fn parse_attrs(&mut self, bytes: &[u8], path: &Path, entry_size: u64, offset: u64, size: u64) {
        let endian = self.endian;
        let section = range_in(bytes, offset, size);
        let entry_size = usize::try_from(entry_size).unwrap_or(0);
        let (Some(section), true) = (section, entry_size > SECTION) else {
            self.problems.note(Problem::at(
                path.display().to_string(),
                offset,
                "the attribute section inside the file",
                format!("{size} bytes at {offset:#x}, {entry_size} bytes an entry"),
                0,
                "the attribute section of perf.data is outside the file",
            ));
            return;
        };
        let whole = section.len() / entry_size;
        for start in section.step_by(entry_size).take(whole) {
            let attr = start..start + entry_size - SECTION;
            let ids = &bytes[attr.end..attr.end + SECTION];
            let ids = range_in(bytes, endian.unsigned(&ids[..8]), endian.unsigned(&ids[8..]));
            let ids = ids.map_or(&[][..], |range| &bytes[range]);
            self.add_attr(bytes, attr, ids, path);
        }
    }

    /// Takes in an event. Ranges of ids may overlap, so that their sum is not bounded by the file.
    fn add_attr(&mut self, bytes: &[u8], place: Range<usize>, ids: &[u8], path: &Path) {
        let count = ids.len() / 8;
        let taken = count.min(self.ids_left);
        self.ids_left -= taken;
        if taken < count {
            self.problems.note(Problem::at(
                path.display().to_string(),
                None,
                format!("at most {MOST_IDS} ids of counters in all"),
                "more",
                ((count - taken) * 8) as u64,
                "the events of perf.data claim more counters than any machine has; samples of the others are ignored",
            ));
        }
        if let Some(attr) = Attr::parse(&bytes[place.clone()], &ids[..taken * 8], self.endian) {
            self.attrs.push(attr);
            self.attr_places.push(place);
        }
    }

    /// Reads the records before the first one of a running event.
    fn parse_pipe(&mut self, bytes: &[u8], path: &Path) {
        let endian = self.endian;
        let mut records = Records::new(bytes, self.records.clone(), endian, path);
        while let Some(Record { kind, body, trailer, .. }) = records.next(&mut self.problems) {
            let start = trailer.start - body.len();
            match kind {
                RecordKind::ATTR => {
                    let attr_size = body.get(4..8).map_or(0, |size| endian.unsigned(size)) as usize;
                    let (attr, ids) = body.split_at(attr_size.min(body.len()));
                    self.add_attr(bytes, start..start + attr.len(), ids, path);
                }
                RecordKind::FEATURE if body.len() >= 8 => {
                    self.features.insert(endian.unsigned(&body[..8]) as u32, start + 8..start + body.len());
                }
                RecordKind::TRACING_DATA => {
                    self.features.insert(feature::TRACING_DATA, trailer);
                }
                RecordKind::SAMPLE | RecordKind::COMPRESSED | RecordKind::COMPRESSED2 => break,
                _ => {}
            }
        }
    }
}

/// `offset..offset + size`, if it lies inside `bytes`.
fn range_in(bytes: &[u8], offset: u64, size: u64) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= bytes.len()).then_some(start..end)
}
