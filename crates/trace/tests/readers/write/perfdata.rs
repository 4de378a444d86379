//! Does perf read what we write as perf.data, and see the same events and values?

use super::expected::{expected_lines, normal};
use super::support::{self, oracle, records, schema, write_with_a_loss};
use kvmscope_trace::format::Endian;
use kvmscope_trace::write::Record;
use kvmscope_trace::write::perfdata::{PerfData, Style};
use std::path::Path;

fn style(endian: Endian) -> Style {
    let comms = vec![(170, "CPU 0/KVM".into()), (171, "CPU 1/KVM".into())];
    Style { endian, comms, release: "6.1.0".into(), cpus: 3 }
}

fn write(path: &Path, endian: Endian, records: &[Record]) {
    let sink = Box::new(PerfData::create(path, &schema(), style(endian)).unwrap());
    write_with_a_loss(sink, records);
}

#[test]
fn perf_script_reads_both_byte_orders() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(2_000);
    for endian in [Endian::Little, Endian::Big] {
        let path = directory.path().join("perf.data");
        write(&path, endian, &records);
        let arguments = ["script", "--ns", "-i", path.to_str().unwrap(), "-F", "comm,tid,cpu,time,event,trace"];
        let Some(text) = oracle("perf", &arguments) else { return };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<_> = lines.map(|line| normal(line, |word| word.split_once(':').unwrap().1)).collect();
        support::assert_same(&format!("{endian:?}"), &lines, &expected_lines(&records, 8));
        assert!(text.lines().all(|line| line.trim_start().starts_with("CPU ")), "comms are known");
    }
}

#[test]
fn perf_report_counts_the_lost_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    write(&path, Endian::Little, &records(100));
    let Some(text) = oracle("perf", &["script", "--show-lost-events", "-i", path.to_str().unwrap()]) else { return };
    assert_eq!(text.matches("PERF_RECORD_LOST").count(), 1, "{text}");
    assert!(text.contains("lost 1234"), "{text}");
}
