//! Who took the CPU from a vCPU, where the recording has a trace that tells?
//!
//! In: the Sections `flow` and `placement` of one recording; flow's tables `vcpus` (how long each was runnable) and `preemptors`
//! (who ran meanwhile, by `sched_switch`), placement's table `threads`. Out: a table of `placement` with its words for the
//! threads, evidence on the findings about the same VM, a sentence in the summary. No finding of its own: that a vCPU waited
//! is flow's (`FLW-PREEMPT`).
//! ```text
//! vcpus:      web 0  thread 11  ready 46 %  --thread id--> threads: VM web, vcpu 0
//! preemptors: web 0  thread 13  98 % of it  --thread id--> threads: VM web, vhost
//! ```
//! Two samples say who ran on the same CPU; only a trace says who ran while a thread was runnable.

use base::number::percent;
use base::table::Shown;
use base::{About, Cell, Column, ColumnType, Evidence, Section, Table};

/// A wait below this share of a vCPU's time is not worth a sentence; the same limit as flow's.
const WORTH_SAYING: f64 = 0.02;

/// Rules about threads that share CPUs.
const ABOUT_SHARING: &[&str] =
    &["PLC-OVERLAP", "PLC-STARVED", "PLC-STACKED", "PLC-WORKERS", "PLC-FLOAT", "PLC-PMD", "PLC-OVERCOMMIT"];

/// A vCPU, and one of those that ran while it was runnable.
struct Wait {
    vm: String,
    vcpu: u64,
    /// Share of its time that it was runnable.
    ready: f64,
    by: String,
    by_tid: i64,
    /// Of that, the share in which this one ran.
    part: f64,
}

/// Tells `placement` what `flow` saw.
pub fn tell(sections: &mut [Section]) {
    let Some(flow) = sections.iter().find(|section| section.id == "flow") else { return };
    let Some(placement) = sections.iter().find(|section| section.id == "placement") else { return };
    let waits = waits(flow, placement);
    let Some(worst) = waits.iter().max_by(|a, b| (a.ready * a.part).total_cmp(&(b.ready * b.part))) else { return };
    let summary = format!("In the trace {}.", sentence(worst));
    for section in sections.iter_mut().filter(|section| section.id == "placement") {
        section.tables.push(table(&waits));
        section.summary = format!("{} {summary}", section.summary);
        for finding in section.findings.iter_mut().filter(|finding| ABOUT_SHARING.contains(&finding.rule)) {
            // The name of a machine stands before the VM's where there are several.
            let vm = finding.subject.rsplit(':').next().unwrap_or_default().to_owned();
            let about = waits.iter().filter(|wait| wait.vm == vm);
            finding.evidence.extend(about.map(evidence));
        }
    }
}

fn evidence(wait: &Wait) -> Evidence {
    let seen = Evidence::in_table(sentence(wait), "placement.preemptors");
    let rival = i32::try_from(wait.by_tid).map(|tid| About::Thread { tid });
    seen.key("vm", wait.vm.as_str()).key("vcpu", wait.vcpu).about([About::state("preempted")]).about(rival)
}

fn sentence(wait: &Wait) -> String {
    let Wait { vm, vcpu, ready, by, by_tid, part } = wait;
    format!(
        "vCPU {vcpu} of {vm} waited for a CPU for {} of its time, {} of that while {by} (thread {by_tid}) ran",
        percent(*ready),
        percent(*part)
    )
}

/// The vCPUs that were runnable, each with who ran most meanwhile.
fn waits(flow: &Section, placement: &Section) -> Vec<Wait> {
    let (Some(vcpus), Some(by)) = (flow.table("vcpus"), flow.table("preemptors")) else { return Vec::new() };
    let Some(threads) = placement.table("threads") else { return Vec::new() };
    let mut waits = Vec::new();
    // Guests' own traces are called `L1/name`; their thread ids are those of other machines.
    for row in vcpus.rows.iter().filter(|row| !text(vcpus, row, "vm").contains('/')) {
        let same = |other: &&Vec<Cell>| ["vm", "vcpu"].iter().all(|key| cell(by, other, key) == cell(vcpus, row, key));
        // Thread 0 is the idle task: a CPU that was free, and no rival.
        let rivals = by.rows.iter().filter(same).filter(|other| number(by, other, "by_tid") != 0.0);
        let most = rivals.max_by(|a, b| number(by, a, "total_ns").total_cmp(&number(by, b, "total_ns")));
        let (wall, ready) = (number(vcpus, row, "wall_ns"), number(vcpus, row, "preempted_ns"));
        let Some(most) = most.filter(|_| wall > 0.0 && ready / wall > WORTH_SAYING) else { continue };
        let known = thread(threads, number(vcpus, row, "tid"));
        let by_tid = number(by, most, "by_tid");
        waits.push(Wait {
            vm: known.map_or_else(|| text(vcpus, row, "vm"), |known| known.0),
            vcpu: number(vcpus, row, "vcpu") as u64,
            ready: ready / wall,
            by: thread(threads, by_tid).map_or_else(|| text(by, most, "by"), |(vm, role)| format!("{role} of {vm}")),
            by_tid: by_tid as i64,
            part: (number(by, most, "total_ns") / ready).min(1.0),
        });
    }
    waits
}

/// VM and role of a thread of the lowest machine, which is the one that flow's own trace is of.
fn thread(threads: &Table, tid: f64) -> Option<(String, String)> {
    let lowest = threads.rows.iter().map(|row| text(threads, row, "machine")).min()?;
    let of_it = |row: &&Vec<Cell>| text(threads, row, "machine") == lowest && number(threads, row, "tid") == tid;
    let row = threads.rows.iter().find(|row| tid > 0.0 && of_it(row))?;
    let vm = text(threads, row, "vm");
    (!vm.is_empty()).then(|| (vm, text(threads, row, "role")))
}

fn cell<'a>(table: &Table, row: &'a [Cell], name: &str) -> Option<&'a Cell> {
    row.get(table.columns.iter().position(|column| column.name == name)?)
}

fn number(table: &Table, row: &[Cell], name: &str) -> f64 {
    match cell(table, row, name) {
        Some(Cell::U64(value)) => *value as f64,
        Some(Cell::I64(value)) => *value as f64,
        Some(Cell::F64(value)) => *value,
        _ => 0.0,
    }
}

fn text(table: &Table, row: &[Cell], name: &str) -> String {
    match cell(table, row, name) {
        Some(Cell::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

fn table(waits: &[Wait]) -> Table {
    let share = |name: &str| Column::value(name, "share", ColumnType::F64);
    let columns = vec![
        Column::key("vm"),
        Column::key_of("vcpu", ColumnType::U64),
        share("ready_share"),
        Column::value("by", "", ColumnType::Text),
        Column::value("by_tid", "", ColumnType::I64),
        share("part_of_waits"),
    ];
    let mut table = Table::new("preemptors", columns);
    for wait in waits {
        table.push(vec![
            wait.vm.as_str().into(),
            wait.vcpu.into(),
            Cell::F64(wait.ready),
            wait.by.as_str().into(),
            Cell::I64(wait.by_tid),
            Cell::F64(wait.part),
        ]);
    }
    let headings = [
        ("vm", "VM"),
        ("vcpu", "vcpu"),
        ("ready_share", "waited for a CPU"),
        ("by", "longest while"),
        ("part_of_waits", "of that"),
    ];
    table.shown = Some(Shown {
        title: "What took the CPU (from the trace)".to_owned(),
        columns: headings.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect(),
        most_rows: 10,
        ..Shown::default()
    });
    table
}
