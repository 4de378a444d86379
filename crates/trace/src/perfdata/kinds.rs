//! Which kinds of events does the file hold, and how are the wanted fields of each read?
//!
//! Tracepoints have the fields of their format. Everything else is of the system `perf`:
//! | kind | fields |
//! |---|---|
//! | a sampled counter, by its name (`cycles`, `cpu-clock`); a tracepoint without a format, `tracepoint_N` if it has no name | `ip`, `pid`, `tid`, `period`, `cpumode`, `callchain`: u64 words in little-endian order, with the kernel's context markers (`PERF_CONTEXT_KERNEL` ..) between the parts |
//! | `comm`: a thread got a name while perf was recording | `pid`, `tid`, `comm` |

use super::attr::{Attr, Sample, TRACEPOINT};
use crate::extract::Extract;
use crate::format::{Endian, EventFormat};
use crate::{Batch, EventType, FieldKind, FieldType, Kind, Request};
use rustc_hash::FxHashMap;

/// Fields of a sampled counter.
const SAMPLE_FIELDS: [(&str, FieldKind); 6] = [
    ("ip", FieldKind::Unsigned),
    ("pid", FieldKind::Signed),
    ("tid", FieldKind::Signed),
    ("period", FieldKind::Unsigned),
    ("cpumode", FieldKind::Unsigned),
    ("callchain", FieldKind::Bytes),
];

/// Fields of `comm`.
const COMM_FIELDS: [(&str, FieldKind); 3] =
    [("pid", FieldKind::Signed), ("tid", FieldKind::Signed), ("comm", FieldKind::Text)];

/// Where the CPU was: `PERF_RECORD_MISC_CPUMODE_MASK` in include/uapi/linux/perf_event.h, Linux 6.12.
const CPU_MODES: [&str; 6] = ["unknown", "kernel", "user", "hypervisor", "guest kernel", "guest user"];

/// Names of `PERF_TYPE_HARDWARE` counters, by config.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// Names of `PERF_TYPE_SOFTWARE` counters, by config.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// What a file calls its events.
pub(super) struct Names {
    /// perf's names by one of their ids.
    pub by_id: FxHashMap<u64, String>,
    /// simpleperf's names by type and config.
    pub(crate) by_config: FxHashMap<(u32, u64), String>,
}

#[derive(Debug)]
pub(super) struct Kinds {
    /// As the facts list them: tracepoints, then sampled counters, then `comm`.
    pub types: Vec<EventType>,
    formats: Vec<EventFormat>,
    by_tracepoint: FxHashMap<u64, usize>,
    by_attr: Vec<Option<usize>>,
}

impl Kinds {
    /// Kinds of a file with these formats, attributes and names of events.
    pub(super) fn new(formats: Vec<EventFormat>, attrs: &[Attr], names: &Names) -> Self {
        let mut types: Vec<EventType> = formats.iter().map(EventFormat::event_type).collect();
        let by_tracepoint: FxHashMap<u64, usize> =
            formats.iter().enumerate().map(|(index, format)| (u64::from(format.id), index)).collect();
        let mut by_attr = Vec::with_capacity(attrs.len());
        for attr in attrs {
            if attr.kind == TRACEPOINT && by_tracepoint.contains_key(&attr.config) {
                by_attr.push(None);
                continue;
            }
            let name = counter_name(attr, names);
            let known = types[formats.len()..].iter().position(|event| event.name == name);
            by_attr.push(Some(known.map_or(types.len(), |at| formats.len() + at)));
            if known.is_none() {
                types.push(event_type(name, &SAMPLE_FIELDS));
            }
        }
        types.push(event_type("comm".into(), &COMM_FIELDS));
        Self { types, formats, by_tracepoint, by_attr }
    }

    /// Position of `comm` among the types.
    pub(super) fn comm(&self) -> usize {
        self.types.len() - 1
    }

    /// Position of the type of a sample of attribute `attr` that carries `raw`. The id in the tracepoint's own record
    /// decides: it is what the kernel wrote.
    pub(super) fn of_sample(&self, attr: usize, raw: Option<&[u8]>, endian: Endian) -> Option<usize> {
        match self.by_attr.get(attr)? {
            Some(index) => Some(*index),
            None => self.by_tracepoint.get(&endian.unsigned(raw?.get(..2)?)).copied(),
        }
    }

    /// How to read what `request` wants: per type its kind and its fields.
    pub(super) fn plan(&self, request: &Request, endian: Endian) -> Vec<Option<(Kind, How)>> {
        let plan_one = |(index, event): (usize, &EventType)| {
            let kind = request.kind_of(event)?;
            let wanted = &request.events[kind];
            let how = match self.formats.get(index) {
                Some(format) => How::Tracepoint {
                    extract: Extract::compile(format, wanted, endian),
                    common_pid: format.common("common_pid").map(|field| field.offset as usize),
                },
                None => How::Own(wanted.positions(event)),
            };
            Some((Kind::try_from(kind).ok()?, how))
        };
        self.types.iter().enumerate().map(plan_one).collect()
    }
}

/// How the wanted fields of one type are read.
pub(super) enum How {
    Tracepoint {
        /// The wanted fields.
        extract: Extract,
        /// Where the thread stands. perf gives -1 for a thread that has left its process already.
        common_pid: Option<usize>,
    },
    /// From perf's own record: positions in [`SAMPLE_FIELDS`] or [`COMM_FIELDS`].
    Own(Vec<Option<usize>>),
}

/// A value before it is stored.
enum Value<'r> {
    Number(u64),
    Content(&'r [u8]),
    Words(&'r [u8]),
}

/// Adds a sample's wanted fields to `batch`.
pub(super) fn add_sample(
    batch: &mut Batch,
    head: (u64, Kind, u32),
    positions: &[Option<usize>],
    record: SampleRecord<'_>,
) {
    let SampleRecord { sample, misc, endian } = record;
    let read = |field: usize| match SAMPLE_FIELDS[field].0 {
        "ip" => sample.ip.map(Value::Number),
        "pid" => sample.pid_tid.map(|(pid, _)| Value::Number(i64::from(pid) as u64)),
        "tid" => sample.pid_tid.map(|(_, tid)| Value::Number(i64::from(tid) as u64)),
        "period" => sample.period.map(Value::Number),
        "cpumode" => Some(Value::Number(u64::from(misc & 7))),
        _ => sample.callchain.map(Value::Words),
    };
    let tid = sample.pid_tid.map_or(crate::batch::NO_TID, |(_, tid)| tid);
    add(batch, head, tid, positions.iter().map(|position| position.and_then(read)), endian);
}

/// A sample with what its record's header says.
pub(super) struct SampleRecord<'r> {
    pub sample: &'r Sample<'r>,
    /// Flags of its record.
    pub misc: u16,
    /// Byte order of the call chain.
    pub endian: Endian,
}

/// A COMM record: pid, tid, name.
pub(super) fn read_comm(body: &[u8], endian: Endian) -> Option<(i32, i32, &[u8])> {
    let name = body.get(8..)?;
    let name = &name[..memchr::memchr(0, name)?];
    Some((endian.unsigned(&body[..4]) as i32, endian.unsigned(&body[4..8]) as i32, name))
}

/// Adds the wanted fields of a COMM record to `batch`.
pub(super) fn add_comm(
    batch: &mut Batch,
    head: (u64, Kind, u32),
    positions: &[Option<usize>],
    comm: (i32, i32, &[u8]),
) {
    let (pid, tid, name) = comm;
    let read = |field: usize| match COMM_FIELDS[field].0 {
        "pid" => Value::Number(i64::from(pid) as u64),
        "tid" => Value::Number(i64::from(tid) as u64),
        _ => Value::Content(name),
    };
    add(batch, head, tid, positions.iter().map(|position| position.map(read)), Endian::Little);
}

fn add<'r>(
    batch: &mut Batch,
    (time_ns, kind, cpu): (u64, Kind, u32),
    tid: i32,
    values: impl Iterator<Item = Option<Value<'r>>> + Clone,
    endian: Endian,
) {
    let mask = values.clone().enumerate().fold(0, |mask, (bit, value)| mask | u64::from(value.is_some()) << bit);
    batch.begin(time_ns, kind, cpu, tid, mask);
    for value in values {
        let value = match value {
            None => 0,
            Some(Value::Number(number)) => number,
            Some(Value::Content(content)) => batch.handle(content),
            Some(Value::Words(words)) => {
                let ordered: Vec<u8> =
                    words.chunks_exact(8).flat_map(|word| endian.unsigned(word).to_le_bytes()).collect();
                batch.handle(&ordered)
            }
        };
        batch.value(value);
    }
}

fn event_type(name: String, fields: &[(&str, FieldKind)]) -> EventType {
    let field = |(name, kind): &(&str, FieldKind)| FieldType {
        name: (*name).to_owned(),
        kind: *kind,
        labels: match *name {
            "cpumode" => (0..).zip(CPU_MODES).map(|(value, label)| (value, value, label.to_owned())).collect(),
            _ => Vec::new(),
        },
    };
    EventType { system: "perf".into(), name, fields: fields.iter().map(field).collect() }
}

/// perf's name of a counter without its modifiers (`cycles:u`), of a tracepoint without a format as a whole
/// (`kvm:kvm_exit`); or what its attribute says.
fn counter_name(attr: &Attr, names: &Names) -> String {
    let by_id = attr.ids.first().and_then(|id| names.by_id.get(id));
    let name = by_id.or_else(|| names.by_config.get(&(attr.kind, attr.config)));
    if attr.kind == TRACEPOINT {
        return name.cloned().unwrap_or_else(|| format!("tracepoint_{}", attr.config));
    }
    if let Some(name) = name {
        return name.split(':').next().unwrap_or(name).to_owned();
    }
    let known = match attr.kind {
        0 => HARDWARE.get(attr.config as usize),
        1 => SOFTWARE.get(attr.config as usize),
        _ => None,
    };
    known.map_or_else(|| format!("event_{}_{:#x}", attr.kind, attr.config), |name| (*name).to_owned())
}
