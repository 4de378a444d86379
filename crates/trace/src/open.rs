//! Which format is this? Decided by the first bytes, never by the name.

use crate::error::Error;
use crate::lane::Trace;
use crate::{ctf, perfdata, text, tracedat};
use std::io::Read;
use std::path::Path;

/// How many bytes of a file are looked at: enough for the first lines of a text.
const FIRST_BYTES: u64 = 64 << 10;

/// Opens a trace file, a directory that holds a CTF trace, or one that a recorder did not finish.
///
/// # Errors
/// If nothing at `path` is a format we read, or its description of events is damaged.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    let io = |source| Error::Io { file: path.to_owned(), source };
    let unknown = |found: String| Error::UnknownFormat { file: path.to_owned(), found };
    if path.is_dir() {
        if ctf::sniff(path) {
            return ctf::open(path);
        }
        if tracedat::partial::sniff(path) {
            return Ok(Box::new(tracedat::partial::open(path)?));
        }
        return Err(unknown("it is a directory without a CTF `metadata` file".into()));
    }
    let mut first = Vec::new();
    base::files::open(path).and_then(|file| file.take(FIRST_BYTES).read_to_end(&mut first)).map_err(io)?;
    if first.is_empty() {
        return Err(unknown("it is empty".into()));
    }
    if tracedat::sniff(&first) {
        return Ok(Box::new(tracedat::open(path)?));
    }
    if perfdata::sniff(&first) {
        return perfdata::open(path);
    }
    if ctf::sniff(path) {
        return ctf::open(path);
    }
    if text::sniff_file(path, &first) {
        return text::open(path);
    }
    if let Some(reason) = text::why_not(&first) {
        return Err(Error::Unsupported { file: path.to_owned(), reason: reason.into() });
    }
    // A recording may be somebody else's, and a link in it lead to what is nobody's to show.
    if path.canonicalize().ok() != std::path::absolute(path).ok() {
        return Err(unknown("it is reached through a link, so its content is not quoted".into()));
    }
    if let Some(line) = base::plain::first_line(&first) {
        return Err(unknown(format!("it begins with {line:?}")));
    }
    let shown: Vec<String> = first.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Err(unknown(format!("it starts with the bytes {}", shown.join(" "))))
}

/// Do the first bytes look like a trace that [`open`] reads? Nothing more is read, so a damaged trace looks like one.
pub fn looks_like_trace(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = base::files::open(path).and_then(|file| file.take(FIRST_BYTES).read_to_end(&mut first));
    read.is_ok() && (tracedat::sniff(&first) || perfdata::sniff(&first) || text::sniff_file(path, &first))
}
