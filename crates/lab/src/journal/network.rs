//! Network namespaces and the NICs that were moved into them.
//!
//! Deleting a namespace deletes the veth pairs that have an end in it and gives real NICs back to the first namespace,
//! without their addresses and routes (net/core/dev.c, `default_device_exit_net`, Linux 6.12): so a NIC is moved back
//! first, and gets what it had.

use super::revert::Reverted;
use crate::{Error, program::Program};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// A NIC as it was before it was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    pub name: String,
    /// True if it was up.
    pub up: bool,
    /// Its addresses, in the words that give them again: `10.1.72.62/16 brd 10.1.255.255 scope global`.
    pub addresses: Vec<String>,
    /// Its routes of all tables, as `ip route` prints them, without those that come with the addresses.
    pub routes: Vec<String>,
    /// The same of IPv6, without those that routers announce.
    #[serde(default)]
    pub(crate) routes6: Vec<String>,
    /// Its neighbours that somebody has set: `10.1.72.9 lladdr 52:54:00:12:34:56`, or `proxy 10.1.72.8`.
    #[serde(default)]
    pub neighbours: Vec<String>,
    /// The values of its files below `/proc/sys/net`: `ipv4/conf/proxy_arp`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
}

/// Where the kernel keeps settings of a NIC, which a NIC that moves loses: `/proc/sys/net/ipv4/conf/NIC/proxy_arp`
/// (Documentation/networking/ip-sysctl.rst, Linux 6.12).
const SYSCTLS: &str = "/proc/sys/net";
const KINDS: [&str; 4] = ["ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"];

impl Nic {
    /// What the NIC is now, in the namespace of this process.
    ///
    /// # Errors
    /// If there is no such NIC, or if it is part of another, which would lose it.
    pub fn read(name: &str) -> Result<Self, Error> {
        let link = ip(&["-o", "link", "show", "dev", plain(name)?])?;
        let mut words = link.split_whitespace().skip_while(|word| *word != "master");
        if let Some(master) = words.nth(1) {
            return Err(Error::Busy(format!("{name} is part of {master}; take it out of that first")));
        }
        let addresses = ip(&["-o", "addr", "show", "dev", name])?;
        let routes = |family| ip(&[family, "route", "show", "table", "all", "dev", name]);
        let neighbours = ip(&["neigh", "show", "dev", name, "nud", "permanent"])?;
        let proxies = ip(&["neigh", "show", "proxy", "dev", name])?;
        Ok(Self {
            name: name.to_owned(),
            up: link.split(['<', '>', ',']).any(|flag| flag == "UP"),
            addresses: addresses.lines().filter_map(|line| address(line, name)).collect(),
            routes: own(&routes("-4")?),
            routes6: own(&routes("-6")?),
            neighbours: neighbours.lines().chain(proxies.lines()).filter_map(neighbour).collect(),
            sysctls: sysctls(name),
        })
    }

    /// First what decides how the kernel treats the NIC, then what needs it, in the order in which each needs the other.
    fn put_back(&self) -> Result<(), Error> {
        let name = plain(&self.name)?;
        for (setting, value) in &self.sysctls {
            put_back_setting(name, setting, value)?;
        }
        for address in &self.addresses {
            let words = address.split_whitespace().map(plain).collect::<Result<Vec<_>, _>>()?;
            ip(&[&["addr", "replace"], words.as_slice(), &["dev", name]].concat())?;
        }
        ip(&["link", "set", "dev", name, if self.up { "up" } else { "down" }])?;
        for neighbour in &self.neighbours {
            let words = neighbour.split_whitespace().map(plain).collect::<Result<Vec<_>, _>>()?;
            let state: &[&str] = if words.contains(&"proxy") { &[] } else { &["nud", "permanent"] };
            ip(&[&["neigh", "replace"], words.as_slice(), state, &["dev", name]].concat())?;
        }
        for (family, routes) in [("-4", &self.routes), ("-6", &self.routes6)] {
            // A gateway is reached by a route that has none.
            let (behind, direct): (Vec<_>, Vec<_>) = routes.iter().partition(|route| route.contains(" via "));
            for route in direct.into_iter().chain(behind) {
                let words = route.split_whitespace().map(plain).collect::<Result<Vec<_>, _>>()?;
                ip(&[&[family, "route", "replace"], words.as_slice(), &["dev", name]].concat())?;
            }
        }
        Ok(())
    }
}

/// The values of all settings of a NIC that can be read.
fn sysctls(name: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for kind in KINDS {
        let directory = Path::new(SYSCTLS).join(kind).join(name);
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (Ok(setting), Ok(value)) = (entry.file_name().into_string(), std::fs::read_to_string(entry.path()))
            else {
                continue;
            };
            values.insert(format!("{kind}/{setting}"), value.trim().to_owned());
        }
    }
    values
}

/// Writes a setting of a NIC if it has another value. One that the kernel has no more, or lets nobody write, is passed over.
fn put_back_setting(name: &str, setting: &str, value: &str) -> Result<(), Error> {
    let place = setting.rsplit_once('/').filter(|(kind, file)| KINDS.contains(kind) && plain(file).is_ok());
    let Some((kind, file)) = place.filter(|(_, file)| *file != ".." && *file != ".") else {
        return Err(Error::Malformed(format!("`{setting}` is not a NIC setting")));
    };
    let path = Path::new(SYSCTLS).join(kind).join(name).join(file);
    let now = std::fs::read_to_string(&path).ok();
    if now.is_none_or(|now| now.trim() == value) {
        return Ok(());
    }
    match std::fs::write(&path, value) {
        Err(error) if !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => {
            Err(Error::io(path, error))
        }
        _ => Ok(()),
    }
}

/// Routes that nobody gives again by himself: `10.1.0.0/16 proto kernel scope link src ..` comes with its address, one of
/// `proto ra` with the next announcement. Words that tell a state are none to give.
fn own(routes: &str) -> Vec<String> {
    const STATES: [&str; 5] = ["linkdown", "dead", "offload", "rt_offload", "rt_trap"];
    let lines = routes.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.contains("proto kernel") && !line.contains("proto ra"));
    let given = |line: &str| {
        let words = line.split_whitespace().filter(|word| !STATES.contains(word));
        let number = |word: &'_ str| word.strip_suffix("sec").unwrap_or(word).to_owned();
        words.map(number).collect::<Vec<_>>().join(" ")
    };
    lines.map(given).collect()
}

/// The words that give a neighbour again; `None` for one that can only be learned.
fn neighbour(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let address = words.first()?;
    if words.contains(&"proxy") {
        return Some(format!("proxy {address}"));
    }
    let hardware = words.iter().position(|word| *word == "lladdr").and_then(|at| words.get(at + 1))?;
    let router = if words.contains(&"router") { " router" } else { "" };
    Some(format!("{address} lladdr {hardware}{router}"))
}

/// The address of a line of `ip -o addr` in the words that give it again: those behind `inet` or `inet6`, with scope, label,
/// what follows that is no state, and how long it holds. `None` for one of IPv6 that routers announce.
fn address(line: &str, device: &str) -> Option<String> {
    /// What can be given with an address (ip-address(8), `CONFFLAG-LIST`).
    const FLAGS: [&str; 6] = ["home", "mngtmpaddr", "nodad", "optimistic", "noprefixroute", "autojoin"];
    let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "inet" | "inet6"));
    let six = words.next()? == "inet6";
    let all: Vec<&str> = words.map(|word| word.trim_end_matches('\\')).collect();
    let scope = all.iter().position(|word| *word == "scope")?;
    // The kernel gives each NIC that is up an address out of its hardware address (RFC 4291, appendix A).
    if all.first().is_some_and(|address| address.starts_with("fe80::") && address.contains("ff:fe")) {
        return None;
    }
    let (mut given, rest) = (all[..scope].to_vec(), &all[scope..]);
    given.extend(rest.iter().take(2));
    given.extend(rest.iter().filter(|word| FLAGS.contains(word)));
    let is_label = |word: &&&str| word.strip_prefix(device).is_some_and(|rest| rest.starts_with(':'));
    given.extend(rest.iter().find(is_label).into_iter().flat_map(|label| ["label", *label]));
    if rest.contains(&"dynamic") {
        if six {
            return None;
        }
        for key in ["valid_lft", "preferred_lft"] {
            let at = rest.iter().position(|word| *word == key)?;
            given.extend([key, rest.get(at + 1)?.trim_end_matches("sec")]);
        }
    }
    (scope > 0).then(|| given.join(" "))
}

/// Runs `ip`.
///
/// # Errors
/// If it fails; its own words are in the sentence.
pub fn ip(words: &[&str]) -> Result<String, Error> {
    Ok(Program::new("ip", "iproute2").run(words, LIMIT)?.stdout)
}

/// Deletes a namespace; one that is gone is deleted.
pub(super) fn delete(name: &str) -> Reverted {
    let deleted = plain(name).and_then(|name| ip(&["netns", "delete", name]));
    of(deleted.map(|_| ()), "No such file or directory")
}

/// Moves a NIC out of the namespace into that of this process, and gives it what it had.
pub(super) fn move_back(nic: &Nic, namespace: &str) -> Reverted {
    let names = plain(&nic.name).and_then(|name| Ok((name, plain(namespace)?)));
    let moved = names.and_then(|(name, namespace)| {
        match ip(&["-n", namespace, "link", "set", "dev", name, "netns", &std::process::id().to_string()]) {
            // It was never moved, or is back already: what it had is given all the same.
            Err(_) if ip(&["link", "show", "dev", name]).is_ok() => Ok(()),
            moved => moved.map(|_| ()),
        }
    });
    of(moved.and_then(|()| nic.put_back()), "Cannot find device")
}

fn of(outcome: Result<(), Error>, gone: &str) -> Reverted {
    match outcome {
        Ok(()) => Reverted::Done,
        Err(error) if error.is_failure_saying(gone) && gone.starts_with("No such") => Reverted::Done,
        Err(error) if error.is_failure_saying(gone) => Reverted::LeftAlone(error.to_string()),
        Err(error) => Reverted::Failed(error.to_string()),
    }
}

/// A word that `ip` takes as a name and not as an option.
fn plain(word: &str) -> Result<&str, Error> {
    let named = !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_whitespace) && word.len() < 64;
    named
        .then_some(word)
        .ok_or_else(|| Error::WrongUse(format!("`{word}` is not a valid name of a NIC or a namespace")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_out_of_the_lines_of_ip() {
        let given = |line: &str| address(line, "eth0").unwrap_or_default();
        let line = "2: eth0    inet 10.1.72.62/16 brd 10.1.255.255 scope global eth0\\ valid_lft forever";
        assert_eq!(given(line), "10.1.72.62/16 brd 10.1.255.255 scope global");
        let line = "2: eth0 inet 10.1.0.9/16 metric 100 brd 10.1.255.255 scope global dynamic noprefixroute eth0\\ \
                    valid_lft 86000sec preferred_lft 85000sec";
        let words =
            "10.1.0.9/16 metric 100 brd 10.1.255.255 scope global noprefixroute valid_lft 86000 preferred_lft 85000";
        assert_eq!(given(line), words);
        let line = "2: eth0 inet 169.254.7.7/16 scope link secondary eth0:x\\ valid_lft forever preferred_lft forever";
        assert_eq!(given(line), "169.254.7.7/16 scope link label eth0:x");
        let line = "2: eth0 inet6 fd00::1/64 scope global nodad \\ valid_lft forever";
        assert_eq!(given(line), "fd00::1/64 scope global nodad");
        assert_eq!(given("2: eth0 inet6 2001:db8::1/64 scope global dynamic mngtmpaddr \\ valid_lft 9sec"), "");
        assert_eq!(given("2: eth0 inet6 fe80::e4de:f2ff:fe5c:4472/64 scope link \\ valid_lft forever"), "");
        assert_eq!(given("2: eth0 inet6 fe80::1/64 scope link \\ valid_lft forever"), "fe80::1/64 scope link");
        assert_eq!(given("2: eth0"), "");
        let routes = "default via 10.1.0.1 proto static linkdown \n10.1.0.0/16 proto kernel scope link src 10.1.72.62 \n\n\
                      10.98.0.0/16 table 77 scope link \nfd01::/64 metric 1024 expires 88sec pref medium\n";
        let given = [
            "default via 10.1.0.1 proto static",
            "10.98.0.0/16 table 77 scope link",
            "fd01::/64 metric 1024 expires 88 pref medium",
        ];
        assert_eq!(own(routes), given);
        let given =
            ["10.1.0.9 lladdr 52:54:00:12:34:56 PERMANENT", "10.1.0.8  proxy", "10.1.0.7 FAILED"].map(neighbour);
        let words = [Some("10.1.0.9 lladdr 52:54:00:12:34:56"), Some("proxy 10.1.0.8"), None];
        assert_eq!(given.each_ref().map(Option::as_deref), words);
    }

    #[test]
    fn a_setting_lies_below_its_nic_or_is_refused() {
        for setting in ["ipv4/conf/..", "ipv4/../kernel/x", "ipv4/conf/../../x", "kernel/x", "x"] {
            assert!(put_back_setting("lo", setting, "1").is_err(), "{setting}");
        }
        assert!(put_back_setting("lo", "ipv4/conf/no_such_setting", "1").is_ok());
    }

    #[test]
    fn names_that_would_be_options_are_refused() {
        assert!(matches!(delete("-all"), Reverted::Failed(_)));
        assert!(matches!(delete(""), Reverted::Failed(_)));
    }
}
