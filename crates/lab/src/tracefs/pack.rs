//! What lies in `trace.partial/` becomes `trace.dat`.
//!
//! ```text
//! trace.partial/{head.dat, cpuN.raw} --> trace.dat.new --fsync--> trace.dat --> trace.partial removed
//!               {cpuN.K.raw, ..}     --the last of them alone, cut by time
//! ```
//! At every moment one of the two is whole: the partial directory changes its name before its files go.

use super::stream::full;
use crate::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace::tracedat::partial;
use trace::write::tracedat::{Instance, TraceDat};

/// Room to read each CPU's file; on a large host there are hundreds of them.
const READ_BYTES: usize = 64 << 10;

/// Writes `head.dat`, the description without events, whole or not at all.
pub(crate) fn write_head(directory: &Path, dat: &TraceDat, clock: &str) -> Result<(), Error> {
    let path = directory.join(partial::HEAD);
    let beside = directory.join("head.new");
    let instance = Instance { name: String::new(), clock: clock.to_owned(), cpus: Vec::new() };
    write(&beside, dat, vec![instance]).map_err(|error| full(&path, error))?;
    std::fs::rename(&beside, &path).map_err(|error| Error::io(&path, error))
}

/// Packs `directory` into `whole` and removes it.
pub(super) fn pack(directory: &Path, whole: &Path, dat: &TraceDat, clock: &str, cpus: &[u32]) -> Result<(), Error> {
    let beside = beside(whole);
    let packed = read_cpus(directory, cpus, dat.page_bytes).and_then(|cpus| {
        let instance = Instance { name: String::new(), clock: clock.to_owned(), cpus };
        write(&beside, dat, vec![instance])
    });
    if let Err(error) = packed {
        // Half a file only takes room on a disk that may be full; the pages are still in the partial directory.
        let _ = std::fs::remove_file(&beside);
        return Err(full(whole, error));
    }
    place(directory, &beside, whole)
}

/// The same with what a flight recorder keeps, the last `length` of what happened; returns how many nanoseconds that are.
/// The head has to hold all that the file is to say of itself.
pub(crate) fn pack_last(directory: &Path, whole: &Path, length: Duration) -> Result<u64, Error> {
    let beside = beside(whole);
    // What a recorder left there that was killed: there is none of ours yet.
    let _ = std::fs::remove_file(&beside);
    let kept_ns = trace::tracedat::cut_last(directory, &beside, length.as_nanos() as u64)?;
    File::open(&beside).and_then(|file| file.sync_all()).map_err(|error| full(whole, error))?;
    place(directory, &beside, whole)?;
    Ok(kept_ns)
}

/// Where the file is filled.
fn beside(whole: &Path) -> PathBuf {
    whole.with_extension("dat.new")
}

/// Puts the file in its place, and removes what it was made of.
fn place(directory: &Path, beside: &Path, whole: &Path) -> Result<(), Error> {
    let io = |error| Error::io(whole, error);
    std::fs::rename(beside, whole).map_err(io)?;
    let above = whole.parent().unwrap_or(whole);
    File::open(above).and_then(|above| above.sync_all()).map_err(io)?;
    let old = directory.with_extension("old");
    std::fs::rename(directory, &old).and_then(|()| std::fs::remove_dir_all(&old)).map_err(io)
}

/// Pages of each CPU; a part of a page at the end, as a full disk leaves it, is left out.
fn read_cpus(directory: &Path, cpus: &[u32], page_bytes: u32) -> io::Result<Vec<(u32, Box<dyn Read>)>> {
    let mut read: Vec<(u32, Box<dyn Read>)> = Vec::new();
    for cpu in cpus {
        let file = File::open(directory.join(partial::raw_name(*cpu)))?;
        let bytes = file.metadata()?.len();
        let whole = bytes - bytes % u64::from(page_bytes);
        read.push((*cpu, Box::new(BufReader::with_capacity(READ_BYTES, file).take(whole))));
    }
    Ok(read)
}

fn write(path: &Path, dat: &TraceDat, instances: Vec<Instance<'_>>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    dat.write_to(&mut out, instances)?;
    out.into_inner().map_err(|error| error.into_error())?.sync_all()
}
