//! What the kernel counted of a bed's links, and the books out of two such readings.

use super::bed::Bed;
use crate::Error;
use crate::journal::network::ip;
use base::datapath::{Agreement, Books, Place};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;

/// Frames that a device received and sent, and those that it dropped on their way out or on their way in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) received: u64,
    pub(super) receive_dropped: u64,
    pub(super) sent: u64,
    pub(super) send_dropped: u64,
}

/// All devices of a bed by name; `dropped` by each packet socket since the last reading.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) devices: BTreeMap<String, Device>,
    pub(super) sockets_dropped: Vec<u64>,
}

impl Counters {
    pub(super) fn read(bed: &Bed) -> Result<Self, Error> {
        let mut devices = BTreeMap::new();
        for namespace in [&bed.source, &bed.chain, &bed.sink] {
            devices.extend(of_json(&ip(&["-n", namespace, "-s", "-j", "link", "show"])?)?);
        }
        let sockets: io::Result<Vec<u64>> = bed.sockets.iter().map(|socket| socket.dropped()).collect();
        let sockets_dropped = sockets.map_err(|error| Error::refused("the statistics of a packet socket", error))?;
        Ok(Self { devices, sockets_dropped })
    }

    fn of(&self, device: &str) -> Device {
        self.devices.get(device).copied().unwrap_or_default()
    }
}

/// Devices, out of what `ip -s -j link` prints.
fn of_json(text: &str) -> Result<Vec<(String, Device)>, Error> {
    let links: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| Error::Malformed(format!("the output of `ip -s -j link` is not understood: {error}")))?;
    let of = |link: &Value| {
        let count = |way: &str, what: &str| link["stats64"][way][what].as_u64();
        let device = Device {
            received: count("rx", "packets")?,
            receive_dropped: count("rx", "dropped")?,
            sent: count("tx", "packets")?,
            send_dropped: count("tx", "dropped")?,
        };
        Some((link["ifname"].as_str()?.to_owned(), device))
    };
    let devices: Option<Vec<_>> = links.iter().filter(|link| link["ifname"] != "lo").map(of).collect();
    devices.ok_or_else(|| Error::Malformed("`ip -s -j link` does not say what was received and sent".to_owned()))
}

/// The books between two readings of a bed of that many VNFs. `sent` is what the sender handed to the kernel. A frame that waits
/// in a ring when the second reading is made is missing, so that is made when nothing moves any more.
pub(super) fn books(before: &Counters, after: &Counters, vnfs: u32, sent: u64) -> Books {
    let grown = |device: &str, of: fn(&Device) -> u64| of(&after.of(device)).saturating_sub(of(&before.of(device)));
    let mut dropped = Vec::new();
    let mut place = |place: String, packets: u64, counter: String| {
        dropped.push(Place { place, packets, counter, most: None });
    };
    let out = |device: &str| grown(device, |counted| counted.send_dropped);
    let into = |device: &str| grown(device, |counted| counted.receive_dropped);
    place("ring into VNF 1".to_owned(), out("source0"), "source0 tx dropped".to_owned());
    for vnf in 0..vnfs {
        let (near, far, number) = (format!("port{}", 2 * vnf), format!("port{}", 2 * vnf + 1), vnf + 1);
        let onward =
            if number == vnfs { "queue into the sink".to_owned() } else { format!("ring into VNF {}", number + 1) };
        place(format!("VNF {number}"), into(&near), format!("{near} rx dropped"));
        if let Some(packets) = after.sockets_dropped.get(vnf as usize) {
            place(format!("packet socket of VNF {number}"), *packets, "PACKET_STATISTICS".to_owned());
        }
        place(onward, out(&far), format!("{far} tx dropped"));
    }
    let received = grown("sink0", |counted| counted.received);
    let left = grown("source0", |counted| counted.sent) + out("source0");
    let agreements = vec![Agreement {
        packets: "sent".to_owned(),
        one: ("the sender".to_owned(), sent),
        other: ("source0 tx packets + dropped".to_owned(), left),
    }];
    Books { sent, received, dropped, held: Vec::new(), agreements }
}
