//! For which time are the events of each CPU in a file? What is missing of a stream is unknown, and must be said.

use kvmscope_trace::facts::Coverage;
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::PageStyle;
use kvmscope_trace::write::tracedat::{Compression, FileOption, Records, TraceDat, Version};
use kvmscope_trace::write::{EventSchema, Record, Schema, Sink};
use kvmscope_trace::{self as trace, Facts};
use std::collections::BTreeMap;
use std::path::Path;

const LAYOUTS: [(Version, Compression); 4] = [
    (Version::V6, Compression::None),
    (Version::V7, Compression::None),
    (Version::V7, Compression::Zlib),
    (Version::V7, Compression::Zstd),
];

/// A file of two CPUs, with enough events for many chunks each: one every 10 ns.
fn two_cpus(version: Version, compression: Compression) -> Vec<u8> {
    let entry = EventSchema::declared("kvm", "kvm_entry", "unsigned int vcpu_id; unsigned long rip");
    let mut dat = TraceDat::new(version, Machine::X86_64);
    dat.compression = compression;
    dat.options.push(FileOption::CpuCount(2));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("two.dat");
    let schema = Schema { events: vec![entry] };
    let mut sink = Box::new(Records::create(&path, &schema, dat, "mono", 2, PageStyle::default()).unwrap());
    for n in 0..20_000u64 {
        let values = vec![0u64.into(), (n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into()];
        sink.record(&Record { ticks: 1_000 + 10 * n, cpu: (n % 2) as u32, tid: 7, event: 0, values }).unwrap();
    }
    sink.finish().unwrap();
    std::fs::read(&path).unwrap()
}

const LAST_NS: u64 = 1_000 + 10 * 19_999;

fn facts(bytes: &[u8]) -> Facts {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    trace::open(&path).unwrap().facts().clone()
}

fn kinds(facts: &Facts) -> Vec<(Option<u32>, &str)> {
    facts.losses.iter().map(|loss| (loss.cpu, loss.kind.as_str())).collect()
}

#[test]
fn a_whole_file_covers_all_its_cpus() {
    for (version, compression) in LAYOUTS {
        let facts = facts(&two_cpus(version, compression));
        assert_eq!(facts.coverage, BTreeMap::from([(0, Coverage::Whole), (1, Coverage::Whole)]), "{compression:?}");
        assert!(facts.losses.is_empty() && facts.problems.is_empty(), "{:?}", facts.problems);
    }
}

#[test]
fn a_file_that_breaks_off_in_its_first_cpu_lacks_the_second() {
    for (version, compression) in LAYOUTS {
        let whole = two_cpus(version, compression);
        let facts = facts(&whole[..whole.len() / 3]);
        let Some(Coverage::Part { from_ns: 0, until_ns }) = facts.coverage.get(&0) else {
            panic!("{compression:?}: {:?}", facts.coverage)
        };
        assert!((1_000..LAST_NS).contains(until_ns), "{compression:?}: {until_ns}");
        assert_eq!(facts.coverage.get(&1), Some(&Coverage::Missing), "{compression:?}");
        assert_eq!(kinds(&facts), [(Some(0), "truncated stream"), (Some(1), "missing stream")], "{compression:?}");
    }
}

#[test]
fn a_file_that_breaks_off_in_its_last_cpu_covers_it_until_then() {
    for (version, compression) in LAYOUTS {
        let whole = two_cpus(version, compression);
        let facts = facts(&whole[..whole.len() * 4 / 5]);
        assert_eq!(facts.coverage[&0], Coverage::Whole, "{compression:?}");
        assert!(matches!(facts.coverage[&1], Coverage::Part { from_ns: 0, until_ns } if until_ns < LAST_NS));
    }
}

#[test]
fn a_cpu_whose_chunks_are_gone_is_missing_and_said() {
    let whole = two_cpus(Version::V7, Compression::Zstd);
    let zstd = memchr::memmem::find(&whole[4096..], &0xFD2F_B528u32.to_le_bytes()).unwrap();
    // In front of a CPU's first chunk stand its two sizes, and before them the number of chunks.
    let first = (4096..4096 + zstd + 1).rev().find(|at| at % 4096 == 0).unwrap();
    let mut none = whole.clone();
    none[first..first + 4].fill(0);
    let facts = facts(&none);
    assert!(facts.coverage.values().any(|coverage| *coverage == Coverage::Missing), "{:?}", facts.coverage);
    assert!(facts.losses.iter().any(|loss| loss.kind == "missing stream"));
}

#[test]
fn ftrace_says_which_buffers_began_later() {
    let line = |cpu: u32, us: u32| format!(" CPU 0/KVM-9 [{cpu:03}] d.... 1.{us:06}: kvm_entry: vcpu 0, rip 0x1\n");
    let text = format!(
        "# entries-in-buffer/entries-written: 3/9   #P:4\n{}##### CPU 2 buffer started ####\n{}{}",
        line(1, 10),
        line(2, 30),
        line(2, 40)
    );
    let facts = facts(text.as_bytes());
    let late = Coverage::Part { from_ns: 1_000_030_000, until_ns: u64::MAX };
    assert_eq!((facts.coverage[&1], facts.coverage[&2], facts.coverage[&3]), (Coverage::Whole, late, Coverage::Whole));
    assert_eq!(kinds(&facts), [(None, "overrun"), (Some(2), "late stream")]);
    assert_eq!(facts.losses[0].count, 6, "of nine events that were written three are left");
}

/// Recordings that nobody cut: no CPU of theirs may be called missing.
#[test]
fn fixtures_are_covered_as_a_whole() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for name in ["nested-vmx-shadow-on/L0/trace.dat", "svm-linux/L0/trace.dat", "vmx-linux-shadow-on/L1/trace.dat"] {
        let trace = trace::open(&fixtures.join(name)).unwrap();
        let coverage = &trace.facts().coverage;
        assert!(!coverage.is_empty() && coverage.values().all(|cpu| *cpu == Coverage::Whole), "{name}: {coverage:?}");
    }
}

/// Events whose ids no format describes are counted, not passed over.
#[test]
fn events_without_a_format_are_counted() {
    let mut bytes = two_cpus(Version::V6, Compression::None);
    let id = memchr::memmem::find(&bytes, b"ID: ").unwrap() + 4;
    bytes[id] = if bytes[id] == b'9' { b'8' } else { bytes[id] + 1 };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    let trace = trace::open(&path).unwrap();
    struct Nothing;
    impl trace::Listener for Nothing {
        fn event(&mut self, _: &trace::Event<'_>) {}
    }
    let request = trace::Request::everything(trace.facts());
    let totals = trace::replay(&*trace, &trace::Reading { request: &request, fitted: None }, &mut Nothing);
    assert_eq!((totals.unknown, totals.events()), (20_000, 20_000));
}
