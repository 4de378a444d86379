//! What has a recorder left that was killed, or is still at work?
//!
//! ```text
//! trace.partial/head.dat    a trace.dat without events: formats, clock, thread names, written again every second
//! trace.partial/cpuN.raw    the ring-buffer pages of CPU N, one behind the other, as the kernel gave them
//! ```
//! The same pages stand in a finished trace.dat, so they are read by the same code; only their place differs. What is not
//! there is told as a problem: the end, and with it the kernel's counters of lost events.

use super::index::Search;
use super::layout::{CpuData, Layout};
use super::{Content, TraceDat, described, map, opened};
use crate::error::Error;
use base::Problem;
use std::ops::Range;
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
    Ok(Mapped::of(directory)?.open(directory, |pages| 0..pages.count()))
}

/// What is there, mapped.
pub(super) struct Mapped {
    head: Content,
    layout: Layout,
    /// By CPU.
    files: Vec<(u32, Content)>,
    /// Bytes of a page.
    page_bytes: usize,
}

/// The whole pages of one CPU.
#[derive(Clone, Copy)]
pub(super) struct Pages<'m> {
    /// The CPU.
    pub cpu: u32,
    bytes: &'m [u8],
    page_bytes: usize,
}

impl<'m> Pages<'m> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.page_bytes
    }

    /// One of them.
    pub fn page(&self, number: usize) -> Option<&'m [u8]> {
        self.bytes.chunks_exact(self.page_bytes).nth(number)
    }
}

impl Mapped {
    /// Maps what lies in `directory`.
    ///
    /// # Errors
    /// If the description cannot be read.
    pub fn of(directory: &Path) -> Result<Self, Error> {
        let head = map(&directory.join(HEAD))?;
        let layout = described(directory, &head)?;
        let own = layout.buffers.last().map_or(0, |buffer| buffer.page_size);
        let page_bytes = if own == 0 { layout.page_size } else { own };
        let mut files = Vec::new();
        if !layout.buffers.is_empty() {
            for cpu in cpus(directory)? {
                files.push((cpu, map(&directory.join(raw_name(cpu)))?));
            }
        }
        Ok(Self { head, layout, files, page_bytes })
    }

    /// What the description says.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The pages of each CPU.
    pub fn pages(&self) -> impl Iterator<Item = Pages<'_>> {
        let page_bytes = self.page_bytes;
        self.files.iter().map(move |(cpu, file)| Pages { cpu: *cpu, bytes: &file.bytes, page_bytes })
    }

    /// Opens those pages of each CPU that `wanted` says.
    pub fn open(self, directory: &Path, mut wanted: impl FnMut(Pages<'_>) -> Range<usize>) -> TraceDat {
        let Self { head, mut layout, files: raw, page_bytes } = self;
        let mut files = vec![head];
        let mut indexes = Vec::new();
        let mut cut_bytes = 0;
        if let Some(mut buffer) = layout.buffers.pop() {
            layout.buffers.clear();
            buffer.compressed = false;
            for (cpu, file) in raw {
                cut_bytes += (file.bytes.len() % page_bytes) as u64;
                let wanted = wanted(Pages { cpu, bytes: &file.bytes, page_bytes });
                let (offset, size) = (wanted.start * page_bytes, wanted.len() * page_bytes);
                let data = CpuData { cpu, offset: offset as u64, size: size as u64 };
                buffer.cpus.push(data);
                let search = Search { file: files.len(), bytes: &file.bytes, name: &file.name, layout: &layout };
                indexes.push(search.pieces(&buffer, data, usize::MAX));
                files.push(file);
            }
            layout.buffers.push(buffer);
        }
        layout.problems.push(unfinished(directory, cut_bytes));
        opened(directory, files, layout, vec![indexes])
    }
}

/// The CPUs whose pages lie in `directory`, in order.
fn cpus(directory: &Path) -> Result<Vec<u32>, Error> {
    let io = |source| Error::Io { file: directory.to_owned(), source };
    let mut cpus: Vec<u32> = std::fs::read_dir(directory)
        .map_err(io)?
        .filter_map(|file| file.ok()?.file_name().to_str()?.strip_prefix("cpu")?.strip_suffix(".raw")?.parse().ok())
        .collect();
    cpus.sort_unstable();
    Ok(cpus)
}

/// What can be missing of a recording that has no end.
fn unfinished(directory: &Path, cut_bytes: u64) -> Problem {
    let name = directory.display().to_string();
    let cut = if cut_bytes == 0 { String::new() } else { format!(", and {cut_bytes} bytes of truncated pages") };
    let text = format!(
        "{name}: the recorder did not finish (killed, disk full, or still running): up to a second of events at the \
         end is missing, and so are the kernel's counters of lost events{cut}; `kvmscope undo` removes what a killed \
         recorder left on the host"
    );
    Problem::at(name, None, "a finished trace.dat", "a partial one", cut_bytes, text)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lane::{Reading, Trace};
    use crate::replay::{Event, Listener, replay};
    use crate::request::Request;
    use crate::write::layout::Machine;
    use crate::write::page::{PageBuilder, PageStyle};
    use crate::write::tracedat::{Compression, FileOption, Instance, TraceDat as Written, Version};
    use std::fs;
    use std::io::Cursor;

    const FORMAT: &str = "name: kvm_entry\nID: 700\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
    const PAGE_BYTES: u32 = 4096;

    fn head() -> Written {
        Written {
            compression: Compression::Zstd,
            formats: vec![("kvm".to_owned(), vec![FORMAT.to_owned()])],
            options: vec![FileOption::Tsc2Nsec { mult: 1 << 31, shift: 32, offset: 0 }],
            comms: vec![(7, "CPU 0/KVM".to_owned())],
            ..Written::new(Version::V7, Machine::X86_64)
        }
    }

    fn pages(events: u64) -> Vec<u8> {
        pages_at((0..events).map(|number| 1_000 + 2 * number))
    }

    /// Pages with an event at each of these ticks.
    pub(in crate::tracedat) fn pages_at(ticks: impl Iterator<Item = u64>) -> Vec<u8> {
        let (mut pages, mut out) = (PageBuilder::new(Machine::X86_64, PAGE_BYTES, PageStyle::default()), Vec::new());
        for ticks in ticks {
            let record = [700u32.to_le_bytes(), 7u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
            pages.event(ticks, &record, &mut out).unwrap();
        }
        pages.finish(&mut out).unwrap();
        out
    }

    /// A recorder's directory with these pages.
    pub(in crate::tracedat) fn left_behind(cpus: &[(u32, Vec<u8>)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let instance = Instance { name: String::new(), clock: "x86-tsc".to_owned(), cpus: Vec::new() };
        let mut out = Cursor::new(Vec::new());
        head().write_to(&mut out, vec![instance]).unwrap();
        fs::write(directory.path().join(HEAD), out.into_inner()).unwrap();
        cpus.iter().for_each(|(cpu, pages)| fs::write(directory.path().join(raw_name(*cpu)), pages).unwrap());
        directory
    }

    #[derive(Default)]
    struct Heard(Vec<(u64, u32)>);

    impl Listener for Heard {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push((event.time_ns, event.cpu));
        }
    }

    /// Time and CPU of each event, and how much damage was met.
    pub(in crate::tracedat) fn heard(trace: &dyn Trace) -> (Vec<(u64, u32)>, usize) {
        let request = Request::everything(trace.facts());
        let mut heard = Heard::default();
        let totals = replay(trace, &Reading { request: &request, fitted: None }, &mut heard);
        (heard.0, totals.problems.list().len())
    }

    #[test]
    fn whole_pages_of_all_cpus_are_read_and_a_cut_page_is_said() {
        let mut cut = pages(600);
        cut.truncate(2 * PAGE_BYTES as usize + 100);
        // An event takes 16 bytes with its header, and `commit`, behind the time, says how many bytes are in use.
        let commit = |page: &[u8]| usize::from(u16::from_le_bytes([page[8], page[9]]));
        let in_two_pages: usize = cut.chunks(PAGE_BYTES as usize).take(2).map(|page| commit(page) / 16).sum();
        let directory = left_behind(&[(0, pages(3)), (5, cut), (6, Vec::new())]);
        let trace = crate::open(directory.path()).unwrap();
        let (events, damaged) = heard(trace.as_ref());
        assert_eq!(&events[..2], &[(500, 0), (500, 5)], "ticks are halved by the scale");
        assert_eq!(events.iter().filter(|(_, cpu)| *cpu == 0).count(), 3);
        assert_eq!(events.iter().filter(|(_, cpu)| *cpu == 5).count(), in_two_pages);
        assert_eq!(damaged, 0, "what is cut short is no damage of its own");
        let problem = &trace.facts().problems[0];
        assert!(problem.text.contains("did not finish") && problem.text.contains("100 bytes"), "{}", problem.text);
        assert_eq!(trace.facts().comms[&7], "CPU 0/KVM");
    }

    #[test]
    fn it_can_be_cut_to_a_trace_of_its_own() {
        let directory = left_behind(&[(0, pages(300))]);
        let whole = directory.path().join("whole.dat");
        let window = base::Span { from_ns: 0, to_ns: 100 };
        crate::tracedat::cut(directory.path(), &whole, window).unwrap();
        let trace = crate::open(&whole).unwrap();
        assert_eq!(heard(trace.as_ref()).0.len(), 100);
    }

    #[test]
    fn without_its_head_it_is_nothing() {
        let directory = left_behind(&[(0, pages(3))]);
        fs::remove_file(directory.path().join(HEAD)).unwrap();
        assert!(!sniff(directory.path()));
        assert!(crate::open(directory.path()).is_err());
        fs::write(directory.path().join(HEAD), b"\x17\x08\x44tracing7\0").unwrap();
        assert!(crate::open(directory.path()).is_err());
    }
}
