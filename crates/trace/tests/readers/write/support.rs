//! Records that exercise every shape of field, and other programs that print them.

use kvmscope_trace::write::{EventSchema, Loss, Record, Schema, Sink, Value};
use std::process::Command;

/// Events with all shapes of fields.
pub(crate) fn schema() -> Schema {
    let kvm_exit = EventSchema::declared(
        "kvm",
        "kvm_exit",
        "unsigned int exit_reason; unsigned long guest_rip; u32 isa; u64 info1; u64 info2; unsigned int vcpu_id",
    );
    let failed = EventSchema::declared("kvm", "kvm_nested_vmenter_failed", "__data_loc char[] msg; u32 err");
    let waking = EventSchema::declared("sched", "sched_waking", "char comm[16]; pid_t pid; int prio; bool urgent");
    let wide =
        EventSchema::declared("test", "wide", "s64 delta; unsigned short s; u32 h:x; unsigned long l:x; char c[128]");
    Schema { events: vec![kvm_exit, failed, waking, wide] }
}

/// `count` records over three CPUs, with short and long pauses between them.
pub(crate) fn records(count: u64) -> Vec<Record> {
    let mut ticks = 61_000_000_000;
    (0..count)
        .map(|n| {
            ticks += if n % 97 == 96 { 3 << 28 } else { 100 + n % 13 };
            let event = (n % 4) as usize;
            let values: Vec<Value> = match event {
                0 => vec![24.into(), (0x1_0000 + n).into(), 1.into(), (n << 33).into(), 0.into(), (n % 2).into()],
                1 => vec![Value::Text(format!("check_{n}")), 7.into()],
                2 => vec!["CPU 0/KVM".into(), (170 + n).into(), Value::Integer(-5i64 as u64), 1.into()],
                _ => {
                    vec![Value::Integer(-(n as i64) as u64), 65_535.into(), n.into(), (n << 8).into(), "padding".into()]
                }
            };
            Record { ticks, cpu: (n % 3) as u32, tid: 170 + (n % 2) as i32, event, values }
        })
        .collect()
}

/// Writes all of them, and that 1,234 events were lost before the 21st.
pub(crate) fn write_with_a_loss(mut sink: Box<dyn Sink>, records: &[Record]) {
    for (index, record) in records.iter().enumerate() {
        if index == 20 {
            sink.lost(&Loss { ticks: record.ticks, cpu: record.cpu, events: Some(1_234) }).unwrap();
        }
        sink.record(record).unwrap();
    }
    sink.finish().unwrap();
}

/// Output of a program, or `None` with the reason printed if it is not installed.
pub(crate) fn oracle(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).env("LC_ALL", "C").output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {errors}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

/// Fails with the first line that differs.
pub(crate) fn assert_same(case: &str, found: &[String], expected: &[String]) {
    for (line, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{case}: line {line}");
    }
    assert_eq!(found.len(), expected.len(), "{case}: number of events");
}
