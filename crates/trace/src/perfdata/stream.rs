//! Records in time order become batches.
//!
//! Losses: LOST records say how many events the kernel's buffer refused. perf writes LOST_SAMPLES without a time when it
//! ends, with the total of each event, those of the LOST records included: only what goes beyond these is added.

use super::attr::Trailer;
use super::kinds::{How, Kinds, SampleRecord, add_comm, add_sample, read_comm};
use super::order::{Attrs, Ordered, Timed};
use super::records::RecordKind;
use crate::batch::NO_TID;
use crate::format::Endian;
use crate::lane::Sequence;
use crate::{Batch, Kind, Reading};
use base::{Problem, Problems};

/// Records looked at for one batch: enough to spread the cost of handing it over, few enough to stay in the cache.
const RECORDS_PER_BATCH: usize = 4096;

/// The events of a file, batch by batch.
pub(super) struct Batches<'t> {
    ordered: Ordered<'t>,
    attrs: &'t Attrs,
    kinds: &'t Kinds,
    endian: Endian,
    plan: Vec<Option<(Kind, How)>>,
    problems: Problems,
    lost: u64,
    lost_in_all: u64,
    last_time: u64,
    /// Where the last record was that came from further on than all before it.
    furthest: u64,
    ended: bool,
}

impl<'t> Batches<'t> {
    /// Batches of what `reading` asks for.
    pub(super) fn new(
        ordered: Ordered<'t>,
        attrs: &'t Attrs,
        kinds: &'t Kinds,
        endian: Endian,
        reading: &Reading<'_>,
    ) -> Self {
        let plan = kinds.plan(reading.request, endian);
        let problems = Problems::default();
        Self {
            ordered,
            attrs,
            kinds,
            endian,
            plan,
            problems,
            lost: 0,
            lost_in_all: 0,
            last_time: 0,
            furthest: 0,
            ended: false,
        }
    }

    fn add(&mut self, record: &Timed<'_>, batch: &mut Batch) {
        match record.kind {
            RecordKind::SAMPLE => {
                if let Err(found) = self.add_sample(record, batch) {
                    self.note_sample(record, found);
                }
            }
            RecordKind::COMM => self.add_comm(record, batch),
            RecordKind::LOST => self.add_loss(record, 8, batch),
            RecordKind::LOST_SAMPLES => self.add_loss(record, 0, batch),
            kind if !kind.is_known() => self.problems.note(Problem::at(
                self.ordered.file(),
                record.offset,
                "a record of a kind that perf has",
                format!("kind {}", kind.0),
                record.body.len() as u64,
                "records of unknown kinds in perf.data were skipped",
            )),
            _ => {}
        }
    }

    fn add_sample(&mut self, record: &Timed<'_>, batch: &mut Batch) -> Result<(), &'static str> {
        let attr = self.attrs.of_sample(&record.body, self.endian).ok_or("the id of no event of the file")?;
        let sample = self.attrs.list[attr]
            .read_sample(&record.body, self.endian)
            .ok_or("a sample shorter than its event's attribute requires")?;
        let event_type = self
            .kinds
            .of_sample(attr, sample.raw, self.endian)
            .ok_or("a tracepoint whose format is not in the file")?;
        let time = record.time;
        if sample.time.is_some_and(|own| own != time) {
            return Err("a time 52 days or more before the others");
        }
        self.last_time = self.last_time.max(time);
        batch.saw(time, event_type);
        let Some((kind, how)) = &self.plan[event_type] else { return Ok(()) };
        let cpu = sample.cpu.unwrap_or(0);
        match (how, sample.raw) {
            (How::Tracepoint { extract, common_pid }, Some(raw)) => {
                let own = common_pid.and_then(|at| raw.get(at..at + 4)).map(|tid| self.endian.unsigned(tid) as i32);
                let tid = sample.pid_tid.map(|(_, tid)| tid).filter(|tid| *tid != NO_TID).or(own).unwrap_or(NO_TID);
                batch.row(time, *kind, cpu, tid);
                extract.add(raw, batch);
            }
            (How::Tracepoint { .. }, None) => return Err("a tracepoint sample without its record"),
            (How::Own(positions), _) => {
                let sample = SampleRecord { sample: &sample, misc: record.misc, endian: self.endian };
                add_sample(batch, (time, *kind, cpu), positions, sample);
            }
        }
        Ok(())
    }

    fn note_sample(&mut self, record: &Timed<'_>, found: &'static str) {
        self.problems.note(Problem::at(
            self.ordered.file(),
            record.offset,
            "a sample of one of the file's events",
            found,
            record.body.len() as u64,
            format!("samples of perf.data could not be read: {found}"),
        ));
    }

    /// Names that a thread had before perf started carry time 0 and stand in the facts.
    fn add_comm(&mut self, record: &Timed<'_>, batch: &mut Batch) {
        let trailer = self.trailer(record);
        let (Some(comm), Some(time @ 1..)) = (read_comm(&record.body, self.endian), trailer.time) else { return };
        let event_type = self.kinds.comm();
        batch.saw(time, event_type);
        if let Some((kind, How::Own(positions))) = &self.plan[event_type] {
            add_comm(batch, (time, *kind, trailer.cpu.unwrap_or(0)), positions, comm);
        }
    }

    fn add_loss(&mut self, record: &Timed<'_>, at: usize, batch: &mut Batch) {
        let Some(events) = record.body.get(at..at + 8).map(|events| self.endian.unsigned(events)) else { return };
        match self.trailer(record) {
            Trailer { time: Some(time @ 1..), cpu } => {
                self.lost = self.lost.saturating_add(events);
                batch.lost(time, cpu.unwrap_or(0), events, 0);
            }
            _ => self.lost_in_all = self.lost_in_all.saturating_add(events),
        }
    }

    fn trailer(&self, record: &Timed<'_>) -> Trailer {
        self.attrs.list[0].trailer(&record.body, self.endian)
    }
}

impl Sequence for Batches<'_> {
    fn decode_next(&mut self, batch: &mut Batch) -> bool {
        if self.ended {
            return false;
        }
        for _ in 0..RECORDS_PER_BATCH {
            let Some(record) = self.ordered.next(&mut self.problems) else {
                self.ended = true;
                if self.lost_in_all > self.lost {
                    batch.lost(self.last_time, 0, self.lost_in_all - self.lost, 0);
                }
                break;
            };
            self.add(&record, batch);
            batch.read_bytes += record.offset.saturating_sub(self.furthest);
            self.furthest = self.furthest.max(record.offset);
        }
        batch.problems = std::mem::take(&mut self.problems).list().to_vec();
        true
    }
}
