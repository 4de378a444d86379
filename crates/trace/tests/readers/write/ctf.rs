//! Does babeltrace2 read what we write as CTF 1.8, and see the same events and values?
//!
//! babeltrace2 2.0 of Debian 12 reads no CTF 2, so that language has no oracle here; its stream bytes are the same.

use super::expected::expected_lines;
use super::support::{self, oracle, records, schema};
use kvmscope_trace::format::Endian;
use kvmscope_trace::write::ctf::{Ctf, EventHeader, Metadata, Style};
use kvmscope_trace::write::{Loss, Record, Sink};
use std::path::Path;

const CPUS: u32 = 3;

fn write(directory: &Path, style: Style, records: &[Record]) {
    let mut sink = Box::new(Ctf::create(directory, &schema(), style, CPUS).unwrap());
    records.iter().for_each(|record| sink.record(record).unwrap());
    sink.finish().unwrap();
}

/// `[61000000100] (+?.?) host kvm_exit: { cpu_id = 0 }, { reason = 24, comm = "a b" }` becomes
/// `61000000100 0 kvm_exit reason=24 comm=a_b`; the context with the thread, where there is one, comes first.
fn normal(line: &str) -> String {
    let (time, line) = line.strip_prefix('[').unwrap().split_once(']').unwrap();
    let (event, line) = line.split_once(": ").unwrap();
    let event = event.rsplit(' ').next().unwrap();
    let (cpu, line) = line.strip_prefix("{ cpu_id = ").unwrap().split_once(" }").unwrap();
    let fields: String = line.replace("\" }", " }").replace(", ", "\n").replace(['{', '}'], "");
    let mut normal = format!("{} {cpu} {event}", time.trim_start_matches('0'));
    for field in fields.lines().filter_map(|field| field.split_once(" = ")) {
        let value = field.1.trim().trim_matches('"').replace(' ', "_");
        normal.push_str(&format!(" {}={}", field.0.trim(), value));
    }
    normal
}

fn babeltrace(directory: &Path) -> Option<String> {
    oracle("babeltrace2", &["--clock-cycles", directory.to_str().unwrap()])
}

#[test]
fn babeltrace_reads_both_headers_in_both_byte_orders() {
    let records = records(2_000);
    for endian in [Endian::Little, Endian::Big] {
        for header in [EventHeader::Compact, EventHeader::Large] {
            for metadata in [Metadata::Text, Metadata::Packets] {
                let directory = tempfile::tempdir().unwrap();
                let style = Style { header, metadata, packet_bytes: 4096, ..Style::lttng(endian) };
                write(directory.path(), style, &records);
                let Some(text) = babeltrace(directory.path()) else { return };
                let lines: Vec<_> = text.lines().map(normal).collect();
                let case = format!("{endian:?} {header:?} {metadata:?}");
                support::assert_same(&case, &lines, &expected_lines(&records, 8));
            }
        }
    }
}

#[test]
fn the_thread_is_in_the_context_when_asked_for() {
    let records = records(10);
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Style { tid_context: true, ..Style::lttng(Endian::Little) }, &records);
    let Some(text) = babeltrace(directory.path()) else { return };
    for (line, record) in text.lines().zip(&records) {
        assert!(line.contains(&format!("{{ tid = {} }}", record.tid)), "{line}");
    }
}

#[test]
fn babeltrace_counts_discarded_events_and_packets() {
    let directory = tempfile::tempdir().unwrap();
    let style = Style::lttng(Endian::Little);
    let mut sink = Box::new(Ctf::create(directory.path(), &schema(), style, CPUS).unwrap());
    for (index, record) in records(60).iter().enumerate() {
        let events = match index {
            20 => Some(1_234),
            40 => None,
            _ => {
                sink.record(record).unwrap();
                continue;
            }
        };
        sink.lost(&Loss { ticks: record.ticks, cpu: record.cpu, events }).unwrap();
        sink.record(record).unwrap();
    }
    sink.finish().unwrap();
    let directory = directory.path().to_str().unwrap();
    let Some(details) = oracle("babeltrace2", &["-c", "sink.text.details", directory]) else { return };
    assert_eq!(details.matches("Discarded events (").count(), 1, "{details}");
    assert!(details.contains("Discarded events (1234 events)"), "{details}");
    assert!(details.contains("Discarded packets (1 packets)"), "{details}");
}
