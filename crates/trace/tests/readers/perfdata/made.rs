//! perf.data files built byte by byte, in both byte orders and both forms, so that the truth is known exactly; and what the
//! reader sees of them.

use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, Error, Reading, Request, Trace, perfdata};
use std::io::Write;

pub(super) const FORMAT: &str = "name: kvm_exit\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n";

/// IP TID TIME ID CPU PERIOD RAW, `sample_id_all`.
pub(super) const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 0x40 | 0x80 | 0x100 | 0x400;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Order {
    Little,
    Big,
}

pub(super) struct Bytes {
    pub order: Order,
    pub bytes: Vec<u8>,
}

impl Bytes {
    pub(super) fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub(super) fn number(mut self, value: u64, size: usize) -> Self {
        match self.order {
            Order::Little => self.bytes.extend_from_slice(&value.to_le_bytes()[..size]),
            Order::Big => self.bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]),
        }
        self
    }

    pub(super) fn words(self, words: &[u64]) -> Self {
        words.iter().fold(self, |bytes, word| bytes.number(*word, 8))
    }

    pub(super) fn raw(mut self, raw: &[u8]) -> Self {
        self.bytes.extend_from_slice(raw);
        self
    }
}

pub(super) fn record(order: Order, kind: u64, body: &[u8]) -> Vec<u8> {
    Bytes::new(order).number(kind, 4).number(1, 2).number(body.len() as u64 + 8, 2).raw(body).bytes
}

pub(super) fn attr(order: Order) -> Vec<u8> {
    let sample_id_all = if order == Order::Little { 1 << 18 } else { 1 << (63 - 18) };
    let mut attr = Bytes::new(order).number(2, 4).number(128, 4);
    attr = attr.words(&[77, 1, SAMPLE_TYPE, 0, sample_id_all]);
    attr.bytes.resize(128, 0);
    attr.bytes
}

pub(super) fn sample(order: Order, time: u64, tid: u64, rip: u64) -> Vec<u8> {
    let body = Bytes::new(order).number(0xffff_ffff_8000_0000, 8).number(tid, 4).number(tid, 4);
    let body = body.words(&[time, 5]).number(3, 4).number(0, 4).number(1, 8).number(28, 4);
    let body = body.number(77, 2).number(0, 2).number(tid, 4).number(48, 4).number(0, 4).number(rip, 8).number(0, 4);
    record(order, 9, &body.bytes)
}

pub(super) fn lost(order: Order, time: u64, events: u64) -> Vec<u8> {
    let body = Bytes::new(order).words(&[5, events]).number(1, 4).number(1, 4).words(&[time, 5]).number(3, 4);
    record(order, 2, &body.number(0, 4).bytes)
}

pub(super) fn round(order: Order) -> Vec<u8> {
    Bytes::new(order).number(68, 4).number(0, 2).number(8, 2).bytes
}

/// Three rounds of ten samples, each running backwards, the second reaching back into the first: 1009 and 1010 have
/// changed places. A loss of seven events in the second.
pub(super) fn records(order: Order) -> Vec<u8> {
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

pub(super) fn tracing_data(order: Order) -> Vec<u8> {
    let data = Bytes::new(order).raw(b"\x17\x08\x44tracing0.6\0").number(u64::from(order == Order::Big), 1);
    let data = data.number(8, 1).number(4096, 4).raw(b"header_page\0").number(0, 8);
    let data = data.raw(b"header_event\0").number(0, 8).number(0, 4).number(1, 4).raw(b"kvm\0").number(1, 4);
    data.number(FORMAT.len() as u64, 8).raw(FORMAT.as_bytes()).number(0, 8).number(0, 8).bytes
}

pub(super) fn file_form(order: Order, records: &[u8]) -> Vec<u8> {
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

pub(super) fn pipe_form(order: Order, records: &[u8]) -> Vec<u8> {
    let magic = if order == Order::Little { b"PERFILE2" } else { b"2ELIFREP" };
    let mut tracing = tracing_data(order);
    let size = Bytes::new(order).number(tracing.len() as u64, 4).bytes;
    tracing.resize(tracing.len().next_multiple_of(8), 0);
    let attr = [attr(order), Bytes::new(order).words(&[5]).bytes].concat();
    let head = Bytes::new(order).raw(magic).words(&[16]).bytes;
    [head, record(order, 64, &attr), record(order, 66, &size), tracing, records.to_vec()].concat()
}

/// Packs records into zstd records of the two kinds, cut where no record ends.
pub(super) fn packed(order: Order, records: &[u8]) -> Vec<u8> {
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

pub(super) struct Seen {
    pub times: Vec<u64>,
    pub rips: Vec<u64>,
    pub places: Vec<(u32, i32)>,
    pub lost: u64,
    pub problems: usize,
    pub tally: u64,
}

pub(super) fn open(bytes: &[u8]) -> Result<Box<dyn Trace>, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    perfdata::open(file.path())
}

pub(super) fn see(trace: &dyn Trace) -> Seen {
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

pub(super) fn take_in(seen: &mut Seen, batch: &Batch, kvm_exit: Option<usize>) {
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
