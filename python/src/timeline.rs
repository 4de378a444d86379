//! Where every vCPU was at every instant: lanes, slices, markers and chains as tables.

use crate::error::Failure;
use crate::job;
use crate::recording::Kept;
use crate::table::{Table, about};
use analysis::Given;
use analysis::facts::timeline::{overview, whole_span};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use base::timeline::{Chain, Drawn, LaneId, Slice, Timeline as _, VcpuLane};
use base::{Narrow, number};
use pyo3::prelude::*;
use show::html::{Drafting, Drawing, MOST_SLICES};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The lanes of a recording: rows of slices that touch, each in one state.
///
/// >>> timeline = kvmscope.open(fixtures / "nested-svm-toy").timeline(0)
/// >>> timeline.slices.columns
/// ['lane', 'vm', 'vcpu', 'from_ns', 'to_ns', 'state', 'detail']
#[pyclass(frozen, module = "kvmscope")]
pub struct Timeline {
    kept: Arc<Kept>,
    narrow: Narrow,
    lanes: Vec<u32>,
    drawing: OnceLock<Drawing>,
}

impl Timeline {
    /// The lanes of these vCPUs; every lane, those of CPUs and other threads too, where none are named.
    ///
    /// # Errors
    /// If there is no such vCPU.
    pub fn of(kept: &Arc<Kept>, vcpu: Option<u32>, vm: Option<String>) -> Result<Self, Failure> {
        let drawn = kept.drawn();
        let narrow = Narrow { vm, vcpu, ..Narrow::default() };
        let wanted = |(_, lane): &(u32, &VcpuLane)| narrow.wants_vcpu(&lane.vm, lane.vcpu);
        let lanes: Vec<u32> = match narrow.is_narrowed() {
            true => (0..).zip(&drawn.vcpus).filter(wanted).map(|(id, _)| id).collect(),
            false => (0..).zip(drawn.timeline.lanes()).map(|(id, _)| id).collect(),
        };
        if lanes.is_empty() && narrow.is_narrowed() {
            let known: Vec<String> =
                drawn.vcpus.iter().map(|lane| format!("vCPU {} of {}", lane.vcpu, lane.vm)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { number::list(&known) };
            let title = kept.input().recording.title();
            return Err(Failure::Usage(format!("{title} has no such vCPU; there is {known}")));
        }
        Ok(Self { kept: Arc::clone(kept), narrow, lanes, drawing: OnceLock::new() })
    }
}

/// What a report's page draws of these vCPUs.
fn draw(kept: &Kept, narrow: Narrow) -> Drawing {
    let own;
    let case = if narrow.is_narrowed() {
        let given = Given { narrow, ..Given::default() };
        own = kept.case.asked_with(given).with_progress(job::progress);
        &own
    } else {
        &kept.case
    };
    let (ranks, ledger) = (case.chain_ranks(), case.ledger());
    let mut drafting = Drafting::new(whole_span(ledger));
    let (lanes, found) = overview(
        case.input(),
        case.given(),
        ledger,
        (&ranks.wanted(), MOST_SLICES),
        &mut |chain| drafting.chain(chain),
        &mut |done, all| case.hear(done, all),
    );
    drafting.finish(ranks, lanes, found)
}

#[pymethods]
impl Timeline {
    /// From the first slice to the last, in ns since the recording's first event.
    #[getter]
    fn span_ns(&self) -> (u64, u64) {
        let span = self.kept.drawn().timeline.span();
        (span.from_ns, span.to_ns)
    }

    /// What is not drawn and why, and how far lanes of guests may be off.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.kept.drawn().notes.clone()
    }

    /// Each lane: whose time it shows, and how many slices and chains it has.
    #[getter]
    fn lanes(&self, py: Python<'_>) -> PyResult<Table> {
        made(&self.kept, "timeline.lanes", py.detach(|| lanes(self.kept.drawn(), &self.lanes)))
    }

    /// Each stay in a state. Of one lane they touch: one begins where the other ends. `detail` says more, such as the reason of an exit.
    #[getter]
    fn slices(&self, py: Python<'_>) -> PyResult<Table> {
        made(&self.kept, "timeline.slices", py.detach(|| slices(self.kept.drawn(), &self.lanes)))
    }

    /// Named instants: lost events, phases of a migration. What has no lane concerns all of them.
    #[getter]
    fn markers(&self, py: Python<'_>) -> PyResult<Table> {
        made(&self.kept, "timeline.markers", py.detach(|| markers(self.kept.drawn())))
    }

    /// The exits of nested guests in these lanes, with all that they took until the guest ran again.
    #[getter]
    fn chains(&self, py: Python<'_>) -> PyResult<Table> {
        made(&self.kept, "timeline.chains", py.detach(|| chains(self.kept.drawn(), Some(&self.lanes))))
    }

    fn __repr__(&self) -> String {
        let (from_ns, to_ns) = self.span_ns();
        let lanes = number::many(self.lanes.len() as u64, "lane");
        let title = self.kept.input().recording.title();
        format!("<kvmscope.Timeline {title}: {lanes}, {from_ns} to {to_ns} ns>")
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let drawing = match self.drawing.get() {
            Some(drawing) => drawing,
            None => {
                let (kept, narrow) = (Arc::clone(&self.kept), self.narrow.clone());
                let drawing = job::run(py, move || draw(&kept, narrow))?;
                self.drawing.get_or_init(|| drawing)
            }
        };
        Ok(show::html::fragment::of_drawing(drawing, self.kept.input().recording.emulated))
    }
}

/// All chains of a recording, or those of some lanes.
///
/// # Errors
/// If Arrow refuses them, which is a mistake in the program.
pub(crate) fn chains_of(py: Python<'_>, kept: &Kept) -> PyResult<Table> {
    made(kept, "timeline.chains", py.detach(|| chains(kept.drawn(), None)))
}

fn made(kept: &Kept, name: &'static str, batch: Result<RecordBatch, ArrowError>) -> PyResult<Table> {
    let schema = |batch: &RecordBatch| {
        let about = about(name, kept.input().recording.emulated);
        Arc::new(batch.schema().as_ref().clone().with_metadata(about))
    };
    let batch = batch.and_then(|batch| batch.clone().with_schema(schema(&batch))).map_err(Failure::no_answer)?;
    Ok(Table::made(name, batch.schema(), vec![batch]))
}

/// Columns with their units.
fn batch(columns: Vec<(&str, &str, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, unit, array)| {
            let about = HashMap::from([("unit".to_owned(), unit.to_owned())]);
            (Field::new(name, array.data_type().clone(), true).with_metadata(about), array)
        })
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn texts<'t>(values: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn u64s(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

fn u32s(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.collect::<UInt32Array>())
}

/// The vCPU that a lane shows, if it shows one.
fn vcpu(drawn: &Drawn, lane: u32) -> Option<&VcpuLane> {
    drawn.vcpus.get(lane as usize)
}

/// Columns `lane`, `vm` and `vcpu` of rows that lie in these lanes.
fn whose(drawn: &Drawn, rows: impl Iterator<Item = u32> + Clone) -> [(&'static str, &'static str, ArrayRef); 3] {
    let vm = |lane: u32| vcpu(drawn, lane).map(|lane| lane.vm.as_str());
    [
        ("lane", "", u32s(rows.clone().map(Some))),
        ("vm", "", texts(rows.clone().map(vm))),
        ("vcpu", "", u32s(rows.map(|lane| vcpu(drawn, lane).map(|lane| lane.vcpu)))),
    ]
}

fn lanes(drawn: &Drawn, wanted: &[u32]) -> Result<RecordBatch, ArrowError> {
    let timeline = &drawn.timeline;
    let of = || wanted.iter().filter_map(|id| timeline.lanes().get(*id as usize));
    let slices = |id: &u32| Some(timeline.slices(LaneId(*id), timeline.span(), 0).left_out);
    let chains = |id: &u32| Some(drawn.chains.iter().filter(|chain| chain.lane.0 == *id).count() as u64);
    let tids: Int32Array = of().map(|lane| lane.tid).collect();
    let mut columns = whose(drawn, wanted.iter().copied()).to_vec();
    columns.extend([
        ("kind", "", texts(of().map(|lane| Some(lane.kind.name())))),
        ("group", "", texts(of().map(|lane| Some(lane.group.as_str())))),
        ("title", "", texts(of().map(|lane| Some(lane.title.as_str())))),
        ("tid", "", Arc::new(tids) as ArrayRef),
        ("slices", "count", u64s(wanted.iter().map(slices))),
        ("chains", "count", u64s(wanted.iter().map(chains))),
    ]);
    batch(columns)
}

fn slices(drawn: &Drawn, wanted: &[u32]) -> Result<RecordBatch, ArrowError> {
    let timeline = &drawn.timeline;
    let of = |lane: &u32| timeline.slices(LaneId(*lane), timeline.span(), usize::MAX).slices;
    let all: Vec<Slice> = wanted.iter().flat_map(of).collect();
    let state = |slice: &Slice| timeline.states().get(usize::from(slice.state.0)).map(|state| state.name.as_str());
    let detail =
        |slice: &Slice| timeline.detail(slice.id).map(|(_, detail)| detail).filter(|detail| !detail.is_empty());
    let mut columns = whose(drawn, all.iter().map(|slice| slice.id.lane.0)).to_vec();
    columns.extend([
        ("from_ns", "ns", u64s(all.iter().map(|slice| Some(slice.span.from_ns)))),
        ("to_ns", "ns", u64s(all.iter().map(|slice| Some(slice.span.to_ns)))),
        ("state", "", texts(all.iter().map(state))),
        ("detail", "", texts(all.iter().map(detail))),
    ]);
    batch(columns)
}

fn markers(drawn: &Drawn) -> Result<RecordBatch, ArrowError> {
    let all = &drawn.timeline.markers;
    batch(vec![
        ("lane", "", u32s(all.iter().map(|marker| marker.lane.map(|lane| lane.0)))),
        ("at_ns", "ns", u64s(all.iter().map(|marker| Some(marker.at_ns)))),
        ("label", "", texts(all.iter().map(|marker| Some(marker.label.as_str())))),
    ])
}

/// The chains of these lanes, of all where none are named; `id` is the place of a chain among all of the recording.
fn chains(drawn: &Drawn, wanted: Option<&[u32]>) -> Result<RecordBatch, ArrowError> {
    let is_wanted = |(_, chain): &(u64, &Chain)| wanted.is_none_or(|lanes| lanes.contains(&chain.lane.0));
    let (ids, all): (Vec<u64>, Vec<&Chain>) = (0..).zip(&drawn.chains).filter(is_wanted).unzip();
    let tids: Int32Array = all.iter().map(|chain| vcpu(drawn, chain.lane.0).map(|lane| lane.tid)).collect();
    let flag = |of: fn(&Chain) -> bool| -> ArrayRef {
        Arc::new(all.iter().map(|chain| Some(of(chain))).collect::<BooleanArray>())
    };
    let item = Field::new("item", DataType::Utf8, true);
    let mut sequences = ListBuilder::new(StringBuilder::new()).with_field(item);
    for chain in &all {
        chain.sequence.iter().for_each(|reason| sequences.values().append_value(reason));
        sequences.append(true);
    }
    let mut columns = vec![("id", "", u64s(ids.into_iter().map(Some)))];
    columns.extend(whose(drawn, all.iter().map(|chain| chain.lane.0)));
    columns.extend([
        ("tid", "", Arc::new(tids) as ArrayRef),
        ("reason", "", texts(all.iter().map(|chain| Some(chain.reason.as_str())))),
        ("from_ns", "ns", u64s(all.iter().map(|chain| Some(chain.span.from_ns)))),
        ("to_ns", "ns", u64s(all.iter().map(|chain| Some(chain.span.to_ns)))),
        ("exits", "count", u64s(all.iter().map(|chain| Some(chain.exits)))),
        ("cost_ns", "ns", u64s(all.iter().map(|chain| chain.cost_ns))),
        ("interrupted", "", flag(|chain| chain.interrupted)),
        ("migrated", "", flag(|chain| chain.migrated)),
        ("sequence", "", Arc::new(sequences.finish()) as ArrayRef),
    ]);
    batch(columns)
}
