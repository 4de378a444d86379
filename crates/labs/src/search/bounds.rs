//! What a search found, in the form of all datapaths, with a sentence on why it ended there.

use super::{Ended, Found, Outcome};
use base::datapath::RateBounds;

base::named! {
    /// How bounds are searched.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Method {
        /// Multiple Loss Ratio Search.
        Mlr = "mlrsearch",
        /// Halves, by RFC 2544.
        Binary = "rfc2544",
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'a> {
    /// What carried the packets.
    pub(crate) design: &'a str,
    pub(crate) vnfs: u32,
    /// Size of each frame, FCS counted.
    pub(crate) size_bytes: u32,
    pub(crate) method: Method,
}

pub(crate) fn bounds(searched: Searched<'_>, outcome: &Outcome, found: &Found) -> RateBounds {
    let (trials, discarded) = (outcome.trials.len(), outcome.trials.iter().filter(|(_, why)| why.is_some()).count());
    let ended = match found.ended {
        Ended::Narrow => "both bounds were found".to_owned(),
        Ended::CarriesAll => "the sender cannot offer more, so there is no upper bound".to_owned(),
        Ended::CarriesLess => "even the lowest rate is too much".to_owned(),
        Ended::SenderMissed { pps } => match (found.lower_pps, found.upper_pps) {
            (None, None) => format!(
                "the sender held no rate to 0.1 %, not even {pps} pps: only the rate that arrives at most was measured"
            ),
            (None, Some(_)) => format!("the sender did not hold {pps} pps to 0.1 %, so there is no lower bound"),
            (Some(_), _) => format!("the sender did not hold {pps} pps to 0.1 %, so there is no upper bound"),
        },
        Ended::Stolen => "the hypervisor below took more than 2 % of the CPUs' time in trial after trial".to_owned(),
        Ended::Trials => format!("the bounds were not closed within {trials} trials"),
    };
    RateBounds {
        design: searched.design.to_owned(),
        vnfs: searched.vnfs,
        size_bytes: searched.size_bytes,
        method: searched.method.name().to_owned(),
        goal: found.goal.name.to_owned(),
        loss_ratio: found.goal.loss_ratio,
        lower_pps: found.lower_pps,
        upper_pps: found.upper_pps,
        ended,
        trials: u32::try_from(trials).unwrap_or(u32::MAX),
        discarded: u32::try_from(discarded).unwrap_or(u32::MAX),
    }
}

pub(crate) fn words(bounds: &RateBounds) -> String {
    let rate = |pps: Option<u64>| pps.map_or("unknown".to_owned(), |pps| pps.to_string());
    let (lower, upper) = (rate(bounds.lower_pps), rate(bounds.upper_pps));
    format!("from {lower} to {upper} packets per second ({}; {} trials)", bounds.ended, bounds.trials)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Goal;

    #[test]
    fn a_rate_that_no_sender_held_says_which_bound_it_costs() {
        let ended = |lower_pps, upper_pps| {
            let found = Found { goal: Goal::PDR, lower_pps, upper_pps, ended: Ended::SenderMissed { pps: 500 } };
            let outcome = Outcome { found: vec![found], trials: Vec::new() };
            let searched = Searched { design: "ovs-dpdk", vnfs: 1, size_bytes: 64, method: Method::Binary };
            bounds(searched, &outcome, &found).ended
        };
        assert!(ended(None, None).contains("held no rate"));
        assert!(ended(None, Some(900)).ends_with("no lower bound"));
        assert!(ended(Some(400), None).ends_with("no upper bound"));
    }
}
