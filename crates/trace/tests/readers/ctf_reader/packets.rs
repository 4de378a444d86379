//! What packets say of themselves: losses, sizes, times; and streams that say little.

use super::babeltrace;
use super::made::{Bits, INTEGERS, Made, packet, plain};
use kvmscope_trace::facts::Coverage;
use kvmscope_trace::{Reading, Request, ctf};
use std::process::Command;

/// Metadata whose packets state everything; the counter of losses has `bits`.
fn stating_all(bits: u32) -> String {
    format!(
        "/* CTF 1.8 */\n{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; uint64_t stream_instance_id; }}; }};
clock {{ name = c; freq = 1000000000; }};
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := t64;
typealias integer {{ size = 32; align = 8; map = clock.c.value; }} := t32;
stream {{
    packet.context := struct {{
        t64 timestamp_begin; t64 timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; integer {{ size = {bits}; align = 8; }} events_discarded; uint32_t cpu_id;
    }};
    event.header := struct {{ uint8_t id; t32 timestamp; }};
}};
event {{ name = tick; id = 0; fields := struct {{ uint8_t n; }}; }};"
    )
}

/// A packet of [`stating_all`] metadata from `begin` with an event per number, 10 ns apart, and padding behind them.
fn stating_packet(instance: u64, begin: u64, number: u64, lost: (u32, u64), events: &[u8]) -> Vec<u8> {
    let header = 12 + 5 * 8 + lost.0 as usize / 8 + 4;
    let (content, size) = (header + 6 * events.len(), header + 6 * events.len() + 3);
    let end = begin + 10 * events.len() as u64;
    let mut bits =
        packet(Bits::little()).u64(instance).u64(begin).u64(end).u64(content as u64 * 8).u64(size as u64 * 8);
    bits = bits.u64(number).put(lost.0 as usize, lost.1).u32(3);
    for (at, event) in events.iter().enumerate() {
        bits = bits.u8(0).u32((begin + 10 * at as u64) as u32).u8(*event);
    }
    bits.bytes(&[0xEE; 3]).bytes
}

#[test]
fn discarded_events_and_lost_packets_stand_before_the_packet_that_states_them() {
    let packets = [
        stating_packet(1, 100, 0, (64, 2), &[1, 2]),
        stating_packet(1, 200, 1, (64, 7), &[3]),
        stating_packet(1, 300, 4, (64, 7), &[4]),
    ];
    let made = Made::new(stating_all(64), &[&packets.concat()]);
    let whole = made.read();
    assert_eq!(whole.lost, [(100, 2), (200, 5), (300, 0)], "time, events; 0: whole packets, nobody knows of how many");
    assert_eq!(whole.events.iter().map(|event| event.int("n")).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(whole.events.iter().all(|event| event.cpu == 3) && whole.problems.is_empty(), "{:?}", whole.problems);
    let trace = ctf::open(made.path()).unwrap();
    let stated: Vec<_> = trace.facts().losses.iter().map(|loss| (loss.cpu, loss.kind.as_str(), loss.count)).collect();
    assert_eq!(stated, [(Some(3), "discarded events", 7), (Some(3), "lost packets", 2)]);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(made.path()), 4);
        let output = Command::new("babeltrace2").arg(made.path()).output().unwrap();
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(warnings.contains("discarded 5 events") && warnings.contains("discarded 2 packets"), "{warnings}");
    }
}

#[test]
fn losses_of_streams_without_a_cpu_are_one_sum_of_no_cpu() {
    let of_stream = |instance| {
        [stating_packet(instance, 100, 0, (64, 0), &[1]), stating_packet(instance, 200, 1, (64, 5), &[2])].concat()
    };
    let metadata = stating_all(64).replace("cpu_id", "shelf");
    let trace = ctf::open(Made::new(metadata, &[&of_stream(1), &of_stream(2)]).path()).unwrap();
    let stated: Vec<_> = trace.facts().losses.iter().map(|loss| (loss.cpu, loss.kind.as_str(), loss.count)).collect();
    assert_eq!(stated, [(None, "discarded events", 10)]);
}

#[test]
fn a_trace_without_a_clock_is_not_damaged() {
    let metadata = plain("le", "event { name = e; id = 7; fields := struct { uint8_t n; }; };");
    let metadata = metadata.replace("clock { name = c; freq = 1000000000; };", "").replace("map = clock.c.value; ", "");
    let stream = packet(Bits::little()).u8(7).u64(5).u8(1).bytes;
    let trace = ctf::open(Made::new(metadata, &[&stream]).path()).unwrap();
    let problems: Vec<_> = trace.facts().problems.iter().map(|problem| (&*problem.expected, problem.count)).collect();
    assert_eq!(problems, [("a clock", 0)], "a remark, which counts no place of damage");
}

#[test]
fn a_narrow_counter_of_losses_wraps() {
    let packets = [stating_packet(1, 100, 0, (8, 250), &[1]), stating_packet(1, 200, 1, (8, 4), &[2])];
    assert_eq!(Made::new(stating_all(8), &[&packets.concat()]).read().lost, [(100, 250), (200, 10)]);
    // What a recording that starts in the middle had lost before is not its loss.
    let late = stating_packet(1, 100, 9, (8, 250), &[1]);
    assert!(Made::new(stating_all(8), &[&late]).read().lost.is_empty());
}

#[test]
fn files_of_one_stream_are_one_lane_in_the_order_of_time() {
    let old = [stating_packet(5, 100, 0, (64, 0), &[1]), stating_packet(5, 200, 1, (64, 0), &[2])].concat();
    let new = stating_packet(5, 300, 2, (64, 4), &[3]);
    // Rotating file names need not sort as time does.
    let made = Made::new(stating_all(64), &[&new, &old, &[]]);
    let whole = made.read();
    assert_eq!(whole.events.iter().map(|event| event.int("n")).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((whole.lost.as_slice(), whole.problems.len()), ([(300, 4)].as_slice(), 0));
    let trace = ctf::open(made.path()).unwrap();
    let nothing = Request::default();
    let reading = Reading { request: &nothing, fitted: None };
    let lanes = trace.lanes(&reading);
    assert_eq!(lanes.len(), 1);
    assert_eq!(lanes[0].bytes, (old.len() + new.len()) as u64);
}

#[test]
fn a_cut_in_the_middle_of_packets_starts_its_losses_anew() {
    let packets = [
        stating_packet(1, 100, 0, (64, 2), &[1, 2]),
        stating_packet(1, 200, 1, (64, 7), &[3, 4, 5]),
        stating_packet(1, 300, 2, (64, 8), &[]),
        stating_packet(1, 400, 3, (64, 10), &[6, 7]),
        stating_packet(1, 500, 4, (64, 10), &[8]),
    ];
    let made = Made::new(stating_all(64), &[&packets.concat()]);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("cut");
    let cut = ctf::cut(made.path(), &out, 110, 310).unwrap();
    let whole = super::events::read_path(&out);
    assert_eq!(whole.events.iter().map(|event| event.int("n")).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!((cut.events, cut.packets, whole.lost.as_slice()), (3, 3, [(300, 1), (400, 2)].as_slice()));
    // Its first packet was the second: without a number of its own the stream would look as if it began too late.
    let coverage = ctf::open(&out).unwrap().facts().coverage.clone();
    assert_eq!(coverage.into_iter().collect::<Vec<_>>(), [(3, Coverage::Whole)]);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(&out), 3);
    }
    // Where packets have no numbers, the first count of the cut must not look like a loss.
    let unnumbered = Made::new(stating_all(64).replace("packet_seq_num", "other"), &[&packets.concat()]);
    let out = directory.path().join("unnumbered");
    ctf::cut(unnumbered.path(), &out, 110, 310).unwrap();
    assert_eq!(super::events::read_path(&out).lost, [(300, 1), (400, 2)]);
    let out = directory.path().join("from_a_packet");
    ctf::cut(unnumbered.path(), &out, 100, 310).unwrap();
    assert_eq!(super::events::read_path(&out).lost, [(200, 5), (300, 1), (400, 2)]);
}

#[test]
fn a_cut_keeps_events_where_their_alignment_wants_them() {
    let metadata = format!(
        "/* CTF 1.8 */\n{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; }}; }};
clock {{ name = c; freq = 1000000000; }};
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := t64;
stream {{
    packet.context := struct {{ t64 timestamp_begin; uint32_t content_size; uint32_t packet_size; }};
    event.header := struct {{ integer {{ size = 32; align = 32; map = clock.c.value; }} timestamp; }};
}};
event {{ name = tick; fields := struct {{ uint8_t n; integer {{ size = 64; align = 64; }} wide; string s; }}; }};"
    );
    let mut bits = packet(Bits::little()).u64(0).u32(0).u32(0);
    for n in 0..40u8 {
        bits = bits
            .align(32)
            .u32(u32::from(n) * 10)
            .align(64)
            .u8(n)
            .align(64)
            .u64(7)
            .text(&"x".repeat(usize::from(n % 7 + 1)));
    }
    let size = bits.bytes.len() as u32 * 8;
    let mut stream = bits.bytes;
    stream[12..16].copy_from_slice(&size.to_le_bytes());
    stream[16..20].copy_from_slice(&size.to_le_bytes());
    let made = Made::new(metadata, &[&stream]);
    let all = made.read();
    assert_eq!((all.events.len(), all.problems.len()), (40, 0));
    let directory = tempfile::tempdir().unwrap();
    let mut starts_earlier = 0;
    for first in 0..40u64 {
        let out = directory.path().join(first.to_string());
        let cut = ctf::cut(made.path(), &out, first * 10, 391).unwrap();
        let whole = super::events::read_path(&out);
        let from = whole.events[0].int("n") as usize;
        assert!(from <= first as usize && whole.problems.is_empty(), "{first}: {:?}", whole.problems);
        assert_eq!((whole.events.as_slice(), cut.events), (&all.events[from..], 40 - from as u64));
        starts_earlier += u64::from(from < first as usize);
        if babeltrace::is_there() {
            assert_eq!(babeltrace::compare(&out), cut.events);
        }
    }
    assert!((1..30).contains(&starts_earlier), "{starts_earlier}");
}

#[test]
fn several_traces_below_a_directory_are_one_and_a_damaged_one_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, metadata: &str, stream: &[u8]| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("metadata"), metadata).unwrap();
        std::fs::write(path.join("channel_0"), stream).unwrap();
    };
    let event = "event { name = x; id = 1; fields := struct { uint8_t v; }; };";
    let kernel = plain("le", event).replace("name = c; freq", "name = c; offset_s = 1; freq");
    let user = plain("be", &event.replace("name = x", "name = \"p:y\"")).replace("freq = 1000000000", "freq = 1000");
    put("kernel", &kernel, &packet(Bits::little()).u8(1).u64(500).u8(4).bytes);
    put("ust/uid/1000/64-bit", &user, &packet(Bits::big()).u8(1).u64(1_200).u8(5).bytes);
    put("broken", "/* CTF 1.8 */ trace { byte_order = le; ", b"");
    let whole = super::events::read_path(directory.path());
    let seen: Vec<_> = whole.events.iter().map(|e| (e.time_ns, e.name.as_str(), e.int("v"))).collect();
    assert_eq!(seen, [(1_000_000_500, "x", 4), (1_200_000_000, "p:y", 5)]);
    assert_eq!(whole.problems.len(), 1);
    assert!(whole.problems[0].text.contains("is skipped") && whole.problems[0].file.contains("broken"));
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("cut");
    std::fs::remove_dir_all(directory.path().join("broken")).unwrap();
    assert_eq!(ctf::cut(directory.path(), &out, 1, u64::MAX).unwrap().events, 1);
    let names: Vec<_> = super::events::read_path(&out).events.into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["p:y"]);
}

/// Metadata as barectf 2 writes it: short stamps, no begin, no sizes in bits beyond what it needs.
fn terse() -> String {
    format!(
        "/* CTF 1.8 */\n{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; }}; }};
clock {{ name = c; freq = 1000000000; }};
stream {{
    packet.context := struct {{ uint16_t packet_size; uint16_t content_size; }};
    event.header := struct {{ uint8_t id; integer {{ size = 8; align = 8; map = clock.c.value; }} timestamp; }};
}};
event {{ name = tick; id = 0; fields := struct {{ uint8_t n; }}; }};"
    )
}

#[test]
fn stamps_without_a_begin_run_on_from_packet_to_packet() {
    let packet_of = |events: &[(u8, u8)]| {
        let size = (8 + 3 * events.len()) as u16 * 8;
        let start = packet(Bits::little()).u16(size + 16).u16(size);
        events.iter().fold(start, |bits, (time, n)| bits.u8(0).u8(*time).u8(*n)).bytes(&[0; 2]).bytes
    };
    let packets = [packet_of(&[(10, 1), (250, 2), (5, 3)]), packet_of(&[]), packet_of(&[(4, 4), (6, 5)])];
    let stream = packets.concat();
    let made = Made::new(terse(), &[&stream]);
    let whole = made.read();
    let times: Vec<_> = whole.events.iter().map(|event| (event.time_ns, event.int("n"))).collect();
    assert_eq!(times, [(10, 1), (250, 2), (261, 3), (516, 4), (518, 5)]);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(made.path()), 5);
    }
    // Bytes that are no event do not move the clock of those that follow.
    let mut odd = packets.clone();
    odd[0][14] = 99;
    let odd = Made::new(terse(), &[&odd.concat()]).read();
    let times: Vec<_> = odd.events.iter().map(|event| (event.time_ns, event.int("n"))).collect();
    assert_eq!((times.as_slice(), odd.problems.len()), ([(10, 1), (250, 2), (260, 4), (262, 5)].as_slice(), 1));
    // Such a stream can only be cut at its end.
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("cut");
    assert_eq!(ctf::cut(made.path(), &out, 100, 507).unwrap().events, 4);
    let kept: Vec<_> = super::events::read_path(&out).events.iter().map(|event| event.time_ns).collect();
    assert_eq!(kept, [10, 250, 261, 516]);
}

#[test]
fn events_may_be_older_than_the_begin_of_their_packet() {
    let metadata = stating_all(64).replace("t32 timestamp", "t64 timestamp");
    let bits = packet(Bits::little()).u64(1).u64(1_000).u64(2_000).u64(90 * 8).u64(90 * 8).u64(0).u64(0).u32(0);
    let stream = bits.u8(0).u64(900).u8(1).u8(0).u64(1_500).u8(2);
    let stream = stream.bytes(&[0; 6]).bytes;
    let mut stream = stream[..84].to_vec();
    for (at, value) in [(28, 84u64 * 8), (36, 84 * 8)] {
        stream[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let whole = Made::new(metadata, &[&stream]).read();
    let times: Vec<_> = whole.events.iter().map(|event| event.time_ns).collect();
    assert_eq!((times.as_slice(), whole.problems.len()), ([900, 1_500].as_slice(), 0));
}

#[test]
fn a_trace_without_a_clock_shows_its_ticks_and_says_so() {
    let metadata = plain("le", "event { name = x; id = 1; fields := struct { uint8_t v; }; };");
    let metadata = metadata.replace("clock { name = c; freq = 1000000000; };", "").replace("map = clock.c.value;", "");
    let made = Made::new(metadata, &[&packet(Bits::little()).u8(1).u64(77).u8(4).bytes]);
    let whole = made.read();
    assert_eq!(whole.events[0].time_ns, 77);
    assert!(whole.problems[0].text.contains("describes no clock"), "{:?}", whole.problems);
}

/// The metadata and packets of two CPUs, of which the second has number 3 as [`stating_packet`] says.
fn coverage_of(streams: &[&[u8]]) -> (Vec<(u32, Coverage)>, Vec<String>) {
    let made = Made::new(stating_all(64), streams);
    let trace = ctf::open(made.path()).unwrap();
    let losses = trace.facts().losses.iter().map(|loss| loss.kind.clone()).collect();
    (trace.facts().coverage.iter().map(|(cpu, coverage)| (*cpu, *coverage)).collect(), losses)
}

#[test]
fn streams_that_begin_late_or_break_off_say_so() {
    let packets: Vec<_> = (0..3).map(|n| stating_packet(1, 100 * (n + 1), n, (64, 0), &[1])).collect();
    let whole = packets.concat();
    assert_eq!(coverage_of(&[&whole]), (vec![(3, Coverage::Whole)], vec![]));
    let late = coverage_of(&[&packets[1..].concat()]);
    assert_eq!(late, (vec![(3, Coverage::Part { from_ns: 200, until_ns: u64::MAX })], vec!["late stream".into()]));
    let cut = coverage_of(&[&whole[..whole.len() - 8]]);
    assert_eq!(cut, (vec![(3, Coverage::Part { from_ns: 0, until_ns: 300 })], vec!["truncated stream".into()]));
    // A rotated session goes on in another file with the next number.
    let rotated = coverage_of(&[&stating_packet(2, 100, 0, (64, 0), &[1]), &stating_packet(1, 200, 1, (64, 0), &[2])]);
    assert_eq!(rotated, (vec![(3, Coverage::Whole)], vec![]));
}

#[test]
fn an_empty_file_of_a_channel_is_a_missing_cpu() {
    let three = stating_packet(1, 100, 0, (64, 0), &[1]);
    // Files are called after their CPUs: stream_3 holds CPU 3, stream_1 is empty.
    let made = Made::new(stating_all(64), &[]);
    std::fs::write(made.path().join("stream_3"), &three).unwrap();
    std::fs::write(made.path().join("stream_1"), b"").unwrap();
    let trace = ctf::open(made.path()).unwrap();
    assert_eq!(trace.facts().coverage.get(&1), Some(&Coverage::Missing));
    assert!(trace.facts().problems.iter().any(|problem| problem.text.contains("activity of CPU 1 is unknown")));
    // Where files are called otherwise, an empty one says nothing.
    let (coverage, _) = coverage_of(&[&three, b""]);
    assert_eq!(coverage, [(3, Coverage::Whole)]);
}

#[test]
fn an_index_that_lists_more_packets_tells_of_those_that_are_gone() {
    let made = Made::new(stating_all(64), &[]);
    std::fs::write(made.path().join("stream_3"), stating_packet(1, 100, 0, (64, 0), &[1])).unwrap();
    let mut index: Vec<u8> = [0xC1F1_DCC1u32, 1, 1, 72].iter().flat_map(|word| word.to_be_bytes()).collect();
    index.resize(16 + 2 * 72, 0);
    std::fs::create_dir(made.path().join("index")).unwrap();
    std::fs::write(made.path().join("index/stream_3.idx"), &index).unwrap();
    let trace = ctf::open(made.path()).unwrap();
    assert_eq!(trace.facts().coverage[&3], Coverage::Part { from_ns: 0, until_ns: 100 });
    assert!(trace.facts().problems.iter().any(|problem| problem.found.contains("1 of the 2 packets")));
}
