//! Whatever a text holds: nothing panics, nothing is buffered without bound, what is no trace is said.

use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Error, Reading, Request, Trace, text};
use proptest::prelude::*;
use std::io::Write;

fn open(text: &[u8]) -> Result<Box<dyn Trace>, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    text::open(file.path())
}

/// Times of the events, the losses, and the problems.
fn see(trace: &dyn Trace) -> (Vec<u64>, Vec<(u32, u64)>, Vec<base::Problem>) {
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let (mut times, mut losses, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for lane in trace.lanes(&reading) {
        for mut batch in lane.source.batches(trace.facts().event_types.len()) {
            for at in 0..batch.len() {
                let values = &batch.values[batch.rows[at].start as usize..];
                match batch.rows[at].kind {
                    LOST => losses.push((batch.rows[at].cpu, values[1])),
                    _ => times.push(batch.rows[at].time_ns),
                }
            }
            problems.append(&mut batch.problems);
        }
    }
    (times, losses, problems)
}

const TEXT: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/10   #P:8
#
           <idle>-0       [001] d..2.     1.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=98 next_prio=120
CPU:1 [LOST 12 EVENTS]
        CPU 0/KVM-98      [001] d..1.     1.000002: kvm_entry: vcpu 0, rip 0x10
        CPU 0/KVM-98      [001] d..1.     1.000003: kvm_exit: vcpu 0 reason HLT rip 0x10 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0
        CPU 0/KVM-98      [001] .....     1.000004: kvm_userspace_exit: reason KVM_EXIT_IO (2)
";

#[test]
fn losses_stand_before_the_event_that_follows_them() {
    let trace = open(TEXT.as_bytes()).unwrap();
    let facts = trace.facts();
    assert_eq!((facts.cpus, facts.env["tracer"].as_str(), facts.env["time_digits"].as_str()), (8, "nop", "6"));
    assert_eq!(facts.env["entries"], "4/10");
    assert_eq!(facts.comms[&98], "CPU 0/KVM");
    let systems: Vec<_> = facts.event_types.iter().map(|event| event.system.as_str()).collect();
    assert_eq!(systems, ["sched", "kvm", "kvm", "kvm"]);
    let (times, losses, problems) = see(&*trace);
    assert_eq!(times, [1_000_001_000, 1_000_002_000, 1_000_003_000, 1_000_004_000]);
    assert_eq!((losses, problems.len()), (vec![(1, 12)], 0));
}

#[test]
fn every_cut_keeps_the_lines_before_it() {
    for length in 0..TEXT.len() {
        let whole = TEXT[..length].lines().filter(|line| line.contains(": ") && line.contains("[001]")).count();
        match open(&TEXT.as_bytes()[..length]) {
            Ok(trace) => {
                let (times, ..) = see(&*trace);
                assert!(times.len() <= 4 && times.len() + 1 >= whole, "cut at {length}");
            }
            Err(Error::UnknownFormat { .. } | Error::Unsupported { .. } | Error::Io { .. }) => {
                assert!(whole <= 1, "cut at {length}")
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_line_without_end_is_passed_over() {
    let mut text = TEXT.as_bytes().to_vec();
    text.extend(std::iter::repeat_n(b'x', 3 << 20));
    text.extend_from_slice(b"\n");
    text.extend_from_slice(TEXT.lines().last().unwrap().as_bytes());
    let (times, _, problems) = see(&*open(&text).unwrap());
    assert_eq!(times.len(), 5);
    assert_eq!((problems.len(), problems[0].bytes_skipped), (1, 3 << 20));
}

#[test]
fn lines_that_are_no_trace_are_counted_once_with_their_bytes() {
    let (times, _, problems) = see(&*open(format!("hello there\n{TEXT}and goodbye\n").as_bytes()).unwrap());
    assert_eq!(times.len(), 4);
    // Somebody's own words are no damage.
    assert_eq!((problems.len(), problems[0].count, problems[0].offset), (1, 0, Some(0)));
    assert_eq!(problems[0].bytes_skipped, 22);
    let (times, _, problems) = see(&*open(format!("{TEXT} qemu-12 [001] 100.0\n").as_bytes()).unwrap());
    assert_eq!((times.len(), problems[0].count), (4, 1), "a line that ends early is");
}

#[test]
fn other_texts_are_refused_with_a_sentence() {
    assert!(matches!(open(b"dear all,\nplease find attached\n"), Err(Error::UnknownFormat { .. })));
    let latency = "# tracer: wakeup_rt\n#\n# wakeup_rt latency trace v1.1.5 on 6.1.0\n# -------\n  \
                   bash-123     0d..1    0us :      0:120:R   + [000]\n";
    assert!(text::sniff(latency.as_bytes()));
    match open(latency.as_bytes()) {
        Err(error @ Error::Unsupported { .. }) => assert!(error.to_string().contains("latency-tracer text"), "{error}"),
        _ => panic!("a latency trace is refused"),
    }
}

#[test]
fn comments_of_any_number_may_come_first() {
    let text = format!(
        "{}# hostname : kvm7\n# nrcpus avail : 6\n{TEXT}",
        "# event : name = x, , id = { 1, 2 }\n".repeat(20_000)
    );
    let trace = open(text.as_bytes()).unwrap();
    assert_eq!(see(&*trace).0.len(), 4);
    assert_eq!((trace.facts().hostname.as_deref(), trace.facts().cpus), (Some("kvm7"), 8));
}

#[test]
fn of_a_report_of_several_recordings_one_is_read() {
    let line =
        |file: &str, us: u32| format!("  {file}:  qemu-170   [001]    18.{us:06}: kvm_entry: vcpu 0, rip 0xfff0\n");
    let text = [line("host.dat", 1), line("guest.dat", 2), line("host.dat", 3)].concat();
    let trace = open(text.as_bytes()).unwrap();
    assert_eq!(see(&*trace).0, [18_000_001_000, 18_000_003_000]);
    assert!(
        trace.facts().problems[0].text.contains("ignored: 1 line of others such as guest.dat;"),
        "{:?}",
        trace.facts().problems
    );
    assert_eq!(trace.facts().comms[&170], "qemu");
}

#[test]
fn a_prefix_tells_whether_it_is_a_trace() {
    assert!(text::sniff(TEXT.as_bytes()));
    assert!(text::sniff(
        b"cpus=1\n  nest-98    [000]     9.280415: sched_waking: comm=a pid=15 prio=120 target_cpu=000\n"
    ));
    assert!(!text::sniff(b""));
    assert!(!text::sniff(b"PERFILE2\0\0\0"));
    assert!(!text::sniff(b"/* CTF 1.8 */\ntypealias integer { size = 8; } := uint8_t;\n"));
    assert!(!text::sniff(b"{\"time\": 12.5: 3}\n2026-01-01 10:00:00 host sshd[12]: error: x\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_lines_never_panic(
        lines in proptest::collection::vec("[ -~\\t\u{e9}]{0,120}", 0..20),
        bodies in proptest::collection::vec(
            ("[ -~]{0,20}", 0..5u64, prop_oneof![
                Just("kvm_exit"), Just("sched_switch"), Just("kvm_apic"), Just("kvm_userspace_exit"), Just("x_y"),
            ], "[ -~]{0,80}"),
            0..20,
        ),
        cut: prop::sample::Index,
        byte: u8,
    ) {
        let mut text = lines.join("\n").into_bytes();
        for (comm, cpu, event, body) in bodies {
            text.extend_from_slice(format!("\n {comm}-{cpu} [00{cpu}] {cpu}.000001: {event}: {body}").as_bytes());
        }
        if !text.is_empty() {
            let at = cut.index(text.len());
            text[at] = byte;
        }
        let _ = text::sniff(&text);
        if let Ok(trace) = open(&text) {
            let (times, _, _) = see(&*trace);
            prop_assert!(times.len() <= text.len());
        }
    }
}
