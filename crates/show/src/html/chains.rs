//! What happens inside one exit of a nested guest: the median, the 99th percentile and the worst of a reason.
//!
//! Chains of one reason are ordered by their cost (time without what the CPU spent elsewhere), undisturbed ones alone. Three
//! of them stand for all: half cost no more than the median one, 99 % no more than the second, and none more than the worst.

use super::escape::Safe;
use super::ladder::{self, Step};
use analysis::flow::timeline::{Drawn, DrawnChain};
use base::timeline::{Slice, Timeline};
use base::{Span, number};
use std::collections::BTreeMap;
use std::fmt::{Result, Write};

/// Reasons whose chains are drawn; the table of chains has all.
const MOST_REASONS: usize = 3;

/// Slices of one chain that are looked at.
pub const MOST_SLICES: usize = 2_000;

/// Chains of one reason, as positions in [`Drawn::chains`].
pub struct ByReason<'a> {
    /// Why the nested guest stopped.
    pub reason: &'a str,
    /// The undisturbed ones, cheapest first.
    pub by_cost: Vec<usize>,
}

impl ByReason<'_> {
    /// The chain that `share` of all cost no more than.
    pub fn at(&self, share: f64) -> usize {
        // Nearest rank: the smallest position that covers the share.
        let rank = (share * self.by_cost.len() as f64).ceil() as usize;
        self.by_cost[rank.clamp(1, self.by_cost.len()) - 1]
    }
}

/// All reasons that have undisturbed chains, those that cost most in all first.
pub fn by_reason(drawn: &Drawn) -> Vec<ByReason<'_>> {
    let mut reasons: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, chain) in drawn.chains.iter().enumerate().filter(|(_, chain)| chain.is_undisturbed()) {
        reasons.entry(&chain.reason).or_default().push(place);
    }
    let cost = |place: &usize| drawn.chains[*place].cost_ns.unwrap_or(0);
    let mut found: Vec<ByReason<'_>> =
        reasons.into_iter().map(|(reason, by_cost)| ByReason { reason, by_cost }).collect();
    for reason in &mut found {
        reason.by_cost.sort_by_key(|place| (cost(place), *place));
    }
    let total = |reason: &ByReason<'_>| reason.by_cost.iter().map(cost).sum::<u64>();
    found.sort_by_key(|reason| std::cmp::Reverse(total(reason)));
    found
}

/// Draws the ladders of the dearest reasons.
pub fn render(drawn: &Drawn, out: &mut String) -> Result {
    let reasons = by_reason(drawn);
    if reasons.is_empty() {
        return Ok(());
    }
    out.push_str("<section id=\"chains\">\n<h2>Inside one exit of a nested guest</h2>\n");
    out.push_str(
        "<p class=\"caption\">From the stop of the nested guest until it runs again, to scale. Boxes in the host's row are \
         its work: first on the nested guest's exit, then on every exit of the guest hypervisor, named by its \
         reason.</p>\n",
    );
    for (index, reason) in reasons.iter().take(MOST_REASONS).enumerate() {
        for (name, share) in [("median", 0.5), ("p99", 0.99), ("worst", 1.0)] {
            let open = index == 0 && name == "median";
            one(drawn, reason, (name, reason.at(share)), open, out)?;
        }
    }
    if reasons.len() > MOST_REASONS {
        let names: Vec<String> = reasons[MOST_REASONS..].iter().map(|reason| reason.reason.to_owned()).collect();
        writeln!(
            out,
            "<p class=\"quiet\">Not drawn: chains after {}, which cost less in all.</p>",
            Safe(number::list(&names))
        )?;
    }
    let closed = drawn.chains.iter().filter(|chain| chain.cost_ns.is_some());
    let disturbed = closed.filter(|chain| !chain.is_undisturbed()).count() as u64;
    if disturbed > 0 {
        writeln!(
            out,
            "<p class=\"quiet\">Not among them: {} in which the guest hypervisor halted or the nested guest moved to another \
             vCPU; what they cost is not the cost of one exit.</p>",
            Safe(number::many(disturbed, "chain"))
        )?;
    }
    out.write_str("</section>\n")
}

fn one(drawn: &Drawn, reason: &ByReason<'_>, (name, place): (&str, usize), open: bool, out: &mut String) -> Result {
    let chain = &drawn.chains[place];
    let vcpu = &drawn.vcpus[chain.lane.0 as usize];
    write!(
        out,
        "<details class=\"chain\" id=\"chain-{place}\"{}><summary><strong>{}</strong> <span class=\"which\">{name} of {} after {}</span> \
         <span class=\"quiet\">{}, vm {}, vCPU {}</span></summary>\n<figure>",
        if open { " open" } else { "" },
        Safe(headline(chain)),
        number::many(reason.by_cost.len() as u64, "chain"),
        Safe(&chain.reason),
        Safe(costs(chain)),
        Safe(&vcpu.vm),
        vcpu.vcpu
    )?;
    let (steps, lead_ns) = steps(drawn, chain);
    ladder::render(&steps, lead_ns, out)?;
    out.write_str("</figure></details>\n")
}

/// `1 L2 exit = 15 L1 exits, 8 of them VMREAD`.
pub fn headline(chain: &DrawnChain) -> String {
    let most = chain.most_frequent().filter(|(_, count)| *count > 1);
    let of_them =
        most.map_or(String::new(), |(reason, count)| format!(", {} of them {reason}", number::thousands(count)));
    format!("1 L2 exit = {}{of_them}", number::many(chain.exits, "L1 exit"))
}

/// `1.3 ms, and 4.2 ms off the CPU`.
fn costs(chain: &DrawnChain) -> String {
    let cost_ns = chain.cost_ns.unwrap_or(0);
    let away_ns = chain.span.length_ns().saturating_sub(cost_ns);
    let away =
        if away_ns > 0 { format!(" and {} off the CPU", number::duration(away_ns as f64)) } else { String::new() };
    format!("{}{away}", number::duration(cost_ns as f64))
}

/// The slices of the chain's lane while it was open, and a little of what was before and after, `lead_ns` long each. A
/// handling is what the recorded host does; a guest runs on its level.
fn steps(drawn: &Drawn, chain: &DrawnChain) -> (Vec<Step>, u64) {
    let timeline = &drawn.timeline;
    let titles = timeline.states().iter().filter_map(|state| state.title.split_once(" working for "));
    let host = titles.map(|(host, _)| host).next().unwrap_or("L0");
    let lead_ns = (chain.span.length_ns() / 30).min(chain.span.from_ns);
    let window = Span { from_ns: chain.span.from_ns - lead_ns, to_ns: chain.span.to_ns.saturating_add(lead_ns) };
    let step = |slice: Slice| {
        let state = &timeline.states()[usize::from(slice.state.0)];
        let detail = timeline.detail(slice.id).map_or("", |(_, detail)| detail);
        let lane = match state.title.strip_suffix(" guest") {
            Some(level) => level.to_owned(),
            None if state.name == "userspace" => "VMM".to_owned(),
            None => host.to_owned(),
        };
        let (from_ns, to_ns) = (slice.span.from_ns.max(window.from_ns), slice.span.to_ns.min(window.to_ns));
        Step {
            lane,
            label: if detail.is_empty() { state.title.clone() } else { detail.to_owned() },
            hue: state.name.clone(),
            at_ns: from_ns - window.from_ns,
            length_ns: to_ns.saturating_sub(from_ns),
            around: to_ns <= chain.span.from_ns || from_ns >= chain.span.to_ns,
        }
    };
    let found = timeline.slices(chain.lane, window, MOST_SLICES);
    (found.slices.into_iter().map(step).collect(), lead_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::timeline::LaneId;

    fn chain(exits: u64, sequence: &[&str]) -> DrawnChain {
        DrawnChain {
            lane: LaneId(0),
            reason: "CPUID".into(),
            span: Span { from_ns: 0, to_ns: 1_500 },
            exits,
            sequence: sequence.iter().map(|reason| reason.to_string()).collect(),
            beyond: Vec::new(),
            interrupted: false,
            migrated: false,
            cost_ns: Some(1_000),
        }
    }

    #[test]
    fn the_headline_counts_and_names_the_most_frequent() {
        assert_eq!(
            headline(&chain(4, &["VMREAD", "CPUID", "VMREAD", "VMRESUME"])),
            "1 L2 exit = 4 L1 exits, 2 of them VMREAD"
        );
        assert_eq!(headline(&chain(1, &["VMRESUME"])), "1 L2 exit = 1 L1 exit");
        let long =
            DrawnChain { beyond: vec![("MSR".into(), 1_389), ("VMRUN".into(), 1_057)], ..chain(2_538, &["MSR"; 52]) };
        assert_eq!(headline(&long), "1 L2 exit = 2,538 L1 exits, 1,441 of them MSR", "all of them are counted");
        assert_eq!(costs(&chain(1, &[])), "1.0 us and 500 ns off the CPU");
    }

    #[test]
    fn percentiles_are_chains_that_happened() {
        let reason = ByReason { reason: "CPUID", by_cost: (10..20).collect() };
        assert_eq!([0.5, 0.99, 1.0].map(|share| reason.at(share)), [14, 19, 19]);
        let one = ByReason { reason: "CPUID", by_cost: vec![7] };
        assert_eq!([0.5, 0.99, 1.0].map(|share| one.at(share)), [7, 7, 7]);
    }
}
