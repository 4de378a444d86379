//! What has a recorder left that was killed, or is still at work?
//!
//! ```text
//! trace.partial/head.dat    a trace.dat without events: formats, clock, thread names, written again every second
//! trace.partial/cpuN.raw    the ring-buffer pages of CPU N, one behind the other, as the kernel gave them
//! trace.partial/cpuN.K.raw  the same from page K on: a flight recorder has several such files, and drops the oldest
//! ```
//! The same pages stand in a finished trace.dat, so they are read by the same code; only their place differs. What is not
//! there is told as a problem: the end, and with it the kernel's counters of lost events.

use super::index::{Index, Search};
use super::layout::{CpuData, Layout, Shape};
use super::{Content, TraceDat, described, map, opened, page};
use crate::error::Error;
use base::Problem;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// The description of the recording.
pub const HEAD: &str = "head.dat";

/// Name of the file with the pages of a CPU.
pub fn raw_name(cpu: u32) -> String {
    format!("cpu{cpu}.raw")
}

/// Name of a file with pages of a CPU, where those before page `first` are in other files or were dropped.
pub fn segment_name(cpu: u32, first: u64) -> String {
    format!("cpu{cpu}.{first}.raw")
}

/// The CPU and the first page of the file of that name.
fn of_name(name: &str) -> Option<(u32, usize)> {
    let numbers = name.strip_prefix("cpu")?.strip_suffix(".raw")?;
    let (cpu, first) = numbers.split_once('.').unwrap_or((numbers, "0"));
    Some((cpu.parse().ok()?, first.parse().ok()?))
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
    Ok(Mapped::of(directory)?.open(directory, |pages| pages.first()..pages.end()))
}

pub(super) struct Mapped {
    head: Content,
    layout: Layout,
    /// By CPU, in the order of their pages.
    files: BTreeMap<u32, Vec<Segment>>,
    page_bytes: usize,
}

/// A file with successive pages of a CPU.
struct Segment {
    /// Number of its first page.
    first: usize,
    file: Content,
}

impl Segment {
    /// The number behind its last whole page.
    fn end(&self, page_bytes: usize) -> usize {
        self.first.saturating_add(self.file.bytes.len() / page_bytes)
    }
}

/// The whole pages of one CPU, numbered from the beginning of the recording.
#[derive(Clone, Copy)]
pub(super) struct Pages<'m> {
    /// The CPU.
    pub cpu: u32,
    segments: &'m [Segment],
    page_bytes: usize,
}

impl<'m> Pages<'m> {
    /// The number of the first page that is there; earlier ones were dropped.
    pub(super) fn first(&self) -> usize {
        self.segments.first().map_or(0, |segment| segment.first)
    }

    /// The number behind the last one.
    pub(super) fn end(&self) -> usize {
        self.segments.last().map_or(0, |segment| segment.end(self.page_bytes))
    }

    pub(super) fn page(&self, number: usize) -> Option<&'m [u8]> {
        let behind = self.segments.partition_point(|segment| segment.first <= number);
        let segment = self.segments.get(behind.checked_sub(1)?)?;
        segment.file.bytes.chunks_exact(self.page_bytes).nth(number - segment.first)
    }
}

impl Mapped {
    /// Maps what lies in `directory`.
    ///
    /// # Errors
    /// If the description cannot be read.
    pub(super) fn of(directory: &Path) -> Result<Self, Error> {
        let head = map(&directory.join(HEAD))?;
        let layout = described(directory, &head)?;
        let own = layout.buffers.last().map_or(0, |buffer| buffer.page_size);
        let page_bytes = if own == 0 { layout.page_size } else { own };
        let files = if layout.buffers.is_empty() { BTreeMap::new() } else { segments(directory)? };
        Ok(Self { head, layout, files, page_bytes })
    }

    /// What the description says.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The pages of each CPU.
    pub(super) fn pages(&self) -> impl Iterator<Item = Pages<'_>> {
        let page_bytes = self.page_bytes;
        self.files.iter().map(move |(cpu, segments)| Pages { cpu: *cpu, segments, page_bytes })
    }

    /// Ticks since when no CPU's pages were dropped; 0 if none were.
    pub(super) fn dropped_until_ticks(&self) -> u64 {
        let shape = Shape::parse(&self.layout.header_page, self.layout.endian);
        let begin = |pages: Pages<'_>| Some(page::head(pages.page(pages.first())?, &shape)?.ticks);
        self.pages().filter(|pages| pages.first() > 0).filter_map(begin).max().unwrap_or(0)
    }

    /// Opens those pages of each CPU that `wanted` says.
    pub(super) fn open(self, directory: &Path, mut wanted: impl FnMut(Pages<'_>) -> Range<usize>) -> TraceDat {
        let Self { head, mut layout, files: raw, page_bytes } = self;
        let mut files = vec![head];
        let mut indexes = Vec::new();
        let mut cut_bytes = 0;
        if let Some(mut buffer) = layout.buffers.pop() {
            layout.buffers.clear();
            buffer.compressed = false;
            for (cpu, segments) in raw {
                let wanted = wanted(Pages { cpu, segments: &segments, page_bytes });
                let mut index = Index { cpu, page_size: page_bytes, places: Vec::new(), problem: None };
                for Segment { first, file } in segments {
                    cut_bytes += (file.bytes.len() % page_bytes) as u64;
                    let pages = file.bytes.len() / page_bytes;
                    let own = |number: usize| number.saturating_sub(first).min(pages);
                    let (from, to) = (own(wanted.start) * page_bytes, own(wanted.end) * page_bytes);
                    let data = CpuData { cpu, offset: from as u64, size: to.saturating_sub(from) as u64 };
                    let search = Search { file: files.len(), bytes: &file.bytes, name: &file.name, layout: &layout };
                    index.places.extend(search.pieces(&buffer, data, usize::MAX).places);
                    files.push(file);
                }
                buffer.cpus.push(CpuData { cpu, offset: 0, size: (wanted.len() * page_bytes) as u64 });
                indexes.push(index);
            }
            layout.buffers.push(buffer);
        }
        layout.problems.push(unfinished(directory, cut_bytes));
        opened(directory, files, layout, vec![indexes])
    }
}

/// The pages that lie in `directory`. What a recorder drops meanwhile is not there.
fn segments(directory: &Path) -> Result<BTreeMap<u32, Vec<Segment>>, Error> {
    let io = |source| Error::Io { file: directory.to_owned(), source };
    let mut files: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let entry = entry.map_err(io)?;
        let Some((cpu, first)) = entry.file_name().to_str().and_then(of_name) else { continue };
        match map(&entry.path()) {
            Ok(file) => files.entry(cpu).or_default().push(Segment { first, file }),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.values_mut().for_each(|segments| segments.sort_by_key(|segment| segment.first));
    Ok(files)
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

    /// CPU 0 has all of its pages, CPU 1 those since the middle, in two files.
    fn of_a_flight_recorder() -> (tempfile::TempDir, u64) {
        let directory = left_behind(&[(0, pages(3_000))]);
        let all = pages(3_000);
        let all: Vec<&[u8]> = all.chunks(PAGE_BYTES as usize).collect();
        let (middle, last) = (all.len() / 2, all.len() - 2);
        for range in [middle..last, last..all.len()] {
            let name = segment_name(1, range.start as u64);
            fs::write(directory.path().join(name), all[range].concat()).unwrap();
        }
        let begin = u64::from_le_bytes(all[middle][..8].try_into().unwrap()) / 2;
        (directory, begin)
    }

    #[test]
    fn files_of_a_flight_recorder_are_read_in_the_order_of_their_pages() {
        let (directory, begin_ns) = of_a_flight_recorder();
        let (events, damaged) = heard(crate::open(directory.path()).unwrap().as_ref());
        let of = |cpu: u32| events.iter().filter(|event| event.1 == cpu).map(|event| event.0).collect::<Vec<_>>();
        assert_eq!((of(0), damaged), ((500..3_500).collect(), 0));
        assert_eq!(of(1), (begin_ns..3_500).collect::<Vec<_>>());
    }

    #[test]
    fn the_last_stretch_is_what_all_cpus_still_have() {
        let (directory, begin_ns) = of_a_flight_recorder();
        for (length_ns, kept_ns) in [(100, 100), (1 << 40, 3_499 - begin_ns)] {
            let to = directory.path().join(format!("{length_ns}.dat"));
            assert_eq!(crate::tracedat::cut_last(directory.path(), &to, length_ns).unwrap(), kept_ns);
            let (events, _) = heard(crate::open(&to).unwrap().as_ref());
            let both = |ns: u64| [(ns, 0), (ns, 1)];
            assert_eq!(events, (3_499 - kept_ns..3_500).flat_map(both).collect::<Vec<_>>());
        }
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
