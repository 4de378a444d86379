//! Network namespaces and the NICs that were moved into them.
//!
//! Deleting a namespace deletes the veth pairs that have an end in it and gives real NICs back to the first namespace,
//! without their addresses and routes (net/core/dev.c, `default_device_exit_net`, Linux 6.12): so a NIC is moved back
//! first, and gets what it had.

use super::step::Reverted;
use crate::{Error, program::Program};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// A NIC as it was before it was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// True if it was up.
    pub up: bool,
    /// Its addresses, in the words that give them again: `10.1.72.62/16 brd 10.1.255.255`.
    pub addresses: Vec<String>,
    /// Its routes, as `ip route` prints them, without those that come with the addresses.
    pub routes: Vec<String>,
    /// The same of IPv6, without those that routers announce.
    #[serde(default)]
    pub routes6: Vec<String>,
}

impl Nic {
    /// What the NIC is now, in the namespace of this process.
    ///
    /// # Errors
    /// If there is no such NIC, or if it is part of another, which would lose it.
    pub fn read(name: &str) -> Result<Self, Error> {
        let link = ip(&["-o", "link", "show", "dev", plain(name)?])?;
        let mut words = link.split_whitespace().skip_while(|word| *word != "master");
        if let Some(master) = words.nth(1) {
            return Err(Error::Unable(format!("{name} is part of {master}; take it out of that first")));
        }
        let addresses = ip(&["-o", "addr", "show", "dev", name, "scope", "global"])?;
        let routes = |family| ip(&[family, "route", "show", "dev", name]);
        Ok(Self {
            name: name.to_owned(),
            up: link.split(['<', '>', ',']).any(|flag| flag == "UP"),
            addresses: addresses.lines().filter_map(address).collect(),
            routes: own(&routes("-4")?),
            routes6: own(&routes("-6")?),
        })
    }

    fn put_back(&self) -> Result<(), Error> {
        for address in &self.addresses {
            let words = address.split_whitespace().map(plain).collect::<Result<Vec<_>, _>>()?;
            ip(&[&["addr", "replace"], words.as_slice(), &["dev", &self.name]].concat())?;
        }
        ip(&["link", "set", "dev", &self.name, if self.up { "up" } else { "down" }])?;
        for (family, routes) in [("-4", &self.routes), ("-6", &self.routes6)] {
            for route in routes {
                let words: Vec<&str> = route.split_whitespace().collect();
                ip(&[&[family, "route", "replace"], words.as_slice(), &["dev", &self.name]].concat())?;
            }
        }
        Ok(())
    }
}

/// Routes that nobody gives again by himself: `10.1.0.0/16 proto kernel scope link src ..` comes with its address, one of
/// `proto ra` with the next announcement.
fn own(routes: &str) -> Vec<String> {
    let lines = routes.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.contains("proto kernel") && !line.contains("proto ra")).map(str::to_owned).collect()
}

/// The address of a line of `ip -o addr` in the words that give it again: those behind `inet` or `inet6` up to the scope,
/// what follows that is no state, and how long it holds. `None` for one of IPv6 that routers announce.
fn address(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "inet" | "inet6"));
    let six = words.next()? == "inet6";
    let all: Vec<&str> = words.collect();
    let scope = all.iter().position(|word| *word == "scope")?;
    let (mut given, rest) = (all[..scope].to_vec(), &all[scope..]);
    if rest.contains(&"noprefixroute") {
        given.push("noprefixroute");
    }
    if rest.contains(&"dynamic") {
        if six {
            return None;
        }
        for key in ["valid_lft", "preferred_lft"] {
            let at = rest.iter().position(|word| *word == key)?;
            given.extend([key, rest.get(at + 1)?.trim_end_matches("sec")]);
        }
    }
    (!given.is_empty()).then(|| given.join(" "))
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
        Err(error) if error.to_string().contains(gone) && gone.starts_with("No such") => Reverted::Done,
        Err(error) if error.to_string().contains(gone) => Reverted::LeftAlone(error.to_string()),
        Err(error) => Reverted::Failed(error.to_string()),
    }
}

/// A word that `ip` takes as a name and not as an option.
fn plain(word: &str) -> Result<&str, Error> {
    let named = !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_whitespace) && word.len() < 64;
    named.then_some(word).ok_or_else(|| Error::Unable(format!("`{word}` is no name of a NIC or a namespace")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_out_of_the_lines_of_ip() {
        let given = |line: &str| address(line).unwrap_or_default();
        let line = "2: eth0    inet 10.1.72.62/16 brd 10.1.255.255 scope global eth0\\ valid_lft forever";
        assert_eq!(given(line), "10.1.72.62/16 brd 10.1.255.255");
        let line = "2: eth0 inet 10.1.0.9/16 metric 100 brd 10.1.255.255 scope global dynamic noprefixroute eth0\\ \
                    valid_lft 86000sec preferred_lft 85000sec";
        let words = "10.1.0.9/16 metric 100 brd 10.1.255.255 noprefixroute valid_lft 86000 preferred_lft 85000";
        assert_eq!(given(line), words);
        assert_eq!(given("2: eth0 inet6 fd00::1/64 scope global \\ valid_lft forever"), "fd00::1/64");
        assert_eq!(given("2: eth0 inet6 2001:db8::1/64 scope global dynamic mngtmpaddr \\ valid_lft 9sec"), "");
        assert_eq!(given("2: eth0"), "");
        let routes = "default via 10.1.0.1 proto static \n10.1.0.0/16 proto kernel scope link src 10.1.72.62 \n\n";
        assert_eq!(own(routes), ["default via 10.1.0.1 proto static"]);
    }

    #[test]
    fn names_that_would_be_options_are_refused() {
        assert!(matches!(delete("-all"), Reverted::Failed(_)));
        assert!(matches!(delete(""), Reverted::Failed(_)));
    }
}
