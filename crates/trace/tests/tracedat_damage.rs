//! What is left of a trace.dat that was cut short or changed? Never a panic, never memory on the word of a damaged
//! size, never an event that was not there; and of a file whose descriptions are whole, its events.
//!
//! A program of its own: its allocator watches every allocation, and those of other tests are none of its business.

use base::Span;
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::PageStyle;
use kvmscope_trace::write::tracedat::{Compression, Records, TraceDat, Version};
use kvmscope_trace::write::{EventSchema, Record, Schema, Sink};
use kvmscope_trace::{self as trace, Error, Event, Listener, Reading, Request, Totals, Trace};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Remembers the largest piece of memory that was asked for.
struct Largest;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator unchanged; the counter does not touch memory.
unsafe impl GlobalAlloc for Largest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Largest = Largest;

/// No test here reads a file of more than 1 MB, of which format texts are the most.
const MOST_BYTES_AT_ONCE: usize = 32 << 20;

/// CPU, time, kind and the first field of each event, in order.
type Events = Vec<(u32, u64, u16, u64)>;

struct All(Events);

impl Listener for All {
    fn event(&mut self, event: &Event<'_>) {
        if !event.is_loss() {
            self.0.push((event.cpu, event.time_ns, event.kind, event.or_zero(0)));
        }
    }
}

/// A fixture without its kernel symbols: 17 KB that are read in a few milliseconds.
static TOY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nested-vmx-shadow-on/L0/trace.dat");
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("cut.dat");
    trace::tracedat::cut(&fixture, &to, Span { from_ns: 0, to_ns: u64::MAX }).unwrap();
    std::fs::read(to).unwrap()
});

/// A file of our own writer, small enough to be damaged at every byte.
fn small(version: Version, compression: Compression) -> Vec<u8> {
    let entry = EventSchema::declared("kvm", "kvm_entry", "unsigned int vcpu_id; unsigned long rip");
    let failed = EventSchema::declared("kvm", "kvm_nested_vmenter_failed", "__data_loc char[] msg; u32 err");
    let mut dat = TraceDat::new(version, Machine::X86_64);
    dat.compression = compression;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.dat");
    let schema = Schema { events: vec![entry, failed] };
    let mut sink = Box::new(Records::create(&path, &schema, dat, "mono", 2, PageStyle::default()).unwrap());
    for n in 0..400 {
        let values = if n % 2 == 0 { vec![n.into(), (n << 20).into()] } else { vec!["check".into(), n.into()] };
        let record = Record { ticks: 1_000 + 10 * n, cpu: (n % 2) as u32, tid: 7, event: (n % 2) as usize, values };
        sink.record(&record).unwrap();
    }
    sink.finish().unwrap();
    std::fs::read(&path).unwrap()
}

fn read(bytes: &[u8]) -> Result<(Events, Totals), Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    let trace = trace::tracedat::open(file.path())?;
    let request = Request::everything(trace.facts());
    let mut all = All(Vec::new());
    let mut totals = trace::replay(&trace, &Reading { request: &request, fitted: None }, &mut all);
    totals.problems.extend(trace.facts().problems.iter().cloned());
    assert!(LARGEST.load(Ordering::Relaxed) < MOST_BYTES_AT_ONCE, "memory on the word of a damaged size");
    Ok((all.0, totals))
}

/// True if `part` is `whole` without some of its events.
fn is_part_of(part: &Events, whole: &Events) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|event| whole.any(|candidate| candidate == event))
}

/// Reads the first `length` bytes; returns how many events are left.
fn truncated(bytes: &[u8], length: usize, whole: &Events) -> Option<usize> {
    let (events, totals) = read(&bytes[..length]).ok()?;
    assert!(is_part_of(&events, whole), "{length} bytes give events that were not there");
    assert!(events.len() == whole.len() || !totals.problems.is_empty(), "{length} bytes: a silent loss");
    Some(events.len())
}

#[test]
fn a_file_cut_short_gives_the_events_that_are_left() {
    let whole = read(&TOY).unwrap().0;
    assert_eq!(whole.len(), 2_022);
    let left: Vec<_> = (0..TOY.len()).step_by(97).map(|length| truncated(&TOY, length, &whole)).collect();
    let first = left.iter().position(Option::is_some).expect("a length at which the formats are whole");
    assert!(left[first..].iter().all(Option::is_some), "what is longer is readable too");
    assert!(left.is_sorted(), "what is longer gives no fewer events: {left:?}");
    assert!(
        left.iter().flatten().any(|events| (500..2_000).contains(events)),
        "chunks before the end are read: {left:?}"
    );
    assert_eq!(left.last(), Some(&Some(2_022)), "without the last options alone nothing is lost");
}

#[test]
fn every_length_of_a_head_is_survived_and_holds_no_events() {
    let whole = read(&TOY).unwrap().0;
    for length in 0..4096 {
        assert!(truncated(&TOY, length, &whole).is_none_or(|events| events == 0), "{length} bytes");
    }
}

#[test]
fn every_length_of_every_layout_is_survived() {
    for (version, compression) in [
        (Version::V6, Compression::None),
        (Version::V7, Compression::None),
        (Version::V7, Compression::Zlib),
        (Version::V7, Compression::Zstd),
    ] {
        let bytes = small(version, compression);
        let whole = read(&bytes).unwrap().0;
        assert_eq!(whole.len(), 400);
        for length in 0..bytes.len() {
            if let Ok((events, _)) = read(&bytes[..length]) {
                assert!(events.len() <= whole.len(), "{version:?} {compression:?}: {length} bytes");
            }
        }
    }
}

#[test]
fn options_that_lead_back_are_read_once() {
    let bytes = small(Version::V7, Compression::None);
    let whole = read(&bytes).unwrap().0;
    // The last eight bytes of an OPTIONS section place the next one; 0 in the last.
    let first = u64::from_le_bytes(bytes[first_options(&bytes)..][..8].try_into().unwrap());
    let done = [&[0u8, 0, 8, 0, 0, 0][..], &0u64.to_le_bytes()].concat();
    let end = bytes.windows(done.len()).rposition(|window| window == done).expect("the end of the chain");
    let mut looped = bytes;
    looped[end + 6..end + 14].copy_from_slice(&first.to_le_bytes());
    let (events, totals) = read(&looped).unwrap();
    assert_eq!(events, whole);
    assert!(totals.problems.list().iter().any(|problem| problem.text.contains("loops back")), "{:?}", totals.problems);
}

/// Place of the offset of the first OPTIONS section: behind magic, version, page size and the compression's two names.
fn first_options(bytes: &[u8]) -> usize {
    let text_end = |at: usize| at + bytes[at..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let sizes = text_end(10) + 2 + 4;
    text_end(text_end(sizes))
}

#[test]
fn options_that_cannot_be_found_leave_the_formats_and_the_events() {
    let bytes = small(Version::V7, Compression::Zstd);
    let whole = read(&bytes).unwrap().0;
    let mut lost = bytes.clone();
    let place = first_options(&bytes);
    lost[place..place + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let (events, totals) = read(&lost).unwrap();
    assert_eq!(events, whole);
    assert!(!totals.problems.is_empty());
}

#[test]
fn sizes_beyond_reason_ask_for_no_memory() {
    for (version, compression) in [(Version::V6, Compression::None), (Version::V7, Compression::Zstd)] {
        let bytes = small(version, compression);
        for at in (0..bytes.len() - 8).step_by(3) {
            let mut absurd = bytes.clone();
            absurd[at..at + 8].fill(0xff);
            let _ = read(&absurd);
        }
    }
}

#[test]
fn an_empty_file_is_refused() {
    assert!(read(&[]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn changed_bytes_are_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = TOY.clone();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = read(&bytes);
    }

    #[test]
    fn changed_bytes_of_uncompressed_files_are_survived(
        v6: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = small(if v6 { Version::V6 } else { Version::V7 }, Compression::None);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = read(&bytes);
    }
}
