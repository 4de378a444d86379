//! What was counted of a bed's frames, by whom, and the books out of two such readings.
//!
//! In: the statistics of devices, and what those who carry frames count. Out: [`Counters`] by name, which only grow; a [`Ledger`]
//! says which of them is which place of the books.

use super::bed::Bed;
use crate::Error;
use crate::journal::network::ip;
use base::datapath::{Agreement, Books, Place};
use serde_json::Value;
use std::collections::BTreeMap;

/// All counters of a bed by name: `port0 rx dropped`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters(pub(super) BTreeMap<String, u64>);

/// Which counters make the books.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// Places where frames are dropped, and the counter that says so.
    pub(super) dropped: Vec<(String, String)>,
    /// Frames that were counted twice: which, and the counters of either side, to be added up.
    pub(super) agreements: Vec<(String, Vec<String>, Vec<String>)>,
}

impl Counters {
    pub(super) fn read(bed: &Bed) -> Result<Self, Error> {
        let mut counters = Self(bed.carrier.counters()?);
        for namespace in [&bed.source, &bed.chain, &bed.sink] {
            counters.0.extend(of_json(&ip(&["-n", namespace, "-s", "-j", "link", "show"])?)?);
        }
        Ok(counters)
    }

    /// What `counter` has grown by since `before`.
    fn grown(&self, before: &Self, counter: &str) -> Result<u64, Error> {
        let of = |counters: &Self| counters.0.get(counter).copied();
        let (now, before) = of(self)
            .zip(of(before))
            .ok_or_else(|| Error::Malformed(format!("nobody counted `{counter}`, so the books cannot be made")))?;
        Ok(now.saturating_sub(before))
    }
}

/// Counters of devices, out of what `ip -s -j link` prints.
fn of_json(text: &str) -> Result<BTreeMap<String, u64>, Error> {
    let links: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| Error::Malformed(format!("the output of `ip -s -j link` is not understood: {error}")))?;
    let mut counters = BTreeMap::new();
    for link in links.iter().filter(|link| link["ifname"] != "lo") {
        for (way, what) in [("rx", "packets"), ("rx", "dropped"), ("tx", "packets"), ("tx", "dropped")] {
            let counted = link["ifname"].as_str().zip(link["stats64"][way][what].as_u64());
            let (name, count) = counted.ok_or_else(|| {
                Error::Malformed("`ip -s -j link` does not say what was received and sent".to_owned())
            })?;
            counters.insert(format!("{name} {way} {what}"), count);
        }
    }
    Ok(counters)
}

/// Both ports of a VNF, counted from 0.
pub(super) fn ports(vnf: u32) -> [String; 2] {
    [format!("port{}", 2 * vnf), format!("port{}", 2 * vnf + 1)]
}

/// Counters that together say what left a device or would have.
pub(super) fn out_of(device: &str) -> Vec<String> {
    ["packets", "dropped"].map(|what| format!("{device} tx {what}")).to_vec()
}

impl Ledger {
    /// That of a chain of veths; `within` adds what is counted inside of a VNF.
    pub(super) fn of(vnfs: u32, within: impl Fn(&mut Self, u32)) -> Self {
        let mut ledger = Self::default();
        ledger.dropped("ring into VNF 1".to_owned(), "source0 tx dropped".to_owned());
        for vnf in 0..vnfs {
            let ([near, far], number) = (ports(vnf), vnf + 1);
            ledger.dropped(format!("VNF {number}"), format!("{near} rx dropped"));
            within(&mut ledger, vnf);
            let onward =
                if number == vnfs { "queue into the sink".to_owned() } else { format!("ring into VNF {}", number + 1) };
            ledger.dropped(onward, format!("{far} tx dropped"));
        }
        ledger
    }

    /// Frames are dropped there.
    pub(super) fn dropped(&mut self, place: String, counter: String) {
        self.dropped.push((place, counter));
    }

    /// The same frames are counted by both.
    pub(super) fn agree(&mut self, frames: String, one: Vec<String>, other: Vec<String>) {
        self.agreements.push((frames, one, other));
    }

    /// The books between two readings. `sent` is what the sender handed to the kernel. A frame that waits in a ring when the second
    /// reading is made is missing, so that is made when nothing moves any more.
    pub(super) fn books(&self, before: &Counters, after: &Counters, sent: u64) -> Result<Books, Error> {
        let grown = |counter: &String| after.grown(before, counter);
        let sum = |counters: &[String]| counters.iter().map(grown).sum::<Result<u64, Error>>();
        let dropped = self.dropped.iter().map(|(place, counter)| {
            Ok(Place { place: place.clone(), packets: grown(counter)?, counter: counter.clone(), most: None })
        });
        let mut agreements = vec![Agreement {
            packets: "sent".to_owned(),
            one: ("the sender".to_owned(), sent),
            other: ("source0 tx packets + dropped".to_owned(), sum(&out_of("source0"))?),
        }];
        for (packets, one, other) in &self.agreements {
            let side = |counters: &[String]| Ok::<_, Error>((counters.join(" + "), sum(counters)?));
            agreements.push(Agreement { packets: packets.clone(), one: side(one)?, other: side(other)? });
        }
        Ok(Books {
            sent,
            received: grown(&"sink0 rx packets".to_owned())?,
            dropped: dropped.collect::<Result<_, Error>>()?,
            held: Vec::new(),
            agreements,
        })
    }
}
