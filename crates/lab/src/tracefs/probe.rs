//! Which kvm events fire here?
//!
//! That an event is there does not mean that it fires: under `kvm_pvm` a guest runs without one `kvm_entry` or `kvm_exit`.
//! So a small guest is run once, and a throw-away instance that hears only this process and its threads counts what it
//! caused. In: a closure that runs a guest. Out: counts, and the names that stayed silent.

use super::instance::Tracefs;
use super::plan::{Plan, Selection};
use super::recorder::TracefsRecorder;
use crate::journal::Journal;
use crate::{Error, Recorder};
use std::fmt::Write;
use std::path::Path;
use trace::lane::Reading;
use trace::replay::{Event, Listener, replay};
use trace::request::Request;

/// The events without which exits cannot be told, and levels of nested guests cannot either.
const NEEDED: &[&str] = &["kvm_entry", "kvm_exit"];

/// Events that are named in the sentence for the user, which is to fit a line.
const NAMED: usize = 2;

/// What a guest has caused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fired {
    /// Events of group `kvm` that fired, and how often; most often first.
    pub counts: Vec<(String, u64)>,
    /// Events of the group that this kernel has and that did not.
    pub silent: Vec<String>,
    /// Events that a full buffer cost; the counts are too low by as many, all kinds together.
    pub lost: u64,
}

/// Runs a guest and tells which kvm events it has caused. `scratch` is an empty directory that may be filled.
///
/// # Errors
/// If nothing can be recorded here, or if the guest fails.
pub fn what_fires(
    tracefs: &Tracefs,
    journal: &Journal,
    scratch: &Path,
    run: impl FnOnce() -> Result<(), Error>,
) -> Result<Fired, Error> {
    let kvm = Selection { system: "kvm".to_owned(), name: None, asked: true };
    let plan = Plan { events: vec![kvm], buffer_kib: 8 << 10, tids: vec![std::process::id()], ..Plan::default() };
    let recorder = Box::new(TracefsRecorder::start(tracefs, journal, &plan, scratch, "probe")?);
    let meter = recorder.meter();
    let ran = run();
    let parts = recorder.stop()?;
    ran?;
    let mut fired = Fired { lost: meter.lost(), ..Fired::default() };
    for part in parts.iter().filter(|part| part.kind.is_trace()) {
        let path = scratch.join(&part.path);
        let trace = trace::open(&path)?;
        let request = Request::default();
        let totals = replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Deaf);
        for (event, count) in trace.facts().event_types.iter().zip(totals.tally) {
            match (event.system.as_str(), count) {
                ("kvm", 0) => fired.silent.push(event.name.clone()),
                ("kvm", _) => fired.counts.push((event.name.clone(), count)),
                _ => {}
            }
        }
    }
    fired.counts.sort_by(|(a, most), (b, more)| more.cmp(most).then_with(|| a.cmp(b)));
    Ok(fired)
}

struct Deaf;

impl Listener for Deaf {
    fn event(&mut self, _: &Event<'_>) {}
}

impl Fired {
    /// The needed events that did not fire.
    pub fn missing(&self) -> Vec<&'static str> {
        let fired = |name: &str| self.counts.iter().any(|(known, _)| known == name);
        NEEDED.iter().copied().filter(|name| !fired(name)).collect()
    }

    pub fn sentence(&self) -> String {
        let kinds = self.counts.len();
        match self.missing().as_slice() {
            [] => format!(
                "self-check: a test guest caused {}, including kvm_entry and kvm_exit",
                base::number::many(kinds as u64, "kvm event type")
            ),
            missing => {
                let seen: Vec<&str> = self.counts.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
                let seen = match kinds.saturating_sub(NAMED) {
                    _ if seen.is_empty() => "a test guest caused no kvm event".to_owned(),
                    0 => format!("{} do", seen.join(", ")),
                    more => format!("{} and {more} more fire", seen.join(", ")),
                };
                format!("self-check: {} do not fire here; {seen}", missing.join(" and "))
            }
        }
    }

    pub fn notes(&self) -> String {
        let mut text = format!("{}\n\nA test guest ran before recording. Events it caused:\n", self.sentence());
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{count:>8}  {name}");
        }
        if self.lost > 0 {
            let _ = writeln!(text, "{:>8}  events of any kind were lost: a buffer was full", self.lost);
        }
        let _ = writeln!(text, "\nEvents of this kernel that it did not cause:\n{}", self.silent.join(" "));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fire_is_said_by_name() {
        let counts = vec![("kvm_userspace_exit".to_owned(), 9), ("kvm_pio".to_owned(), 3)];
        let fired = Fired { counts, silent: vec!["kvm_exit".into()], lost: 0 };
        assert_eq!(fired.missing(), ["kvm_entry", "kvm_exit"]);
        let sentence = fired.sentence();
        assert!(sentence.contains("kvm_entry and kvm_exit do not fire here"), "{sentence}");
        assert!(sentence.ends_with("; kvm_userspace_exit, kvm_pio do"), "{sentence}");
        assert!(Fired::default().sentence().ends_with("caused no kvm event"), "{}", Fired::default().sentence());
    }
}
