//! Faults of one rule: injected into honest sides, one process after another, and added up to what was seen of them.

use super::super::peer::{Link, Outcome, Peer};
use super::honest::Honest;
use base::channel::Fault;
use lab::Error;
use std::time::Duration;

/// An honest side that has not ended by then hangs: each of its waits is shorter than a hundredth of this.
pub(super) const HANGS_AFTER: Duration = Duration::from_secs(10);

/// Of several injections of one rule.
pub(super) struct Script {
    rule: u8,
    what: &'static str,
    pub(super) injected: u64,
    pub(super) seen: u64,
    /// Nothing is counted, because..
    uncounted: Option<&'static str>,
    pub(super) why: Vec<String>,
}

impl Script {
    pub(super) fn of(rule: u8, what: &'static str) -> Script {
        Script { rule, what, injected: 0, seen: 0, uncounted: None, why: Vec::new() }
    }

    pub(super) fn uncounted(self, why: &'static str) -> Script {
        Script { uncounted: Some(why), ..self }
    }

    /// `times` faults go to an honest side that does `work`; `act` is done where it waits for that.
    pub(super) fn inject(
        &mut self,
        times: u64,
        work: impl FnOnce(&mut Link) -> Result<Honest, String>,
        act: impl FnOnce(&mut Peer),
    ) -> Result<(), Error> {
        let mut peer = Peer::start(work)?;
        act(&mut peer);
        self.injected += times;
        match peer.outcome::<Honest>(HANGS_AFTER) {
            Outcome::Answered(Honest { seen, wrong }) => {
                self.seen += seen;
                if wrong > 0 {
                    self.why.push(format!("{wrong} frames were handed out wrongly"));
                }
            }
            Outcome::Failed(why) => self.why.push(format!("the honest side failed: {why}")),
            Outcome::Crashed(signal) => self.why.push(format!("the honest side was ended by signal {signal}")),
            Outcome::Hung => self.why.push(format!("the honest side hung for {} s", HANGS_AFTER.as_secs())),
        }
        Ok(())
    }

    pub(super) fn fault(self) -> Fault {
        let Script { rule, what, injected, seen, uncounted, mut why } = self;
        let survived = why.is_empty();
        why.extend(uncounted.map(str::to_owned));
        Fault {
            rule,
            what: what.to_owned(),
            injected,
            seen: uncounted.is_none().then_some(seen),
            survived: Some(survived),
            why: why.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_survived_says_why_and_one_that_is_says_what_was_seen() {
        let mut script = Script::of(4, "lengths");
        (script.injected, script.seen) = (3, 2);
        let fault = script.fault();
        assert_eq!((fault.injected, fault.seen, fault.survived, fault.why.as_str()), (3, Some(2), Some(true), ""));
        let mut script = Script::of(5, "words").uncounted("it is not looked at");
        script.why.push("the honest side was ended by signal 7".to_owned());
        let fault = script.fault();
        assert_eq!((fault.seen, fault.survived), (None, Some(false)));
        assert_eq!(fault.why, "the honest side was ended by signal 7; it is not looked at");
    }
}
