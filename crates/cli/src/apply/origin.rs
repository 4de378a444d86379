//! Was a finding made about this host, as it runs now?
//!
//! ```text
//! emulated, or for the machine below ------------------> printed
//! this boot of this host, at the finding's level ------> may be made
//! another machine, another boot, another level --------> printed
//! nobody knows (bare trace, older recording) ----------> printed, unless each change is of a thread whose start time and
//!                                                        name are known: then the thread tells
//! ```
//! The identity of a machine stands in the recording's manifest, and so in every report.

use base::Change;
use base::recording::{Identity, Machine};

/// What a recording or a report says of where a finding comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub machines: Vec<Machine>,
    pub emulated: Option<String>,
    /// When it was recorded.
    pub created: Option<String>,
    /// The finding's level, `L0`.
    pub level: String,
    /// True if only whoever owns the machine below can make the change.
    pub outer: bool,
}

impl Origin {
    /// Why the changes are not made on the host `here`; `None` if they may be.
    pub(super) fn refusal(&self, here: &Identity, changes: &[Change]) -> Option<String> {
        if let Some(emulator) = &self.emulated {
            return Some(format!("it is about a machine emulated by {emulator}"));
        }
        if self.outer {
            return Some("the change has to be made on the host of this machine".to_owned());
        }
        let mut threads = changes.iter().filter_map(|change| change.setting.thread());
        let unread = threads.find(|thread| thread.start_ticks.is_none()).map(|thread| thread.tid);
        if let Some(tid) = unread {
            return Some(format!(
                "the start time of thread {tid} was not recorded, so this thread id may now be another thread"
            ));
        }
        match self.place(here) {
            Place::Here => None,
            Place::Elsewhere(why) => Some(why),
            Place::Unknown(_) if changes.iter().all(is_known_thread) => None,
            Place::Unknown(why) => Some(why),
        }
    }

    fn place(&self, here: &Identity) -> Place {
        let same = |one: &Option<String>, other: &Option<String>| Some(one.as_ref()? == other.as_ref()?);
        let boot = |machine: &Machine| same(&machine.identity.boot_id, &here.boot_id);
        let computer = |machine: &Machine| same(&machine.identity.machine_id, &here.machine_id);
        let ours = |machine: &&Machine| boot(machine) == Some(true) && computer(machine) != Some(false);
        let meant: Vec<&Machine> =
            self.machines.iter().filter(|machine| format!("L{}", machine.level) == self.level).collect();
        let at = |machine: &Machine| format!("L{}", machine.level);
        match (&meant[..], self.machines.iter().find(ours)) {
            ([one], _) if ours(one) => Place::Here,
            ([_, _, ..], _) => Place::Elsewhere(format!(
                "the recording has {} machines at {}, and the finding names none of them",
                meant.len(),
                self.level
            )),
            (_, Some(host)) => {
                Place::Elsewhere(format!("it is about {}, and this host is {} of the recording", self.level, at(host)))
            }
            ([one], None) => match (computer(one), boot(one)) {
                (Some(false), _) => Place::Elsewhere("it was recorded on another machine".to_owned()),
                (Some(true), Some(false)) => Place::Elsewhere("it was recorded before this host rebooted".to_owned()),
                (None, Some(false)) => {
                    Place::Elsewhere("it was recorded on another machine, or before this host rebooted".to_owned())
                }
                _ => {
                    Place::Unknown("the recording does not identify the machine and the boot it was made on".to_owned())
                }
            },
            ([], None) if self.level.is_empty() => {
                Place::Unknown("the finding does not say which machine it is about".to_owned())
            }
            ([], None) => Place::Unknown(format!("the recording has no machine at {}", self.level)),
        }
    }
}

/// Whether this host is meant.
enum Place {
    Here,
    Elsewhere(String),
    Unknown(String),
}

/// True if the change is of a thread that its start time and name identify.
fn is_known_thread(change: &Change) -> bool {
    change.setting.thread().is_some_and(|thread| thread.start_ticks.is_some() && thread.comm.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Setting;
    use base::setting::ThreadId;

    fn identity(machine: &str, boot: &str) -> Identity {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Identity { machine_id: known(machine), boot_id: known(boot) }
    }

    fn machine(level: u8, machine: &str, boot: &str) -> Machine {
        let (id, identity) = (format!("L{level}-{boot}"), identity(machine, boot));
        Machine { id, level, parent: None, name: None, identity }
    }

    /// What is said of a finding at L0, on the host `m` in its boot `b`.
    fn said(machines: Vec<Machine>, changes: &[Change]) -> String {
        let origin = Origin { machines, level: "L0".to_owned(), ..Origin::default() };
        origin.refusal(&identity("m", "b"), changes).unwrap_or_else(|| "made".to_owned())
    }

    fn write() -> Change {
        Setting::SysfsWrite { path: "x".into() }.change("1", None)
    }

    fn moved(start_ticks: Option<u64>) -> Change {
        let thread = ThreadId { tid: 7, start_ticks, comm: start_ticks.map(|_| "vhost-6".into()) };
        Setting::TaskAffinity(thread).change("1", None)
    }

    #[test]
    fn only_what_was_found_in_this_boot_of_this_host_is_made() {
        let write = [write()];
        assert_eq!(said(vec![machine(0, "m", "b")], &write), "made");
        assert_eq!(said(vec![machine(0, "", "b")], &write), "made", "the boot alone is of one machine");
        for (other, words) in [
            (machine(0, "n", "c"), "another machine"),
            (machine(0, "n", "b"), "another machine"),
            (machine(0, "m", "a"), "before this host rebooted"),
            (machine(0, "", "a"), "another machine, or before"),
            (machine(0, "m", ""), "does not identify"),
            (machine(0, "", ""), "does not identify"),
            (machine(1, "m", "b"), "this host is L1"),
        ] {
            let said = said(vec![other.clone()], &write);
            assert!(said.contains(words), "{other:?}: {said}");
        }
        let two = vec![machine(0, "m", "b"), machine(0, "n", "c")];
        assert!(said(two, &write).contains("2 machines at L0"));
        assert_eq!(said(vec![machine(0, "m", "b"), machine(1, "n", "c")], &write), "made");
    }

    #[test]
    fn a_thread_tells_by_its_start_time_where_nothing_else_does() {
        for machines in [vec![], vec![machine(0, "", "")]] {
            assert_eq!(said(machines.clone(), &[moved(Some(1))]), "made");
            assert_ne!(said(machines, &[moved(Some(1)), write()]), "made");
        }
        assert_ne!(said(vec![machine(0, "n", "c")], &[moved(Some(1))]), "made", "another machine is known");
        assert!(said(vec![machine(0, "m", "b")], &[moved(None)]).contains("start time of thread 7"));
    }

    #[test]
    fn what_was_emulated_or_belongs_below_is_printed_only() {
        let origin = Origin { machines: vec![machine(0, "m", "b")], level: "L0".to_owned(), ..Origin::default() };
        let refusal = |origin: Origin| origin.refusal(&identity("m", "b"), &[write()]).unwrap();
        let emulated = Origin { emulated: Some("QEMU TCG".to_owned()), ..origin.clone() };
        assert!(refusal(emulated).contains("emulated by QEMU TCG"));
        assert!(refusal(Origin { outer: true, ..origin }).contains("the host of this machine"));
    }
}
