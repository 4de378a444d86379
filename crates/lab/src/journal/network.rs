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
    /// Its addresses, such as `10.1.72.62/16`.
    pub addresses: Vec<String>,
    /// Its routes, as `ip route` prints them, without those that come with the addresses.
    pub routes: Vec<String>,
}

impl Nic {
    /// What the NIC is now, in the namespace of this process.
    ///
    /// # Errors
    /// If there is no such NIC.
    pub fn read(name: &str) -> Result<Self, Error> {
        let link = ip(&["-o", "link", "show", "dev", plain(name)?])?;
        let addresses = ip(&["-o", "addr", "show", "dev", name, "scope", "global"])?;
        // `10.1.0.0/16 proto kernel scope link src ..` comes by itself with the address.
        let routes = ip(&["route", "show", "dev", name])?;
        let routes = routes.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("proto kernel"));
        Ok(Self {
            name: name.to_owned(),
            up: link.split(['<', '>', ',']).any(|flag| flag == "UP"),
            addresses: addresses.lines().filter_map(address).collect(),
            routes: routes.map(str::to_owned).collect(),
        })
    }

    fn put_back(&self) -> Result<(), Error> {
        for address in &self.addresses {
            ip(&["addr", "replace", plain(address)?, "dev", &self.name])?;
        }
        ip(&["link", "set", "dev", &self.name, if self.up { "up" } else { "down" }])?;
        for route in &self.routes {
            let words: Vec<&str> = ["route", "replace"].into_iter().chain(route.split_whitespace()).collect();
            ip(&[words.as_slice(), &["dev", &self.name]].concat())?;
        }
        Ok(())
    }
}

/// The address of a line of `ip -o addr`: the word behind `inet` or `inet6`.
fn address(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "inet" | "inet6"));
    words.nth(1).map(str::to_owned)
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

/// Moves a NIC out of the namespace, and gives it what it had.
pub(super) fn move_back(nic: &Nic, namespace: &str) -> Reverted {
    let names = plain(&nic.name).and_then(|name| Ok((name, plain(namespace)?)));
    let moved = names.and_then(|(name, namespace)| {
        match ip(&["-n", namespace, "link", "set", "dev", name, "netns", "1"]) {
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
        let line = "2: eth0    inet 10.1.72.62/16 brd 10.1.255.255 scope global eth0\\ valid_lft forever";
        assert_eq!(address(line).as_deref(), Some("10.1.72.62/16"));
        assert_eq!(address("2: eth0 inet6 fd00::1/64 scope global").as_deref(), Some("fd00::1/64"));
        assert_eq!(address("2: eth0"), None);
    }

    #[test]
    fn names_that_would_be_options_are_refused() {
        assert!(matches!(delete("-all"), Reverted::Failed(_)));
        assert!(matches!(delete(""), Reverted::Failed(_)));
    }
}
