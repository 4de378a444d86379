//! Damaged perf.data files: nothing panics, what is readable is kept, what is not is located.
//!
//! The files are built here byte by byte, in both byte orders and both forms, so that the truth is known exactly.

use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, Error, Reading, Request, Trace, perfdata};
use linux_perf_data::linux_perf_event_reader::EventRecord;
use proptest::prelude::*;
use std::io::Write;

const FORMAT: &str = "name: kvm_exit\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n";

/// IP TID TIME ID CPU PERIOD RAW, `sample_id_all`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 0x40 | 0x80 | 0x100 | 0x400;

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

/// Bytes in one byte order.
struct Bytes {
    order: Order,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }
    }

    fn number(mut self, value: u64, size: usize) -> Self {
        match self.order {
            Order::Little => self.bytes.extend_from_slice(&value.to_le_bytes()[..size]),
            Order::Big => self.bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]),
        }
        self
    }

    fn words(self, words: &[u64]) -> Self {
        words.iter().fold(self, |bytes, word| bytes.number(*word, 8))
    }

    fn raw(mut self, raw: &[u8]) -> Self {
        self.bytes.extend_from_slice(raw);
        self
    }
}

fn record(order: Order, kind: u64, body: &[u8]) -> Vec<u8> {
    Bytes::new(order).number(kind, 4).number(1, 2).number(body.len() as u64 + 8, 2).raw(body).bytes
}

fn attr(order: Order) -> Vec<u8> {
    let sample_id_all = if order == Order::Little { 1 << 18 } else { 1 << (63 - 18) };
    let mut attr = Bytes::new(order).number(2, 4).number(128, 4);
    attr = attr.words(&[77, 1, SAMPLE_TYPE, 0, sample_id_all]);
    attr.bytes.resize(128, 0);
    attr.bytes
}

fn sample(order: Order, time: u64, tid: u64, rip: u64) -> Vec<u8> {
    let body = Bytes::new(order).number(0xffff_ffff_8000_0000, 8).number(tid, 4).number(tid, 4);
    let body = body.words(&[time, 5]).number(3, 4).number(0, 4).number(1, 8).number(28, 4);
    let body = body.number(77, 2).number(0, 2).number(tid, 4).number(48, 4).number(0, 4).number(rip, 8).number(0, 4);
    record(order, 9, &body.bytes)
}

fn lost(order: Order, time: u64, events: u64) -> Vec<u8> {
    let body = Bytes::new(order).words(&[5, events]).number(1, 4).number(1, 4).words(&[time, 5]).number(3, 4);
    record(order, 2, &body.number(0, 4).bytes)
}

fn round(order: Order) -> Vec<u8> {
    Bytes::new(order).number(68, 4).number(0, 2).number(8, 2).bytes
}

/// Three rounds of ten samples, each running backwards, the second reaching back into the first: 1009 and 1010 have
/// changed places. A loss of seven events in the second.
fn records(order: Order) -> Vec<u8> {
    let mut records = Vec::new();
    for outer in 0..3 {
        for inner in (0..10).rev() {
            let time = match 1000 + outer * 10 + inner {
                1009 => 1010,
                1010 => 1009,
                time => time,
            };
            records.extend(sample(order, time, 42, 0x1000 + time));
        }
        if outer == 1 {
            records.extend(lost(order, 1020, 7));
        }
        records.extend(round(order));
    }
    records
}

fn tracing_data(order: Order) -> Vec<u8> {
    let data = Bytes::new(order).raw(b"\x17\x08\x44tracing0.6\0").number(u64::from(order == Order::Big), 1);
    let data = data.number(8, 1).number(4096, 4).raw(b"header_page\0").number(0, 8);
    let data = data.raw(b"header_event\0").number(0, 8).number(0, 4).number(1, 4).raw(b"kvm\0").number(1, 4);
    data.number(FORMAT.len() as u64, 8).raw(FORMAT.as_bytes()).number(0, 8).number(0, 8).bytes
}

fn file_form(order: Order, records: &[u8]) -> Vec<u8> {
    let (magic, features) = match order {
        Order::Little => (b"PERFILE2", 1u64 << 1),
        Order::Big => (b"2ELIFREP", 1u64 << 1),
    };
    let (ids_at, attrs_at, data_at) = (104, 112, 112 + 144);
    let features_at = data_at + records.len() as u64;
    let tracing = tracing_data(order);
    let file = Bytes::new(order).raw(magic).words(&[104, 144, attrs_at, 144, data_at, records.len() as u64, 0, 0]);
    let file = file.words(&[features, 0, 0, 0]).words(&[5]).raw(&attr(order)).words(&[ids_at, 8]);
    file.raw(records).words(&[features_at + 16, tracing.len() as u64]).raw(&tracing).bytes
}

fn pipe_form(order: Order, records: &[u8]) -> Vec<u8> {
    let magic = if order == Order::Little { b"PERFILE2" } else { b"2ELIFREP" };
    let mut tracing = tracing_data(order);
    let size = Bytes::new(order).number(tracing.len() as u64, 4).bytes;
    tracing.resize(tracing.len().next_multiple_of(8), 0);
    let attr = [attr(order), Bytes::new(order).words(&[5]).bytes].concat();
    let head = Bytes::new(order).raw(magic).words(&[16]).bytes;
    [head, record(order, 64, &attr), record(order, 66, &size), tracing, records.to_vec()].concat()
}

/// Packs records into zstd records of the two kinds, cut where no record ends.
fn packed(order: Order, records: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    let mut all = Vec::new();
    for (index, part) in records.chunks(100).enumerate() {
        encoder.write_all(part).unwrap();
        encoder.flush().unwrap();
        let bytes = std::mem::take(encoder.get_mut());
        all.extend(if index % 2 == 0 {
            record(order, 81, &bytes)
        } else {
            let body = Bytes::new(order).number(bytes.len() as u64, 8).raw(&bytes).raw(&[0; 5]);
            record(order, 83, &body.bytes)
        });
    }
    all
}

struct Seen {
    times: Vec<u64>,
    rips: Vec<u64>,
    places: Vec<(u32, i32)>,
    lost: u64,
    problems: usize,
    tally: u64,
}

fn open(bytes: &[u8]) -> Result<Box<dyn Trace>, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    perfdata::open(file.path())
}

fn see(trace: &dyn Trace) -> Seen {
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let kvm_exit = trace.facts().event_types.iter().position(|event| event.name == "kvm_exit");
    let problems = trace.facts().problems.len();
    let mut seen = Seen { times: vec![], rips: vec![], places: vec![], lost: 0, problems, tally: 0 };
    for lane in trace.lanes(&reading) {
        for batch in lane.source.batches(trace.facts().event_types.len()) {
            take_in(&mut seen, &batch, kvm_exit);
        }
    }
    seen
}

fn take_in(seen: &mut Seen, batch: &Batch, kvm_exit: Option<usize>) {
    seen.problems += batch.problems.len();
    seen.tally += batch.tally.iter().map(|count| u64::from(*count)).sum::<u64>();
    for at in 0..batch.len() {
        let values = &batch.values[batch.rows[at].start as usize..];
        if batch.rows[at].kind == LOST {
            seen.lost += values[1];
        } else if Some(usize::from(batch.rows[at].kind)) == kvm_exit {
            seen.times.push(batch.rows[at].time_ns);
            seen.rips.push(values.get(2).copied().unwrap_or(0));
            seen.places.push((batch.rows[at].cpu, batch.rows[at].tid));
        }
    }
}

const TIMES: std::ops::Range<u64> = 1000..1030;

#[test]
fn both_forms_and_byte_orders_and_compression_give_the_same_events_in_order() {
    for order in [Order::Little, Order::Big] {
        let plain = records(order);
        let packed = packed(order, &plain);
        for file in
            [file_form(order, &plain), pipe_form(order, &plain), file_form(order, &packed), pipe_form(order, &packed)]
        {
            let seen = see(&*open(&file).unwrap());
            assert_eq!(seen.times, TIMES.collect::<Vec<_>>());
            assert_eq!(seen.rips, TIMES.map(|time| 0x1000 + time).collect::<Vec<_>>());
            assert!(seen.places.iter().all(|place| *place == (3, 42)));
            assert_eq!((seen.lost, seen.problems), (7, 0));
        }
    }
}

/// An independent reader of the container, where the crate can read it: it knows no formats.
#[test]
fn another_reader_sees_the_same_samples() {
    let plain = records(Order::Little);
    let whole = file_form(Order::Little, &plain);
    let reader = linux_perf_data::PerfFileReader::parse_file(std::io::Cursor::new(&whole)).unwrap();
    let linux_perf_data::PerfFileReader { mut perf_file, mut record_iter } = reader;
    let (mut times, mut lost) = (Vec::new(), 0);
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let linux_perf_data::PerfFileRecord::EventRecord { record, .. } = record else { continue };
        match record.parse().unwrap() {
            EventRecord::Sample(sample) => times.extend(sample.timestamp),
            EventRecord::Lost(record) => lost += record.count,
            other => panic!("{other:?}"),
        }
    }
    let seen = see(&*open(&whole).unwrap());
    assert_eq!((seen.times, seen.lost), (times, lost));
}

#[test]
fn a_cut_file_keeps_the_whole_records_before_the_cut() {
    let records = records(Order::Little);
    for (whole, head) in [(file_form(Order::Little, &records), 256), (pipe_form(Order::Little, &records), 0)] {
        for length in 0..whole.len() {
            let Ok(trace) = open(&whole[..length]) else {
                assert!(length < 700, "a file of {length} bytes has its attributes");
                continue;
            };
            let seen = see(&*trace);
            assert!(seen.times.is_sorted());
            if head > 0 && length < whole.len() {
                assert!(seen.problems > 0, "cut at {length}");
                let whole_samples = (length.saturating_sub(head) / sample(Order::Little, 0, 0, 0).len()).min(30);
                assert!(seen.tally as usize + 2 >= whole_samples, "cut at {length}: {} events", seen.tally);
            }
        }
    }
}

#[test]
fn a_damaged_size_costs_the_rest_of_its_round_alone() {
    for order in [Order::Little, Order::Big] {
        let mut records = records(order);
        let second = 10 * sample(order, 0, 0, 0).len() + 8;
        records[second + 6..second + 8].copy_from_slice(&[0, 0]);
        let seen = see(&*open(&file_form(order, &records)).unwrap());
        assert_eq!(seen.times, (1000..1009).chain([1010]).chain(1020..1030).collect::<Vec<_>>());
        assert_eq!((seen.problems, seen.lost), (1, 0));
    }
}

#[test]
fn bytes_that_trail_a_record_are_no_records() {
    for order in [Order::Little, Order::Big] {
        let aux = record(order, 71, &Bytes::new(order).words(&[24, 0, 0, 0, 0]).bytes);
        let all = [records(order), aux, vec![0xff; 24], sample(order, 1030, 42, 0)].concat();
        let seen = see(&*open(&pipe_form(order, &all)).unwrap());
        assert_eq!((seen.times.len(), seen.times.last(), seen.problems), (31, Some(&1030), 0));
    }
}

#[test]
fn losses_that_perf_states_at_its_end_are_not_counted_twice() {
    let order = Order::Little;
    for (stated, lost) in [(5, 7), (7, 7), (10, 10)] {
        let at_end = Bytes::new(order).words(&[stated]).number(1, 4).number(1, 4).words(&[0, 5, 0]).bytes;
        let all = [records(order), record(order, 13, &at_end)].concat();
        assert_eq!(see(&*open(&file_form(order, &all)).unwrap()).lost, lost, "stated: {stated}");
    }
}

#[test]
fn a_killed_recording_is_counted_to_its_end() {
    let mut file = file_form(Order::Little, &records(Order::Little));
    let end = file.len() - tracing_data(Order::Little).len() - 16;
    file.truncate(end);
    file[48..56].fill(0);
    let trace = open(&file).unwrap();
    assert_eq!(trace.facts().event_types[0].name, "tracepoint_77");
    let seen = see(&*trace);
    assert_eq!((seen.tally, seen.problems, seen.lost), (30, 1, 7));
}

/// A file whose zstd record unpacks to `records`.
fn bomb(records: &[u8]) -> Vec<u8> {
    let stream = zstd::bulk::compress(records, 3).unwrap();
    let order = Order::Little;
    let parts = stream.chunks(60_000).map(|part| record(order, 81, part)).collect::<Vec<_>>().concat();
    file_form(order, &parts)
}

#[test]
fn what_unpacks_to_a_thousand_times_its_size_is_cut_off_and_said() {
    let long = record(Order::Little, 11, &vec![0; 65_000]);
    assert_eq!(see(&*open(&bomb(&long.repeat(2_000))).unwrap()).problems, 1);
    assert_eq!(see(&*open(&bomb(&long.repeat(100))).unwrap()).problems, 0);
}

#[test]
fn records_of_no_kind_and_times_of_no_clock_are_damage() {
    let order = Order::Little;
    let good = [sample(order, 1_000, 7, 1), round(order), sample(order, 2_000, 7, 2)].concat();
    let of_tomorrow = see(&*open(&file_form(order, &[record(order, 60, &[0; 24]), good.clone()].concat())).unwrap());
    assert_eq!((of_tomorrow.times.len(), of_tomorrow.problems), (2, 1), "counted, and passed over by its size");
    let ones = see(&*open(&file_form(order, &[vec![0xff; 64], good.clone()].concat())).unwrap());
    assert_eq!((ones.times.len(), ones.problems), (1, 1), "reading goes on at the next round");
    let late = see(&*open(&file_form(order, &[sample(order, u64::MAX, 7, 3), good].concat())).unwrap());
    assert_eq!((late.times, late.problems), (vec![1_000, 2_000], 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic(
        form in 0..4usize,
        big: bool,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let plain = records(order);
        let mut file = match form {
            0 => file_form(order, &plain),
            1 => pipe_form(order, &plain),
            2 => file_form(order, &packed(order, &plain)),
            _ => pipe_form(order, &packed(order, &plain)),
        };
        for (at, byte) in &flips {
            let at = at.index(file.len());
            file[at] = *byte;
        }
        if let Ok(trace) = open(&file) {
            let seen = see(&*trace);
            prop_assert!(seen.times.len() <= file.len());
        }
    }
}
