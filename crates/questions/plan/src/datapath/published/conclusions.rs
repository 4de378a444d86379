//! What the talk of 2017 concluded, and whether the model comes to the same.
//!
//! A conclusion that rests on a number to which a constant was fitted is reproduced, and not evidence.

use super::models::{SWITCH_NS_MPPS, chain_of_switch, first_below_10_gbps, gbps, switch_ns_512, vf};
use super::{Status, points};
use crate::datapath::model::design::Pattern;
use base::number::{decimals, list};
use base::table::{Shown, TableSpec};
use base::{Column, ColumnType, Table};

/// A claim of the talk.
struct Conclusion {
    claim: &'static str,
    /// Points that it rests on.
    points: &'static [&'static str],
    /// What the model says, and whether that is the claim.
    model: fn() -> Option<(String, bool)>,
}

const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        claim: "north-south SR-IOV carries most",
        points: &["ovs-ns-64-8", "vf-ns-64-8-mps128", "ovs-ns-512-flat-mpps", "vf-ns-512"],
        model: north_south,
    },
    Conclusion {
        claim: "east-west OVS-DPDK carries most",
        points: &["ovs-chain-64-8", "vf-chain-64", "ovs-chain-1518-8", "vf-chain-1518-mps128"],
        model: east_west,
    },
    Conclusion {
        claim: "no design wins everywhere",
        points: &["ovs-ns-64-8", "vf-ns-64-8-mps128", "ovs-chain-64-8", "vf-chain-64"],
        model: || Some(("SR-IOV north-south, OVS-DPDK east-west".to_owned(), north_south()?.1 && east_west()?.1)),
    },
    Conclusion {
        claim: "VFs of a chain carry 44 Gb/s, however many VMs",
        points: &["vf-chain-1518-mps128", "vf-chain-1518-2", "vf-chain-1518-4"],
        model: flat,
    },
    Conclusion {
        claim: "10 Gb/s through 5 VNFs exhausts gen3 x8",
        points: &["vf-chain-10g-ends"],
        model: || {
            let first = first_below_10_gbps()?;
            Some((format!("{first} VNFs are the first chain below 10 Gb/s"), (first - 5.0).abs() < 0.5))
        },
    },
];

fn north_south() -> Option<(String, bool)> {
    let vfs = [64, 512].map(|bytes| vf(128, Pattern::NorthSouth, 8, bytes));
    let ([Some(short), Some(long)], Some(switch)) = (vfs, switch_ns_512(false)) else { return None };
    let said = format!(
        "Mpps of 64 bytes: {} at most against {SWITCH_NS_MPPS}; of 512: {} against {}",
        decimals(short, 1),
        decimals(long, 2),
        decimals(switch, 2)
    );
    Some((said, short > SWITCH_NS_MPPS && long > switch))
}

fn east_west() -> Option<(String, bool)> {
    let (short, long) = chain_of_switch();
    let [Some(of_short), Some(of_long)] = [64, 1518].map(|bytes| vf(128, Pattern::Chain, 8, bytes)) else {
        return None;
    };
    let said = format!(
        "Mpps of 64 bytes through 8 VNFs: {short} against {}; of 1518: {long} against {}",
        decimals(of_short, 1),
        decimals(of_long, 2)
    );
    Some((said, short > of_short && long > of_long))
}

fn flat() -> Option<(String, bool)> {
    let of = |vnfs: u32| gbps(vf(128, Pattern::Chain, vnfs, 1518), 1518.0);
    let all: Vec<f64> = (2..=8).filter_map(of).collect();
    let (first, last) = (all.first()?, all.last()?);
    let is_flat = all.iter().all(|gbps| (gbps - first).abs() < 1e-6);
    let said =
        format!("{} Gb/s with 2 VMs and {} with 8, at a payload of 128 bytes", decimals(*first, 1), decimals(*last, 1));
    Some((said, is_flat && (first - 44.0).abs() < 0.5))
}

impl Conclusion {
    fn has(&self, status: Status) -> Vec<String> {
        let known = points().filter(|point| point.status == Some(status) && self.points.contains(&point.id));
        known.map(|point| point.id.to_owned()).collect()
    }

    /// `fitted: a and b; validated: c`.
    fn rests_on(&self) -> String {
        let all = [Status::Fitted, Status::Validated, Status::Bound, Status::Fails];
        let named = all.into_iter().map(|status| (status, self.has(status))).filter(|(_, ids)| !ids.is_empty());
        named.map(|(status, ids)| format!("{}: {}", status.name(), list(&ids))).collect::<Vec<_>>().join("; ")
    }

    /// What coming to it is worth.
    fn status(&self) -> Status {
        match ((self.model)(), self.has(Status::Fitted).is_empty()) {
            (Some((_, true)), true) => Status::Validated,
            (Some((_, true)), false) => Status::Fitted,
            _ => Status::Fails,
        }
    }
}

/// What was concluded.
pub(in crate::datapath) const CONCLUDED: TableSpec = TableSpec {
    section: "datapath",
    name: "conclusions",
    version: 1,
    row: "One conclusion of the talk of 2017, and whether the model comes to it. status: fitted where it rests on a number to which a \
          constant was fitted, so that it is reproduced and no evidence; validated where it does not; fails where the model disagrees.",
    columns: &[
        Column::key("conclusion"),
        Column::value("holds", "", ColumnType::Bool),
        Column::text("model"),
        Column::text("status"),
        Column::text("rests_on"),
    ],
    shown: Some(Shown {
        whole: &["conclusion", "status"],
        ..Shown::of(
            "What the talk of 2017 concluded",
            &[("conclusion", "conclusion"), ("holds", "holds"), ("status", "status"), ("model", "the model says")],
            20,
        )
    }),
};

/// Table [`CONCLUDED`].
pub(in crate::datapath) fn concluded() -> Table {
    let mut table = Table::new(&CONCLUDED);
    for one in CONCLUSIONS {
        let (said, holds) = (one.model)().unzip();
        table.push(vec![
            one.claim.into(),
            holds.into(),
            said.into(),
            one.status().name().into(),
            one.rests_on().into(),
        ]);
    }
    table
}

/// How many of them the model comes to, and what that is worth.
pub(in crate::datapath) fn summary() -> String {
    let count = |status: Status| CONCLUSIONS.iter().filter(|one| one.status() == status).count();
    let (all, fitted, validated) = (CONCLUSIONS.len(), count(Status::Fitted), count(Status::Validated));
    format!(
        "Of {all} conclusions of the talk of 2017 the model comes to {}: {fitted} rest on numbers that it was fitted to, {validated} on \
         none.",
        fitted + validated
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_comes_to_all_conclusions_and_says_which_prove_nothing() {
        let statuses: Vec<&str> = CONCLUSIONS.iter().map(|one| one.status().name()).collect();
        assert_eq!(statuses, ["fitted", "fitted", "fitted", "fitted", "validated"]);
        for id in CONCLUSIONS.iter().flat_map(|one| one.points) {
            assert!(points().any(|point| point.id == *id), "no point {id}");
        }
        assert!(CONCLUSIONS[3].rests_on().starts_with("fitted: vf-chain-1518-mps128; validated: "));
    }
}
