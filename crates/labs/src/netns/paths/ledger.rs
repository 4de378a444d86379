//! Which counter is which place of the books: a line for each, and the books out of two readings.
//!
//! In: the path, the length of the chain, [`Counters`]. Out: [`Books`], in which every frame is received or dropped at a named place.

use super::bed::Path;
use super::carrier::of_thread;
use super::counters::Counters;
use super::{macvtap, vnfs};
use base::datapath::{Agreement, Books, Place};
use lab::Error;

/// Which counters make the books.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// Places where frames are dropped, and the counter of each.
    dropped: Vec<(String, String)>,
    /// Frames that were counted twice: which, and the counters of either side, to be added up.
    agreements: Vec<(String, Vec<String>, Vec<String>)>,
}

/// Both ports of a VNF, counted from 0.
pub(super) fn ports(vnf: u32) -> [String; 2] {
    [format!("port{}", 2 * vnf), format!("port{}", 2 * vnf + 1)]
}

/// Counters that together say what left a device or would have.
fn out_of(device: &str) -> Vec<String> {
    ["packets", "dropped"].map(|what| format!("{device} tx {what}")).to_vec()
}

impl Ledger {
    pub(super) fn of(path: Path, vnfs: u32) -> Self {
        let mut ledger = Self::default();
        ledger.dropped("ring into VNF 1".to_owned(), "source0 tx dropped".to_owned());
        for vnf in 0..vnfs {
            let ([near, far], number) = (ports(vnf), vnf + 1);
            ledger.dropped(format!("VNF {number}"), format!("{near} rx dropped"));
            ledger.within(path, vnf, [&near, &far]);
            let onward =
                if number == vnfs { "queue into the sink".to_owned() } else { format!("ring into VNF {}", number + 1) };
            ledger.dropped(onward, format!("{far} tx dropped"));
        }
        ledger
    }

    /// What is counted inside of a VNF.
    fn within(&mut self, path: Path, vnf: u32, [near, far]: [&str; 2]) {
        let number = vnf + 1;
        let (into, out) = (format!("into VNF {number}"), format!("out of VNF {number}"));
        match path {
            Path::Veth | Path::Bridge => {}
            Path::Macvtap => {
                let (tap, of) = (macvtap::on(near), |what| of_thread(vnf, what));
                self.dropped(format!("ring of the macvtap into VNF {number}"), format!("{tap} rx dropped"));
                self.dropped(format!("macvtap out of VNF {number}"), of("refused"));
                // A macvtap counts what came up to it, whether its ring had room or not.
                self.agree(into, vec![format!("{tap} rx packets")], vec![of("read"), format!("{tap} rx dropped")]);
                self.agree(out, vec![of("wrote")], out_of(far));
            }
            Path::VhostNet => {
                let (inward, outward) = (|what| vnfs::counter(2 * vnf, what), |what| vnfs::counter(2 * vnf + 1, what));
                let [before, behind] = [2 * vnf, 2 * vnf + 1].map(vnfs::tap_of);
                self.dropped(format!("ring of the tap into VNF {number}"), format!("{before} tx dropped"));
                self.dropped(format!("ring out of VNF {number}"), outward("TX-dropped"));
                self.agree(into, vec![format!("{before} tx packets")], vec![inward("RX-packets")]);
                self.agree(out, vec![outward("TX-packets")], vec![format!("{behind} rx packets")]);
            }
        }
    }

    fn dropped(&mut self, place: String, counter: String) {
        self.dropped.push((place, counter));
    }

    /// The same frames are counted by both.
    fn agree(&mut self, frames: String, one: Vec<String>, other: Vec<String>) {
        self.agreements.push((frames, one, other));
    }

    /// The books between two readings. `sent` is what the sender handed to the kernel. A frame that waits in a ring when the second
    /// reading is made is missing, so that is made when nothing moves any more.
    pub(super) fn books(&self, before: &Counters, after: &Counters, sent: u64) -> Result<Books, Error> {
        let grown = |counter: &String| after.grown(before, counter);
        let sum = |counters: &[String]| counters.iter().map(grown).sum::<Result<u64, Error>>();
        let dropped = self.dropped.iter().map(|(place, counter)| {
            let packets = grown(counter)?;
            Ok::<_, Error>(Place { place: place.clone(), packets, counter: counter.clone(), most: None })
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
