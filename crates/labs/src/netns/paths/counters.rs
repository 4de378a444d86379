//! What was counted of a bed's frames: by devices, and by those who carry frames.

use super::bed::Bed;
use lab::Error;
use lab::journal::network::ip;
use serde_json::Value;
use std::collections::BTreeMap;

/// All counters of a bed by name: `port0 rx dropped`. They only grow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters(pub(super) BTreeMap<String, u64>);

impl Counters {
    pub(super) fn read(bed: &Bed<'_>) -> Result<Self, Error> {
        let mut counters = Self(bed.carrier.counters(bed)?);
        for namespace in [&bed.source, &bed.chain, &bed.sink] {
            counters.0.extend(of_json(&ip(&["-n", namespace, "-s", "-j", "link", "show"])?)?);
        }
        Ok(counters)
    }

    /// What `counter` has grown by since `before`.
    pub(super) fn grown(&self, before: &Self, counter: &str) -> Result<u64, Error> {
        let of = |counters: &Self| counters.0.get(counter).copied();
        let (now, before) = of(self)
            .zip(of(before))
            .ok_or_else(|| Error::Malformed(format!("`{counter}` was not counted, so the books cannot be closed")))?;
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
                Error::Malformed("`ip -s -j link` does not show what was received and sent".to_owned())
            })?;
            counters.insert(format!("{name} {way} {what}"), count);
        }
    }
    Ok(counters)
}
