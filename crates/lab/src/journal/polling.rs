//! The mask of Open vSwitch's polling threads: read, set, put back, through `ovs-vsctl`.
//!
//! The switch makes one polling thread for each CPU of the mask, and without a mask one for each node that has a port. A new
//! mask ends the threads on CPUs that it leaves out; their queues go to the others at once.
//! Source: ovs-vswitchd.conf.db(5), `other_config:pmd-cpu-mask`, Open vSwitch 3.1.

use super::revert::Reverted;
use crate::{Error, program::Program};
use base::{Change, CpuSet};
use std::time::Duration;

/// `ovs-vsctl` waits until the switch has done what was asked; a switch that is stuck is not waited for longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The CPUs that are asked for; none: no mask is set.
///
/// # Errors
/// If Open vSwitch is not there, or answers something else.
pub fn read() -> Result<CpuSet, Error> {
    let said = ovs(&["--if-exists", "get", "Open_vSwitch", ".", "other_config:pmd-cpu-mask"])?;
    let mask = parse(&said);
    mask.ok_or_else(|| Error::Unable(format!("ovs-vsctl: no mask in its output: {}", said.trim())))
}

/// Sets the CPUs, and reads them back; none takes the mask away.
///
/// # Errors
/// If the switch refuses, or has another mask afterwards.
pub fn set(cpus: &CpuSet) -> Result<(), Error> {
    let command = Change::PmdMask { cpus: cpus.to_string(), from: None }.command();
    ovs(&command.split_whitespace().skip(1).collect::<Vec<_>>())?;
    let now = read()?;
    let words = |cpus: &CpuSet| if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() };
    let refused =
        || Error::Unable(format!("polling threads: {} were asked for, and it is {}", words(cpus), words(&now)));
    (now == *cpus).then_some(()).ok_or_else(refused)
}

/// Puts back what held, unless somebody else has changed it since.
pub(super) fn put_back(old: &CpuSet, new: &CpuSet) -> Reverted {
    match read() {
        Ok(now) if now == *old => Reverted::Done,
        Ok(now) if now != *new => Reverted::LeftAlone(format!("it is {now} now, and kvmscope had set {new}")),
        Ok(_) => set(old).map_or_else(|error| Reverted::Failed(error.to_string()), |()| Reverted::Done),
        Err(error) => Reverted::Failed(error.to_string()),
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
