//! Damaged perf.data files: nothing panics, what is readable is kept, what is not is located.

use super::made::{
    Bytes, Order, attr, file_form, open, packed, pipe_form, record, records, round, sample, see, tracing_data,
};
use linux_perf_data::linux_perf_event_reader::EventRecord;
use proptest::prelude::*;

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
fn ids_beyond_those_of_any_machine_are_left_out_and_said() {
    // A hundred events that all name the same 50,000 ids.
    let (order, ids, events) = (Order::Little, 50_000u64, 100u64);
    let (ids_at, attrs_at) = (104, 104 + 8 * ids);
    let data_at = attrs_at + 144 * events;
    let all = sample(order, 1_000, 7, 1);
    let mut file = Bytes::new(order).raw(b"PERFILE2");
    file = file.words(&[104, 144, attrs_at, 144 * events, data_at, all.len() as u64, 0, 0, 0, 0, 0, 0]);
    file = (0..ids).fold(file, |file, id| file.number(id, 8));
    file = (0..events).fold(file, |file, _| file.raw(&attr(order)).words(&[ids_at, 8 * ids]));
    let trace = open(&file.raw(&all).bytes).unwrap();
    let problem = trace.facts().problems.iter().find(|problem| problem.expected.contains("ids of counters")).unwrap();
    assert_eq!(problem.bytes_skipped, 8 * (ids * events - (1 << 22)));
}

/// What simpleperf writes beside samples: no formats, and names by type and config.
fn of_simpleperf(meta: &[u8]) -> Vec<u8> {
    let (order, records) = (Order::Little, records(Order::Little));
    let (ids_at, attrs_at, data_at) = (104, 112, 112 + 144);
    let features_at = data_at + records.len() as u64;
    let file = Bytes::new(order).raw(b"PERFILE2");
    let file = file.words(&[104, 144, attrs_at, 144, data_at, records.len() as u64, 0, 0, 0, 0, 1 << (129 - 128), 0]);
    let file = file.words(&[5]).raw(&attr(order)).words(&[ids_at, 8]).raw(&records);
    file.words(&[features_at + 16, meta.len() as u64]).raw(meta).bytes
}

#[test]
fn simpleperf_names_its_tracepoints_and_leaves_out_their_formats() {
    for (meta, name) in [
        (&b"clockid\0monotonic\0event_type_info\0cpu-clock,1,0\nkvm:kvm_exit,2,77\0"[..], "kvm:kvm_exit"),
        (b"clockid\0monotonic\0", "tracepoint_77"),
        (b"event_type_info\0kvm:kvm_exit,2", "tracepoint_77"),
    ] {
        let trace = open(&of_simpleperf(meta)).unwrap();
        let facts = trace.facts();
        assert_eq!((facts.event_types[0].system.as_str(), facts.event_types[0].name.as_str()), ("perf", name));
        assert_eq!(facts.problems.len(), 1, "{:?}", facts.problems);
        assert!(facts.problems[0].text.contains("no formats of its tracepoints") && facts.problems[0].count == 0);
        assert_eq!(see(&*trace).tally, 30);
    }
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
