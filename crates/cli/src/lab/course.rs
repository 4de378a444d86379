//! The course of an experiment: what is said meanwhile, what ends it, what becomes of its recording.

use crate::arguments::{DestinationOptions, OutputOptions};
use base::recording::Recording;
use base::utc::Utc;
use process::exit::Exit;
use process::interrupt::Interrupt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

/// Runs the experiment, which is told when it began, and reports on its recording.
pub(super) fn run(
    destination: &DestinationOptions,
    output: &OutputOptions,
    experiment: impl FnOnce(String, &mut dyn FnMut(&str), &AtomicBool) -> Result<Recording, lab::Error>,
) -> anyhow::Result<Exit> {
    let created = Utc::of(SystemTime::now()).stamp();
    let interrupt = Interrupt::watch()?;
    let stop = interrupt.hold();
    let began = Instant::now();
    let mut say = |line: &str| {
        // If stderr is closed nobody wants to know.
        let _ = writeln!(std::io::stderr(), "lab: {:3} s  {line}", began.elapsed().as_secs());
    };
    let Some(recording) = unless_stopped(experiment(created, &mut say, &stop), &stop)? else {
        return Ok(Exit::Interrupted);
    };
    let place = destination.finished(&recording, &interrupt)?;
    say(&format!("the recording is {}", place.display()));
    crate::report::recorded::of(&place, "lab", output, &interrupt)
}

/// What an experiment gives; nothing if the user stopped it. That the host is not as it was is said even then.
pub(super) fn unless_stopped<T>(outcome: Result<T, lab::Error>, stop: &AtomicBool) -> Result<Option<T>, lab::Error> {
    match outcome {
        Err(left @ lab::Error::LeftBehind(_)) => Err(left),
        Err(_) if stop.load(Ordering::Relaxed) => Ok(None),
        outcome => outcome.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_behind_is_said_even_if_the_user_stopped_it() {
        let left =
            || Err::<(), _>(lab::Error::LeftBehind("namespace a: in use; run `kvmscope undo ovs-1-0`".to_owned()));
        let failed = || Err::<(), _>(lab::Error::Died("the switch ended".to_owned()));
        let (stopped, goes_on) = (AtomicBool::new(true), AtomicBool::new(false));
        assert!(unless_stopped(left(), &stopped).is_err());
        assert!(unless_stopped(left(), &goes_on).is_err());
        assert_eq!(unless_stopped(failed(), &stopped).unwrap(), None);
        assert!(unless_stopped(failed(), &goes_on).is_err());
        assert_eq!(unless_stopped(Ok(()), &stopped).unwrap(), Some(()));
    }
}
