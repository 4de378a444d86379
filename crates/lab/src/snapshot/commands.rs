//! What only programs tell of this machine: cards by `ethtool`, Open vSwitch by its own tools.
//!
//! In: the programs. Out: `commands/NAME`, a file for each command that answered, secrets taken out. A program that is not
//! installed has nothing to tell; one that fails is noted as a file that could not be read is.

use super::redact;
use crate::program::Program;
use host::Snapshot;
use host::snapshot::output_name;
use std::time::Duration;

/// These answer in milliseconds; a switch that hangs shall not hold up a snapshot for long.
const LIMIT: Duration = Duration::from_secs(5);

/// More cards are not asked about.
const MOST_CARDS: usize = 64;

/// A command's file name and what it printed, or why it did not.
pub(super) type Told = (String, Result<String, String>);

#[derive(Debug, Clone)]
pub struct Tools {
    /// `ethtool`.
    pub ethtool: Program,
    /// `ovs-vsctl`.
    pub vsctl: Program,
    /// `ovs-appctl`.
    pub appctl: Program,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            ethtool: Program::new("ethtool", "ethtool"),
            vsctl: Program::new("ovs-vsctl", "openvswitch-switch"),
            appctl: Program::new("ovs-appctl", "openvswitch-switch"),
        }
    }
}

impl Tools {
    /// Asks about all cards of the machine, and its switch.
    pub fn told(&self, machine: &Snapshot) -> Vec<Told> {
        let mut told = Vec::new();
        let cards = machine.entries("sys/class/net").into_iter();
        let cards = cards.filter(|name| machine.link(&format!("sys/class/net/{name}/device")).is_some());
        for card in cards.take(MOST_CARDS) {
            for option in ["-c", "-k", "-l"] {
                told.extend(ask(&self.ethtool, &[option, &card]));
            }
        }
        let vsctl = |words: &[&str]| ask(&self.vsctl, &[&["-t", "5"], words].concat());
        let first = vsctl(&["get", "Open_vSwitch", ".", "other_config"]);
        // Without its database the switch tells nothing, and once is enough to say so.
        if first.as_ref().is_some_and(|(_, answer)| answer.is_ok()) {
            told.extend(["bridge", "port", "interface"].iter().filter_map(|table| vsctl(&["list", table])));
            told.extend(ask(&self.appctl, &["dpif-netdev/pmd-rxq-show"]));
        }
        told.extend(first);
        told
    }
}

/// What a command printed; nothing if it is not installed or if the device has nothing of the kind.
fn ask(program: &Program, arguments: &[&str]) -> Option<Told> {
    let name = program.path.file_name()?.to_string_lossy().into_owned();
    let file = output_name(&[&[name.as_str()], arguments].concat());
    match program.run(arguments, LIMIT) {
        Ok(ran) => Some((file, Ok(redact::words(&ran.stdout)))),
        Err(error) => {
            let error = error.to_string();
            let nothing =
                ["is not installed", "not supported", "no such subcommand"].iter().any(|why| error.contains(why));
            (!nothing).then_some((file, Err(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn cards_and_the_switch_are_asked_and_keys_taken_out() {
        let root = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            Program::new(path, "none")
        };
        for card in ["eth0", "br0"] {
            std::fs::create_dir_all(root.path().join("sys/class/net").join(card)).unwrap();
        }
        std::os::unix::fs::symlink("../../../0000:04:00.0", root.path().join("sys/class/net/eth0/device")).unwrap();
        let tools = Tools {
            ethtool: script(
                "ethtool",
                "[ $1 = -l ] && { echo 'netlink error: Operation not supported' >&2; exit 1; }; echo $*",
            ),
            vsctl: script("ovs-vsctl", "echo 'options: {psk=\"hunter2\", n_rxq=\"2\"}'"),
            appctl: script("ovs-appctl", "echo 'cannot connect' >&2; exit 1"),
        };
        let told = tools.told(&Snapshot::open(root.path()).unwrap());
        let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "ethtool_-c_eth0",
                "ethtool_-k_eth0",
                "ovs-vsctl_-t_5_list_bridge",
                "ovs-vsctl_-t_5_list_port",
                "ovs-vsctl_-t_5_list_interface",
                "ovs-appctl_dpif-netdev.pmd-rxq-show",
                "ovs-vsctl_-t_5_get_Open_vSwitch_._other_config",
            ]
        );
        assert_eq!(told[0].1.as_deref(), Ok("-c eth0\n"));
        assert_eq!(told[4].1.as_deref(), Ok("options: {psk=\"[redacted]\", n_rxq=\"2\"}\n"));
        assert!(told[5].1.as_ref().is_err_and(|why| why.contains("cannot connect")));
    }
}
