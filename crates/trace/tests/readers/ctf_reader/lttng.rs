//! A real kernel trace by LTTng 2.13: every event and every field, and the known counts.

use super::babeltrace;
use super::events::{each_batch, read_path};
use kvmscope_trace::{Error, Format, Reading, Request, Wanted, ctf};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bundled cut.
pub(super) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/lttng-svm-l0/L0/ctf")
}

/// The whole recording, unpacked below `into`, or the reason why not.
fn whole(into: &Path) -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let shared = std::env::var_os("KVMSCOPE_SHARED").map_or_else(|| workspace.join("shared"), PathBuf::from);
    let packed = shared.join("traces/lttng_svm_l0.tar.zst");
    if !packed.exists() {
        return Err(format!("{} does not exist", packed.display()));
    }
    let unpacked = Command::new("tar").arg("--zstd").arg("-xf").arg(&packed).arg("-C").arg(into).status();
    match unpacked {
        Ok(status) if status.success() => Ok(into.to_owned()),
        other => Err(format!("tar could not unpack it: {other:?}")),
    }
}

#[test]
#[ignore = "torture"]
fn the_whole_recording_has_the_counts_that_are_known_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = match whole(directory.path()) {
        Ok(path) => path,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let trace = kvmscope_trace::ctf::open(&path).unwrap();
    let facts = trace.facts();
    assert_eq!((facts.cpus, facts.hostname.as_deref()), (2, Some("(none)")));
    assert!(facts.uname.as_ref().unwrap().starts_with("6.1.0-56-amd64"));
    let wanted = |name: &str, field: &str| Wanted { names: vec![name.into()], fields: vec![vec![field.into()]] };
    let request =
        Request { events: vec![wanted("kvm_x86_exit", "exit_reason"), wanted("kvm_x86_nested_vmexit_inject", "isa")] };
    let reading = Reading { request: &request, fitted: None };
    let (mut all, mut kinds) = (0, [0u64; 2]);
    for lane in trace.lanes(&reading) {
        each_batch(lane, facts.event_types.len(), |batch| {
            all += batch.tally.iter().map(|count| u64::from(*count)).sum::<u64>();
            batch.rows.iter().for_each(|row| kinds[usize::from(row.kind)] += 1);
            assert!(batch.problems.is_empty(), "{:?}", batch.problems);
        });
    }
    assert_eq!((all, kinds), (2_921_594, [582_668, 43_006]), "as babeltrace2 2.0.4 counts them");
}

#[test]
#[ignore = "torture"]
fn every_field_of_the_whole_recording_is_what_babeltrace_prints() {
    let directory = tempfile::tempdir().unwrap();
    let path = match whole(directory.path()) {
        Ok(path) => path,
        Err(reason) => return println!("skipped: {reason}"),
    };
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(&path), 2_921_594);
    }
}

/// Counts that babeltrace2 2.0.4 gives for the bundled cut.
const CUT_COUNTS: [(&str, usize); 3] =
    [("kvm_x86_exit", 4_612), ("kvm_x86_nested_vmexit_inject", 405), ("sched_switch", 269)];

#[test]
fn the_bundled_cut_has_the_counts_that_its_readme_states() {
    let whole = read_path(&fixture());
    assert_eq!((whole.events.len(), whole.counted), (19_209, 19_209));
    for (name, count) in CUT_COUNTS {
        assert_eq!(whole.events.iter().filter(|event| event.name == name).count(), count, "{name}");
    }
    assert!(whole.lost.is_empty() && whole.problems.is_empty(), "{:?} {:?}", whole.lost, whole.problems);
}

#[test]
fn every_field_of_the_bundled_cut_is_what_babeltrace_prints() {
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(&fixture()), 19_209);
    }
}

#[test]
fn what_babeltrace_writes_anew_tells_the_same_events_on_the_same_cpus() {
    if !babeltrace::is_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("babeltrace2");
    command.arg(fixture()).args(["--output-format", "ctf", "--output"]).arg(directory.path());
    assert!(command.output().unwrap().status.success());
    let (ours, theirs) = (read_path(&fixture()), read_path(directory.path()));
    let told = |whole: &super::events::Whole| {
        let mut told: Vec<String> = whole.events.iter().map(|event| format!("{event:?}")).collect();
        told.sort_unstable();
        told
    };
    assert!(ours.events.iter().any(|event| event.cpu == 1));
    assert!(told(&ours) == told(&theirs), "{:?}\n{:?}", ours.events.first(), theirs.events.first());
}

#[test]
fn a_trace_is_found_from_its_parent_from_itself_and_from_its_metadata() {
    let itself = fixture();
    for path in [itself.clone(), itself.join("metadata"), itself.join("../..")] {
        assert!(ctf::sniff(&path), "{}", path.display());
        assert_eq!(ctf::open(&path).unwrap().facts().format, Format::Ctf1);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(!ctf::sniff(&source) && !ctf::sniff(&source.join("lib.rs")));
    assert!(matches!(ctf::open(&source), Err(Error::UnknownFormat { .. })));
}

#[test]
fn a_cut_holds_exactly_the_events_of_its_stretch_with_their_fields() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("cut");
    let all = read_path(&fixture()).events;
    let origin = all[0].time_ns;
    let (from, to) = (123_456_789, 456_789_012);
    let cut = ctf::cut(&fixture(), &out, from, to).unwrap();
    let stretch: Vec<_> = all.into_iter().filter(|event| (from..to).contains(&(event.time_ns - origin))).collect();
    assert!(stretch.len() > 1_000);
    let read = read_path(&out);
    assert_eq!((read.events.as_slice(), cut.events), (stretch.as_slice(), stretch.len() as u64));
    assert!(read.problems.is_empty() && read.lost.is_empty(), "{:?} {:?}", read.problems, read.lost);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(&out), cut.events);
    }
    assert!(ctf::cut(&fixture(), &out, from, to).is_err(), "nothing is written over");
}
