//! Does `record --flight` keep the last stretch alone, and end when it is told? Live, on this machine's tracefs.

use super::live::AtWork;
use super::{begun, instance_of, oracle, place, signal, text};
use base::recording::{EndedBy, PartState, Recording};
use rustix::process::Signal;
use std::path::Path;
use std::process::Output;
use testing::{Hogs, wait_for};
use trace::Reading;
use trace::replay::{Event, Listener, replay};
use trace::request::Request;

/// What `--keep 1s` keeps.
const KEPT_NS: u64 = 1_000_000_000;

const PLAIN: [&str; 5] = ["--no-self-check", "--no-snapshot", "--flight", "-o", "new"];

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    PLAIN.into_iter().chain(more.iter().copied()).collect()
}

/// What was recorded, in nanoseconds from the first event to the last, and how many events that are.
fn held(path: &Path) -> (u64, u64) {
    struct Nobody;
    impl Listener for Nobody {
        fn event(&mut self, _: &Event<'_>) {}
    }
    let trace = trace::open(path).unwrap();
    let request = Request::everything(trace.facts());
    let totals = replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Nobody);
    let (first_ns, last_ns) = totals.span_ns.unwrap();
    (last_ns - first_ns, totals.events())
}

/// Numbers of the first pages of the files in which a flight recorder keeps what CPU 0 did.
fn files(place: &Path) -> Vec<u64> {
    let names = std::fs::read_dir(place.join("new/L0/trace.partial")).unwrap();
    let number = |name: String| name.strip_prefix("cpu0.")?.strip_suffix(".raw")?.parse().ok();
    names.filter_map(|file| number(file.ok()?.file_name().into_string().ok()?)).collect()
}

/// Whether what CPU 0 did first has become too old and is gone.
fn is_past_the_first_pages(place: &Path) -> bool {
    let files = files(place);
    !files.is_empty() && !files.contains(&0)
}

/// What it said, once it has ended by itself as it should.
fn landed(output: &Output, place: &Path, by: EndedBy) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recording = Recording::open(&place.join("new")).unwrap();
    assert_eq!(recording.ended.as_ref().map(|ended| ended.by), Some(by), "{recording:?}");
    assert!(recording.parts.iter().all(|part| part.state == PartState::Complete));
    assert!(!place.join("new/L0/trace.partial").exists() && !place.join("new/trigger").exists());
    assert_eq!(std::fs::read_dir(place.join("journal")).unwrap().count(), 0, "nothing is left to undo");
    recording.ended.unwrap().text
}

#[test]
fn the_last_stretch_is_kept_to_the_event_and_the_rest_is_dropped() {
    let Some(place) = place("flight") else { return };
    let place = place.path();
    let child = begun(place, &arguments(&["--keep", "1s"]));
    wait_for("the end of the oldest pages", || is_past_the_first_pages(place));
    let files = files(place);
    assert!(files.len() <= 12, "each file holds an eighth of what is kept: {files:?}");
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    landed(&output, place, EndedBy::Signal);
    let dat = place.join("new/L0/trace.dat");
    let (length_ns, events) = held(&dat);
    assert!(events > 0 && length_ns <= KEPT_NS, "{events} events in {length_ns} ns");
    let said = text(&output.stdout);
    // Both ends of what is kept lie at events.
    let kept = format!("kept the last {:.1} s of ", length_ns as f64 / 1e9);
    assert!(said.contains(&kept) && said.contains("kvmscope report new"), "{said}");
    let Some(theirs) = oracle("trace-cmd", &["report", "-R", dat.to_str().unwrap()]) else { return };
    assert_eq!(text(&theirs.stderr), "", "trace-cmd complains");
    assert_eq!(text(&theirs.stdout).lines().filter(|line| line.contains('[')).count() as u64, events);
}

#[test]
fn each_trigger_ends_it_a_moment_later_and_says_what_pulled() {
    let Some(place) = place("triggers") else { return };
    for (name, by_pipe) in [("pipe", true), ("signal", false)] {
        let place = place.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let child = begun(&place, &arguments(&["--trigger", "fifo", "--trigger", "SIGUSR1", "--after", "300ms"]));
        match by_pipe {
            true => std::fs::write(place.join("new/trigger"), "cyclictest: 137 us\n").unwrap(),
            false => signal(&child, Signal::USR1),
        }
        let output = child.wait_with_output().unwrap();
        let why = landed(&output, &place, EndedBy::Trigger);
        let expected = if by_pipe { "a line in its pipe: cyclictest: 137 us" } else { "signal SIGUSR1" };
        assert_eq!(why, expected);
        assert!(text(&output.stdout).starts_with(&format!("ended by {expected}\n")), "{}", text(&output.stdout));
        let (length_ns, _) = held(&place.join("new/L0/trace.dat"));
        assert!(length_ns >= 200_000_000, "what came after it is there: {length_ns} ns");
    }
}

#[test]
fn a_flight_recorder_that_was_killed_leaves_what_it_had() {
    let Some(place) = place("flight, killed") else { return };
    let place = place.path();
    let mut child = begun(place, &arguments(&["--keep", "1s", "--trigger", "fifo"]));
    wait_for("the end of the oldest pages", || is_past_the_first_pages(place));
    child.kill().unwrap();
    child.wait().unwrap();
    let undo = super::kvmscope(place).arg("undo").output().unwrap();
    assert_eq!(undo.status.code(), Some(0), "{}", text(&undo.stderr));
    assert!(!instance_of(child.id()).exists() && !place.join("new/trigger").exists(), "{}", text(&undo.stdout));
    let (length_ns, events) = held(&place.join("new/L0/trace.partial"));
    assert!(events > 0 && length_ns > 0, "{events} events in {length_ns} ns");
    assert!(is_past_the_first_pages(place), "what is too old is not in it");
    let report = super::kvmscope(place).args(["report", "new"]).output().unwrap();
    assert!(text(&report.stdout).contains("did not finish"), "{}", text(&report.stdout));
    let cut = super::kvmscope(place).args(["cut", "new", "-o", "last"]).output().unwrap();
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    assert_eq!(held(&place.join("last/L0/trace.dat")).1, events);
}

#[test]
fn the_end_of_its_time_or_of_its_command_ends_it_as_well() {
    let Some(place) = place("flight, ended") else { return };
    for (name, more, by) in
        [("time", vec!["--seconds", "0.5"], EndedBy::Time), ("command", vec!["--", "sleep", "0.5"], EndedBy::Command)]
    {
        let place = place.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let output = super::record(&place, &arguments(&more));
        landed(&output, &place, by);
        assert!(held(&place.join("new/L0/trace.dat")).0 < 10_000_000_000);
    }
}

const BUDGET: &str = r#"
schema = "kvmscope.budget/1"
name = "strict"
[[goal]]
id = "tenth"
metric = "preempt_window"
stat = "sup"
window = "100ms"
op = "<="
limit = "20ms"
"#;

#[test]
fn a_breach_ends_it_and_who_took_the_time_is_named() {
    let Some(place) = place("breach") else { return };
    let place = place.path();
    std::fs::write(place.join("strict.toml"), BUDGET).unwrap();
    let cpu = lab::setting::thread::affinity(lab::setting::thread::own()).unwrap().last().unwrap();
    let Some(guest) = AtWork::guest_on(Some(cpu), 50_000) else { return };
    let hogs = Hogs::on(cpu, 3);
    // Should it not see the breach, it ends by itself, with another status.
    let output = super::record(place, &arguments(&["--keep", "4s", "--stop-on", "strict.toml", "--seconds", "60"]));
    drop(hogs);
    assert!(guest.ends_well());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said} {}", text(&output.stderr));
    let recording = Recording::open(&place.join("new")).unwrap();
    let ended = recording.ended.unwrap();
    assert_eq!(ended.by, EndedBy::Breach);
    let words = ["a breach: vCPU 0 of ", " lost ", " of 100.0 ms at ", "hogger", "goal tenth is <= 20 ms"];
    assert!(words.iter().all(|words| ended.text.contains(words)), "{ended:?}");
    assert!(said.starts_with(&format!("ended by {}\n", ended.text)), "{said}");
    let at = ended.text.split(" ms at ").nth(1).unwrap().split(" s: ").next().unwrap();
    let (length_ns, _) = held(&place.join("new/L0/trace.dat"));
    assert!(at.parse::<f64>().unwrap() * 1e9 < length_ns as f64, "it is in what was kept: {ended:?}, {length_ns} ns");
    let report = super::kvmscope(place).args(["report", "--json", "new"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let latency = sections.iter().find(|section| section["id"] == "latency").unwrap();
    assert!(latency["tables"]["culprits"].to_string().contains("hogger"), "the report names it as well");
    let flow = sections.iter().find(|section| section["id"] == "flow").unwrap();
    let said = flow["summary"].as_str().unwrap();
    assert!(said.starts_with("Ended by a breach: "), "the vCPU that broke the budget comes first: {said}");
    // The recording carries the budget that ended it, and is judged by it.
    let kept = recording.parts.iter().find(|part| part.kind == base::recording::PartKind::Budget).unwrap();
    assert_eq!(std::fs::read_to_string(place.join("new").join(&kept.path)).unwrap(), BUDGET);
    assert!(latency["about"].to_string().contains("Judged by budget strict of the recording"), "{latency}");
}

#[test]
fn a_budget_that_no_recorder_can_judge_is_wrong_use() {
    let Some(place) = place("budget") else { return };
    let place = place.path();
    let samples =
        BUDGET.replace("preempt_window", "irq_latency").replace("sup", "max").replace("window = \"100ms\"\n", "");
    std::fs::write(place.join("samples.toml"), samples).unwrap();
    for (budget, words) in [("samples.toml", "no goal of what vCPUs lose"), ("no-such", "neither a built-in budget")] {
        let output = super::record(place, &arguments(&["--stop-on", budget]));
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words) && !place.join("new").exists(), "{}", text(&output.stderr));
    }
}
