//! The mask of Open vSwitch's polling threads: read, set, put back, through `ovs-vsctl`.
//!
//! The switch makes one polling thread for each CPU of the mask, and without a mask one for each node that has a port. A new
//! mask ends the threads on CPUs that it leaves out; their queues go to the others at once.
//! Source: ovs-vswitchd.conf.db(5), `other_config:pmd-cpu-mask`, Open vSwitch 3.1.

use super::{Concern, Held, Live, same_cpus, set};
use crate::{Error, program::Program};
use base::{CpuSet, Setting};
use std::time::Duration;

/// `ovs-vsctl` waits until the switch has done what was asked; a switch that is stuck is not waited for longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The mask; an empty list: none is set.
pub(super) struct PmdMask;

impl Live for PmdMask {
    fn read(&self) -> Result<Held, Error> {
        let said = ovs(&["--if-exists", "get", "Open_vSwitch", ".", "other_config:pmd-cpu-mask"])?;
        let mask = parse(&said).map(|cpus| cpus.to_string().into());
        mask.ok_or_else(|| Error::Malformed(format!("ovs-vsctl: no mask in its output: {}", said.trim())))
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        set(value).map(|cpus| cpus.to_string())
    }

    fn same(&self, value: &str, now: &str) -> bool {
        same_cpus(value, now)
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        let command = Setting::PmdMask.command(&self.spelled(value)?);
        ovs(&command.split_whitespace().skip(1).collect::<Vec<_>>())?;
        let now = self.read()?.value;
        let words = |cpus: &str| if cpus.is_empty() { "none".to_owned() } else { cpus.to_owned() };
        let refused = || {
            Error::refused("polling threads", format_args!("{} was requested, but it is {}", words(value), words(&now)))
        };
        self.same(value, &now).then_some(()).ok_or_else(refused)
    }

    /// The switch ends and makes threads: nothing says which of them will be there.
    fn concerns(&self, _old: &str, _new: &str) -> Result<Concern, Error> {
        Ok(Concern::Unknown)
    }

    fn outlives_boot(&self) -> bool {
        true
    }
}

/// `"0x202"`, `202`, or nothing.
fn parse(said: &str) -> Option<CpuSet> {
    let mask = said.trim().trim_matches('"');
    if mask.is_empty() { Some(CpuSet::default()) } else { CpuSet::parse_mask(mask) }
}

fn ovs(words: &[&str]) -> Result<String, Error> {
    Ok(Program::new("ovs-vsctl", "openvswitch-switch").run(words, LIMIT)?.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_as_the_switch_writes_them() {
        let read = |said: &str| parse(said).map(|cpus| cpus.to_string());
        assert_eq!(read("\"0x202\"\n").as_deref(), Some("1,9"));
        assert_eq!(read("\"ff00000000000000ff\"\n").as_deref(), Some("0-7,64-71"));
        assert_eq!(read("\n").as_deref(), Some(""), "no mask is set");
        assert_eq!(read("ovs-vsctl: no"), None);
    }
}
