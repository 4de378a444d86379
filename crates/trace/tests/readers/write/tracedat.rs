//! Does trace-cmd read what we write as trace.dat, and see the same events and values?

use super::expected::{expected_lines, normal};
use super::support::{self, oracle, records, schema, write_with_a_loss};
use kvmscope_trace::facts::{Guest, TimeShift};
use kvmscope_trace::format::Endian;
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::{Discards, PageStyle};
use kvmscope_trace::write::tracedat::{Compression, FileOption, Records, TraceDat, Version};
use kvmscope_trace::write::{Record, Sink};
use std::path::Path;

const CPUS: u32 = 3;

fn machine(endian: Endian, long_bytes: u8) -> Machine {
    Machine { endian, long_bytes }
}

fn description(version: Version, machine: Machine, compression: Compression) -> TraceDat {
    let mut dat = TraceDat::new(version, machine);
    dat.compression = compression;
    dat.comms = vec![(170, "CPU 0/KVM".into()), (171, "CPU 1/KVM".into())];
    dat.options = vec![
        FileOption::TraceClock("local [mono] boot\n".into()),
        FileOption::Uname("Linux host 6.12.1 x86_64".into()),
        FileOption::CpuStat("CPU: 0\nentries: 3\noverrun: 2\n".into()),
        FileOption::TraceId(0x1234_5678_9abc_def0),
        FileOption::CpuCount(CPUS),
        FileOption::Guest(Guest { name: "vm".into(), trace_id: 7, vcpu_tids: vec![(0, 170), (1, 171)] }),
        FileOption::Raw { id: 777, data: vec![1, 2, 3] },
    ];
    dat
}

fn write(path: &Path, dat: TraceDat, style: PageStyle, records: &[Record]) {
    let mut sink = Box::new(Records::create(path, &schema(), dat, "mono", CPUS, style).unwrap());
    records.iter().for_each(|record| sink.record(record).unwrap());
    sink.finish().unwrap();
}

/// Lines of `trace-cmd report -R`, `None` if it is not installed.
fn report(path: &Path) -> Option<Vec<String>> {
    let text = oracle("trace-cmd", &["report", "-R", "-t", "-q", "-N", "-i", path.to_str().unwrap()])?;
    Some(text.lines().filter(|line| line.contains('[')).map(|line| normal(line, |word| word)).collect())
}

#[test]
fn trace_cmd_reads_every_layout() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(2_000);
    for version in [Version::V6, Version::V7] {
        for (endian, long) in [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)] {
            // Debian's trace-cmd 3.1.6 is built without zlib; the reader's own tests take those files.
            for compression in [Compression::None, Compression::Zstd] {
                if version == Version::V6 && compression != Compression::None {
                    continue;
                }
                let path = directory.path().join("trace.dat");
                let dat = description(version, machine(endian, long), compression);
                write(&path, dat, PageStyle::default(), &records);
                let Some(lines) = report(&path) else { return };
                let case = format!("{version:?} {endian:?} {long} {compression:?}");
                support::assert_same(&case, &lines, &expected_lines(&records, long));
            }
        }
    }
}

#[test]
fn trace_cmd_reads_every_page_style() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(2_000);
    let styles = [
        PageStyle { absolute: true, ..PageStyle::default() },
        PageStyle { padded_tail: true, ..PageStyle::default() },
        PageStyle { discards: Some(Discards { every: 3, delta: 20 }), ..PageStyle::default() },
    ];
    for style in styles {
        for endian in [Endian::Little, Endian::Big] {
            let path = directory.path().join("trace.dat");
            write(&path, description(Version::V7, machine(endian, 8), Compression::Zstd), style, &records);
            let Some(lines) = report(&path) else { return };
            support::assert_same(&format!("{style:?} {endian:?}"), &lines, &expected_lines(&records, 8));
        }
    }
}

#[test]
fn trace_cmd_counts_the_missed_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    for (version, compression) in [(Version::V6, Compression::None), (Version::V7, Compression::Zstd)] {
        let dat = description(version, Machine::X86_64, compression);
        let sink = Box::new(Records::create(&path, &schema(), dat, "mono", CPUS, PageStyle::default()).unwrap());
        let records = records(40);
        write_with_a_loss(sink, &records);
        let Some(text) = oracle("trace-cmd", &["report", "-R", "-i", path.to_str().unwrap()]) else { return };
        assert_eq!(text.matches("EVENTS DROPPED").count(), 1, "{text}");
        assert!(text.contains("[1234 EVENTS DROPPED]"), "{text}");
    }
}

#[test]
fn instances_splitting_and_clock_options_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    let records = records(300);
    for version in [Version::V6, Version::V7] {
        let mut dat = description(version, Machine::X86_64, Compression::None);
        dat.split_options = true;
        let shift = TimeShift {
            peer: 9,
            flags: 1,
            samples: vec![vec![(1, -5, 1 << 8), (2, -6, 1 << 8)], vec![(1, 3, 1)]],
            fraction_bits: vec![8, 0],
        };
        dat.options.push(FileOption::TimeShift(shift));
        let mut sink = Box::new(Records::create(&path, &schema(), dat, "mono", CPUS, PageStyle::default()).unwrap());
        let second = sink.add_instance("vcpus", "mono", CPUS).unwrap();
        for record in &records {
            sink.record(record).unwrap();
            sink.record_in(second, record).unwrap();
        }
        sink.finish().unwrap();
        let Some(lines) = report(&path) else { return };
        assert_eq!(lines.len(), 2 * records.len(), "{version:?}: both instances are listed");
        let Some(dump) = oracle("trace-cmd", &["dump", "--all", "-i", path.to_str().unwrap()]) else { return };
        for expected in ["vcpus", "0x123456789ABCDEF0", "[Option GUEST", "[Option CPUSTAT", "0x9 [peer's trace id]"] {
            assert!(dump.contains(expected), "{version:?}: {expected} in {dump}");
        }
    }
}

#[test]
fn a_tsc_with_its_scale_is_shown_in_nanoseconds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    let mut records = records(10);
    let expected = expected_lines(&records, 8);
    records.iter_mut().for_each(|record| record.ticks *= 2);
    let mut dat = description(Version::V7, Machine::X86_64, Compression::None);
    dat.options.push(FileOption::Tsc2Nsec { mult: 1 << 20, shift: 21, offset: 0 });
    write(&path, dat, PageStyle::default(), &records);
    let Some(lines) = report(&path) else { return };
    support::assert_same("tsc", &lines, &expected);
}

#[test]
fn the_offset_moves_every_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    let mut records = records(10);
    let expected = expected_lines(&records, 8);
    records.iter_mut().for_each(|record| record.ticks -= 1_000);
    for version in [Version::V6, Version::V7] {
        let mut dat = description(version, Machine::X86_64, Compression::None);
        dat.options.push(FileOption::Offset(1_000));
        write(&path, dat, PageStyle::default(), &records);
        let Some(lines) = report(&path) else { return };
        support::assert_same("offset", &lines, &expected);
    }
}

/// Debian's trace-cmd knows no zlib, so here our own words are undone: sizes and bytes of the first section.
#[test]
fn a_section_packed_with_zlib_unpacks_to_the_plain_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    let first_section = |compression, names: &str| {
        write(&path, description(Version::V7, Machine::X86_64, compression), PageStyle::default(), &records(9));
        let bytes = std::fs::read(&path).unwrap();
        let start = "\x17\x08\x44tracing7\0".len() + 6 + names.len() + 8;
        let size = u64::from_le_bytes(bytes[start + 8..start + 16].try_into().unwrap()) as usize;
        (bytes[start..start + 4].to_vec(), bytes[start + 16..start + 16 + size].to_vec())
    };
    let (plain_head, plain) = first_section(Compression::None, "none\0\0");
    let (packed_head, packed) = first_section(Compression::Zlib, "zlib\x001.2.13\0");
    assert_eq!((plain_head, packed_head), (vec![16, 0, 0, 0], vec![16, 0, 1, 0]));
    let word = |at: usize| u32::from_le_bytes(packed[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!((word(0), word(4)), (packed.len() - 8, plain.len()));
    let mut unpacked = Vec::new();
    std::io::copy(&mut flate2::read::ZlibDecoder::new(&packed[8..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
}

#[test]
fn the_symbols_of_the_traced_kernel_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    let text = "ffffffff81000000 T _stext\nffffffffc05c2780 t svm_vcpu_run\t[kvm_amd]\n";
    for (version, compression) in
        [(Version::V6, Compression::None), (Version::V7, Compression::None), (Version::V7, Compression::Zstd)]
    {
        for kallsyms in [text, ""] {
            let mut dat = description(version, machine(Endian::Big, 4), compression);
            dat.kallsyms = kallsyms.to_owned();
            write(&path, dat, PageStyle::default(), &records(10));
            let found = kvmscope_trace::open(&path).unwrap().kallsyms();
            assert_eq!(found.as_deref(), Some(kallsyms).filter(|text| !text.is_empty()), "{version:?} {compression:?}");
        }
    }
}
