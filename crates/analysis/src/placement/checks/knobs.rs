//! Settings of the host, against tuned's profiles for KVM hosts.
//!
//! Only what current profiles (tuned 2.28) ask for: older guides also list scheduler settings that the profiles dropped.
//! A setting that was not read stays unjudged.

use crate::placement::model::Model;
use crate::shared::Hit;
use base::{Change, Severity};

/// What a profile asks of a setting.
struct Knob {
    path: &'static str,
    asks: Asks,
    profile: &'static str,
}

enum Asks {
    Is(&'static str),
    AtLeast(u64),
    AtMost(u64),
}

const KNOBS: &[Knob] = &[
    Knob { path: "proc/sys/vm/swappiness", asks: Asks::AtMost(10), profile: "throughput-performance" },
    Knob { path: "proc/sys/net/core/somaxconn", asks: Asks::AtLeast(2_048), profile: "throughput-performance" },
    Knob {
        path: "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        asks: Asks::Is("performance"),
        profile: "throughput-performance",
    },
    Knob { path: "sys/kernel/mm/ksm/run", asks: Asks::Is("0"), profile: "cpu-partitioning" },
];

/// Every setting that a profile for KVM hosts would change; of a host without VMs nothing is asked.
pub fn settings(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    if model.machine.domains.is_empty() {
        return hits;
    }
    for knob in KNOBS {
        let Some(fact) = model.machine.settings.get(knob.path) else { continue };
        let value = fact.value.trim();
        let number: Option<u64> = value.parse().ok();
        let (fits, wanted) = match knob.asks {
            Asks::Is(wanted) => (value == wanted, wanted.to_owned()),
            Asks::AtLeast(least) => (number.is_none_or(|number| number >= least), least.to_string()),
            Asks::AtMost(most) => (number.is_none_or(|number| number <= most), most.to_string()),
        };
        if fits {
            continue;
        }
        let name = knob.path.rsplit('/').next().unwrap_or(knob.path);
        let title = format!("{name} is {value}; profile {} sets {wanted}", knob.profile);
        let mut hit = Hit::new(knob.path.replace('/', "."), Severity::Info, title)
            .seen(format!("{} is {value}", knob.path), &fact.place);
        match knob.path.strip_prefix("sys/") {
            Some(path) => {
                hit.changes.push(Change::SysfsWrite { path: path.to_owned(), to: wanted, from: Some(value.to_owned()) })
            }
            None => {
                hit.fix.push(format!("echo {wanted} > /{}", knob.path));
                hit.undo.push(format!("echo {value} > /{}", knob.path));
            }
        }
        hits.push(hit);
    }
    hits
}
