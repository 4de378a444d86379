//! Does perf read what we write as perf.data, and see the same events and values?

use super::expected::{decimal, expected_lines};
use super::support::{self, oracle, records, schema};
use kvmscope_trace::format::Endian;
use kvmscope_trace::write::perfdata::{PerfData, Style};
use kvmscope_trace::write::{Loss, Record, Sink};
use std::path::Path;

fn style(endian: Endian) -> Style {
    let comms = vec![(170, "CPU 0/KVM".into()), (171, "CPU 1/KVM".into())];
    Style { endian, comms, release: "6.1.0".into(), cpus: 3 }
}

fn write(path: &Path, endian: Endian, records: &[Record]) {
    let mut sink = Box::new(PerfData::create(path, &schema(), style(endian)).unwrap());
    for (index, record) in records.iter().enumerate() {
        if index == 20 {
            sink.lost(&Loss { ticks: record.ticks, cpu: record.cpu, events: Some(1_234) }).unwrap();
        }
        sink.record(record).unwrap();
    }
    sink.finish().unwrap();
}

/// `CPU 0/KVM 170 [000] 61.000000100: kvm:kvm_exit: reason=24 rip=0x10` becomes `61000000100 0 kvm_exit reason=24 rip=16`.
fn normal(line: &str) -> String {
    let (_, line) = line.split_once('[').unwrap();
    let (cpu, line) = line.split_once(']').unwrap();
    let mut words = line.split_whitespace();
    let ticks = words.next().unwrap().trim_end_matches(':').replace('.', "");
    let event = words.next().unwrap().trim_end_matches(':').rsplit(':').next().unwrap().to_owned();
    let mut normal = format!("{ticks} {} {event}", cpu.parse::<u32>().unwrap());
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => normal.push_str(&format!(" {name}={}", decimal(name, value))),
            None => normal.push_str(&format!("_{word}")),
        }
    }
    normal
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
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).map(normal).collect();
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
