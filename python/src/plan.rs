//! Plans of service chains: what `kvmscope plan chain` answers.

use crate::answer::Answer;
use crate::error::Failure;
use crate::job;
use crate::opening::{found, opened};
use crate::report::Report;
use analysis::MOST_PLAN_BYTES;
use analysis::datapath::options::{Idle, Options};
use analysis::datapath::{self, ChannelUse, Plan, Stated};
use analysis::{About, Answers, Case, Given};
use base::recording::{Part, PartKind, Recording};
use host::Snapshot;
use pyo3::prelude::*;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is planned for, as `kvmscope.plan.chain` puts it together.
struct Wanted {
    /// A plan in TOML: a path, or its text.
    plan: Option<PathBuf>,
    /// Or quantities, each with its key.
    options: Vec<(String, String)>,
    snapshot: Option<PathBuf>,
    /// Recordings of the host, and how rings of theirs are used.
    calibrate: Vec<PathBuf>,
    rings: ChannelUse,
    search: bool,
}

/// The answer of `kvmscope plan chain`; `kvmscope.plan.chain` calls it.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the function that calls it")]
pub(crate) fn plan_chain(
    py: Python<'_>,
    plan: Option<PathBuf>,
    options: Vec<(String, String)>,
    snapshot: Option<PathBuf>,
    calibrate: Vec<PathBuf>,
    channel_window: Option<String>,
    channel_batch: Option<u32>,
    search: bool,
) -> PyResult<Report> {
    let usual = ChannelUse::default();
    let rings =
        ChannelUse { window: channel_window.unwrap_or(usual.window), batch: channel_batch.unwrap_or(usual.batch) };
    let wanted = Wanted { plan, options, snapshot, calibrate, rings, search };
    let answer = job::run(py, move || answered(planned(&wanted)?))??;
    Ok(Report { answer })
}

fn answered(plan: Plan) -> Result<Arc<Answer>, Failure> {
    let recording = Recording::of_nothing(concat!("kvmscope plan ", env!("CARGO_PKG_VERSION")));
    let given = Given::query(plan);
    let case = Case::new(analysis::open(recording.clone())?, given);
    let answers = Answers::about(&case, &[About::Plan]);
    Answer::new("plan", (recording, Vec::new()), answers, |_| "the plan has no answer".to_owned())
}

fn planned(wanted: &Wanted) -> Result<Plan, Failure> {
    let mut stated = match &wanted.plan {
        Some(plan) => read(plan)?,
        None => stated(wanted)?,
    };
    stated.search |= wanted.search;
    for path in &wanted.calibrate {
        let recorded = opened(path)?;
        let from = recorded.input.recording.title();
        let measured = analysis::calibration(&recorded.input, stated.pattern, &wanted.rings, &from);
        stated.calibrate(measured.map_err(Failure::no_answer)?);
    }
    stated.plan().map_err(Failure::usage)
}

/// What is stated by quantities.
fn stated(wanted: &Wanted) -> Result<Stated, Failure> {
    let mut options = Options::default();
    for (key, text) in &wanted.options {
        options.set(key, text).map_err(|sentence| Failure::Usage(format!("{key}={text}: {sentence}")))?;
    }
    let host = wanted.snapshot.as_deref().map(snapshot).transpose()?;
    if !options.is_enough(host.is_some()) {
        return Err(Failure::Usage(
            "name VNFs, a size and a card: chain(vnfs=8, size=64, nic=\"XL710\"), or a plan in TOML".to_owned(),
        ));
    }
    let of_host = host.map(|host| datapath::of_host(&host, options.nic.as_deref())).transpose();
    let stated = options.stated(of_host.map_err(Failure::usage)?.unwrap_or_default());
    match options.idle(&stated, !wanted.calibrate.is_empty()) {
        None => Ok(stated),
        Some(Idle::Link) => Err(Failure::Usage(
            "mps, mrrs, iommu_small_pages and remote_node are about the PCIe link, which is unknown of this card: pcie=\"3x8\""
                .to_owned(),
        )),
        Some(Idle::VnfCores) => Err(Failure::Usage(
            "vnf_cores needs what a packet takes in a VNF: vnf=\"900+0.1\", vnf_pps=\"8 Mpps\", or calibrate=..".to_owned(),
        )),
    }
}

/// A plan by its path, or its text, which has more than one line. Snapshots that it names lie where the file does, if they
/// are not named from the root.
fn read(plan: &Path) -> Result<Stated, Failure> {
    if let Some(text) = plan.to_str().filter(|text| text.contains('\n')) {
        return datapath::read_with("plan", text, &open_beside(Path::new(""))).map_err(Failure::usage);
    }
    let shown = plan.display().to_string();
    let mut text = String::new();
    // One byte more than is read, so that a longer file is refused and not cut.
    let read = File::open(plan).and_then(|file| file.take(MOST_PLAN_BYTES as u64 + 1).read_to_string(&mut text));
    read.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => Failure::Usage(format!("{shown}: no text, and a plan is TOML")),
        _ => Failure::usage(format!("{shown}: {error}")),
    })?;
    let folder = plan.parent().unwrap_or(Path::new(""));
    datapath::read_with(&shown, &text, &open_beside(folder)).map_err(Failure::usage)
}

fn open_beside(folder: &Path) -> impl Fn(&str) -> Result<Snapshot, String> + '_ {
    |name| match snapshot(&folder.join(name)) {
        Ok(snapshot) => Ok(snapshot),
        Err(Failure::NoAnswer(sentence) | Failure::Usage(sentence)) => Err(sentence),
    }
}

/// The snapshot of a host: a directory with `sys`, or the last one of a recording.
fn snapshot(path: &Path) -> Result<Snapshot, Failure> {
    if path.join("sys").is_dir() {
        return Snapshot::open(path).map_err(Failure::no_answer);
    }
    let (recording, _unpacked) = found(path)?;
    let is_host = |part: &&Part| part.kind == PartKind::Host && part.machine == "L0";
    let Some(part) = recording.parts.iter().rfind(is_host) else {
        let title = recording.title();
        return Err(Failure::NoAnswer(format!("{title} has no snapshot of a host; kvmscope snapshot takes one")));
    };
    Snapshot::open(&recording.root.join(&part.path)).map_err(Failure::no_answer)
}
