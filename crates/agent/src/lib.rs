//! What happens on a host all day, at a bounded cost: the time of every vCPU since the agent began, and a short recording every so often.
//!
//! ```text
//! fold, in the kernel --every second--> Continuous --+--> /metrics
//! record (a child) --> recording --count--> Sampled -'
//!    ^                    |  '--export (a child)--> data set
//!    |                    '--keep--> the last N, below a size
//!    '--- wait: as long as it takes for the cost to be below the share that was asked for
//! ```
//! Beside it, where asked for, flight recorders keep the last seconds (module flights).
//! Nothing is changed but what a recording changes, which the journal has; nothing stays in the kernel, however it ends.

mod continuous;
mod cost;
mod counters;
mod families;
mod flights;
mod identity;
mod keep;
mod open_metrics;
mod round;
mod sampled;

pub use serve::Listen;

use anyhow::{Context, bail};
use continuous::Continuous;
use flights::{Flown, Frozen};
use keep::Keep;
use lab::flight::{Flight, LEAST_ROOM_BYTES};
use process::interrupt::{Interrupt, rest};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// What an agent is asked to do.
pub struct Plan {
    /// Where recordings go; it is made if needed.
    pub directory: PathBuf,
    /// From the beginning of one recording to that of the next, at least.
    pub every: Duration,
    /// How long each is.
    pub length_ns: u64,
    /// Which share of one CPU recording and counting may take.
    pub share: f64,
    /// How many recordings stay, and how large they may be together.
    pub keep: usize,
    pub keep_bytes: u64,
    /// Each is added to this data set.
    pub dataset: Option<PathBuf>,
    /// After so many recordings it ends.
    pub rounds: Option<u32>,
    /// Where changes of the host are noted.
    pub journal: OsString,
    /// Where metrics are served.
    pub listen: Listen,
    /// The last seconds are kept, and saved when something breaks.
    pub flight: Option<LastSeconds>,
}

/// What a flight recorder keeps.
pub struct LastSeconds {
    pub keep: Duration,
    /// A budget by name or file: a vCPU that breaks it has them saved.
    pub stop_on: Option<OsString>,
}

/// Observes, records and counts on `host` until a signal ends it.
///
/// # Errors
/// If it could not start: not root, a directory that cannot be made, an address that is taken. What fails later is complained of, and tried again.
pub fn run(plan: &Plan, host: &Path) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("recording needs root; run `sudo kvmscope agent {}`", plan.directory.display());
    }
    std::fs::create_dir_all(&plan.directory).with_context(|| plan.directory.display().to_string())?;
    let sampled: Arc<Mutex<String>> = Arc::default();
    let interrupt = Interrupt::watch()?;
    let continuous = Continuous::start(host.to_owned())?;
    let frozen: Option<Arc<Mutex<Frozen>>> = plan.flight.as_ref().map(|_| Arc::default());
    let exposition = {
        let (sampled, counters, frozen) = (Arc::clone(&sampled), continuous.counters(), frozen.clone());
        serve::Exposition::start(&plan.listen, move || {
            let mut text = counters.lock().unwrap_or_else(PoisonError::into_inner).text();
            text += &sampled.lock().unwrap_or_else(PoisonError::into_inner);
            text += &frozen.as_ref().map_or_else(String::new, |frozen| locked(frozen).text());
            text + "# EOF\n"
        })?
    };
    let stop = interrupt.hold();
    let proc = host.join("proc");
    let kept =
        |prefix| Keep { directory: plan.directory.clone(), prefix, most: plan.keep, most_bytes: plan.keep_bytes };
    let keep = kept(keep::ROUNDS);
    let mut pace = cost::Pace::new(plan.every, plan.share);
    let mut cost = cost::Cost::of_this(&proc)?;
    let mut metrics = sampled::Sampled::new(continuous.is_exact());
    let mut round = round::Round::new(plan.length_ns, &keep, plan.dataset.as_deref(), &plan.journal)?;
    say(&format!(
        "recording {} every {}; metrics: {}",
        words(Duration::from_nanos(plan.length_ns)),
        words(plan.every),
        exposition.place()
    ));
    say(continuous.floor());
    let _flown = match (&plan.flight, &frozen) {
        (Some(last), Some(frozen)) => {
            let flight = Flight {
                program: std::env::current_exe().context("the path of this program is unknown")?,
                keep: last.keep,
                most_bytes: (plan.keep_bytes / FLIGHT_SHARE).max(LEAST_ROOM_BYTES),
                stop_on: last.stop_on.clone(),
                journal: plan.journal.clone(),
                proc: proc.clone(),
            };
            Some(Flown::start(flight, kept(keep::FLIGHTS), Arc::clone(frozen))?)
        }
        _ => None,
    };
    for number in 1_u32.. {
        let began = Instant::now();
        let mut made = None;
        if let Some(ahead) = keep.ahead(SystemTime::now()).first().filter(|_| number == 1) {
            say(&format!(
                "{} is dated in the future: the clock was set back; it is treated as the oldest recording",
                base::shell::printable(&ahead.display().to_string())
            ));
        }
        match round.run(number, &stop) {
            Ok(Some(done)) => {
                metrics.add(&done);
                made = Some(done.place);
            }
            Ok(None) => break,
            // The next one may succeed: a disk gets room, a tracer ends.
            Err(error) => {
                process::exit::complain(&error);
                metrics.fail();
            }
        }
        let kept = keep.prune(0, SystemTime::now(), made.as_deref()).unwrap_or_else(|error| {
            process::exit::complain(&error);
            keep::Kept::default()
        });
        let over = frozen.as_ref().map_or(Duration::ZERO, |frozen| locked(frozen).over());
        let used = cost.since_last(over)?;
        let every = pace.next(used);
        if let Some(slower) = pace.changed() {
            say(&format!(
                "a recording takes {} of CPU time: the next one begins after {}, so that it stays at {} of a CPU",
                words(used),
                words(slower),
                base::number::percent(plan.share)
            ));
        }
        let text = metrics.text(&sampled::State { kept, every, used, share: pace.taken() });
        *sampled.lock().unwrap_or_else(PoisonError::into_inner) = text;
        if plan.rounds == Some(number) || rest(every.saturating_sub(began.elapsed()), &stop) {
            break;
        }
    }
    Ok(())
}

/// The ring of a flight recorder takes this part of what recordings may take, so that some of them stay.
const FLIGHT_SHARE: u64 = 4;

fn locked(frozen: &Mutex<Frozen>) -> MutexGuard<'_, Frozen> {
    frozen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On stderr, where systemd keeps it; whether anybody reads it does not matter.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "agent: {line}");
}

fn words(length: Duration) -> String {
    base::number::duration(length.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::counters::Counters;
    use super::{cost, keep, sampled};
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::Duration;

    /// Names of samples by the families that an agent tells, exactly observing.
    fn exported() -> BTreeSet<String> {
        let mut counters = Counters::default();
        counters.begin(true);
        let state = sampled::State {
            kept: keep::Kept::default(),
            every: Duration::from_secs(300),
            used: Duration::ZERO,
            share: cost::Pace::new(Duration::from_secs(300), 0.01).taken(),
        };
        let text = counters.text() + &sampled::Sampled::new(true).text(&state);
        let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let samples = |(name, kind): (&str, &str)| -> Vec<String> {
            match kind {
                "counter" => vec![format!("{name}_total")],
                "histogram" => ["bucket", "count", "sum"].map(|end| format!("{name}_{end}")).into(),
                _ => vec![name.to_owned()],
            }
        };
        families.flat_map(samples).collect()
    }

    /// Words of a text that are called as metrics are.
    fn named(text: &str) -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        words.filter(|word| word.starts_with("kvmscope_")).map(str::to_owned).collect()
    }

    #[test]
    fn dashboard_and_alerts_ask_for_what_there_is() {
        let exported = exported();
        for file in ["prometheus/kvmscope.rules.yml", "grafana/kvmscope.json"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file);
            let asked = named(&std::fs::read_to_string(path).unwrap());
            let unknown: Vec<&String> = asked.difference(&exported).collect();
            assert!(asked.len() > 5 && unknown.is_empty(), "{file}: {unknown:?} of {exported:?}");
        }
    }
}
