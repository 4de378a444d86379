//! What has a recorder left that was killed, or is still at work?
//!
//! ```text
//! trace.partial/head.dat    a trace.dat without events: formats, clock, thread names, written again every second
//! trace.partial/cpuN.raw    the ring-buffer pages of CPU N, one behind the other, as the kernel gave them
//! ```
//! The same pages stand in a finished trace.dat, so they are read by the same code; only their place differs. What is not
//! there is told as a problem: the end, and with it the kernel's counters of lost events.

use super::index::Search;
use super::layout::CpuData;
use super::{TraceDat, described, map, opened};
use crate::error::Error;
use base::Problem;
use std::path::Path;

/// The description of the recording.
pub const HEAD: &str = "head.dat";

/// Name of the file with the pages of a CPU.
pub fn raw_name(cpu: u32) -> String {
    format!("cpu{cpu}.raw")
}

/// True if `directory` holds a recording that was not finished.
pub fn sniff(directory: &Path) -> bool {
    directory.join(HEAD).is_file()
}

/// Opens what is there.
///
/// # Errors
/// If the description cannot be read.
pub fn open(directory: &Path) -> Result<TraceDat, Error> {
    let head = map(&directory.join(HEAD))?;
    let mut layout = described(directory, &head)?;
    let io = |source| Error::Io { file: directory.to_owned(), source };
    let mut cpus: Vec<u32> = std::fs::read_dir(directory)
        .map_err(io)?
        .filter_map(|file| file.ok()?.file_name().to_str()?.strip_prefix("cpu")?.strip_suffix(".raw")?.parse().ok())
        .collect();
    cpus.sort_unstable();
    let mut files = vec![head];
    let mut indexes = Vec::new();
    let mut cut_bytes = 0;
    if let Some(mut buffer) = layout.buffers.pop() {
        layout.buffers.clear();
        buffer.compressed = false;
        for cpu in cpus {
            let file = map(&directory.join(raw_name(cpu)))?;
            let page = if buffer.page_size == 0 { layout.page_size } else { buffer.page_size };
            let rest = file.bytes.len() % page;
            cut_bytes += rest as u64;
            let data = CpuData { cpu, offset: 0, size: (file.bytes.len() - rest) as u64 };
            buffer.cpus.push(data);
            let search = Search { file: files.len(), bytes: &file.bytes, name: &file.name, layout: &layout };
            indexes.push(search.pieces(&buffer, data));
            files.push(file);
        }
        layout.buffers.push(buffer);
    }
    layout.problems.push(unfinished(directory, cut_bytes));
    Ok(opened(directory, files, layout, vec![indexes]))
}

/// What can be missing of a recording that has no end.
fn unfinished(directory: &Path, cut_bytes: u64) -> Problem {
    let name = directory.display().to_string();
    let cut = if cut_bytes == 0 { String::new() } else { format!(", and {cut_bytes} bytes of pages cut short") };
    let text = format!(
        "{name}: the recorder has not finished (killed, a full disk, or still at work): up to a second of events at the \
         end is missing, and the kernel's counters of lost events{cut}; `kvmscope undo` removes what a killed one left on \
         the host"
    );
    Problem::at(name, None, "a finished trace.dat", "a partial one", cut_bytes, text)
}
