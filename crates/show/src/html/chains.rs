//! What happens inside one exit of a nested guest: the median, the 99th percentile and the worst of a reason.
//!
//! Chains of one reason are ordered by their cost (time without what the CPU spent elsewhere), undisturbed ones alone. Three
//! of them stand for all: half cost no more than the median one, 99 % no more than the second, and none more than the worst.

use super::Drawing;
use super::escape::Safe;
use super::ladder::{self, Step};
use base::timeline::{Chain, ChainRanks, ChainSlices, Overview, Ranked, RanksOfReason, Slice, lead_ns};
use base::{Span, number};
use std::fmt::{Result, Write};

/// Reasons whose chains are drawn; the table of chains has all.
const MOST_REASONS: usize = 3;

/// Slices of one chain, and of what is drawn with it, that are kept.
pub const MOST_SLICES: usize = 2_000;

/// Chains that stand for the others, with their slices.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// All, in the order of lanes and time.
    pub chains: Vec<Shown>,
    /// By reason, those that cost most in all first.
    pub reasons: Vec<Picked>,
}

#[derive(Debug, Clone)]
pub struct Shown {
    /// Its place among all chains of the recording, by lane and time.
    pub place: u64,
    pub inside: ChainSlices,
}

/// Which chains of a reason are shown.
#[derive(Debug, Clone, Default)]
pub struct Picked {
    /// Why the nested guest stopped.
    pub reason: String,
    /// How many undisturbed chains of it there are, one in how many of which is ranked.
    pub count: u64,
    /// See `count`.
    pub one_in: u64,
    /// Places of the median, the 99th percentile and the worst.
    pub median: u64,
    /// See `median`.
    pub p99: u64,
    /// See `median`.
    pub worst: u64,
    /// Places of all that are shown, cheapest first.
    pub by_cost: Vec<u64>,
}

impl Chosen {
    /// The chains that stand for those of `ranks`, whose slices were `found` in the order in which `ranks` want them; `overview`
    /// knows how many chains each lane has.
    pub fn of(ranks: &ChainRanks, overview: &Overview, found: Vec<ChainSlices>) -> Self {
        let before: Vec<u64> =
            overview.lanes.iter().scan(0, |so_far, of| Some(std::mem::replace(so_far, *so_far + of.chains))).collect();
        let place =
            |ranked: &Ranked| before.get(ranked.lane as usize).map_or(0, |before| before + u64::from(ranked.nth));
        let chains: Vec<Shown> =
            ranks.chosen().iter().zip(found).map(|(ranked, inside)| Shown { place: place(ranked), inside }).collect();
        let picked = |(reason, of): (&str, &RanksOfReason)| {
            let here = chains.iter().filter(|shown| shown.inside.chain.reason == reason);
            let mut by_cost: Vec<(Option<u64>, u64)> =
                here.map(|shown| (shown.inside.chain.cost_ns, shown.place)).collect();
            by_cost.sort_unstable();
            let [median, p99, worst] = of.picks().map(|ranked| ranked.map_or(0, |ranked| place(&ranked)));
            let by_cost = by_cost.into_iter().map(|(_, place)| place).collect();
            Picked { reason: reason.to_owned(), count: of.count, one_in: of.one_in, median, p99, worst, by_cost }
        };
        let reasons = ranks.most_expensive_first().into_iter().map(picked).collect();
        Self { chains, reasons }
    }

    /// The chain at a place.
    pub fn at(&self, place: u64) -> Option<&Shown> {
        self.chains.iter().find(|shown| shown.place == place)
    }
}

/// Draws the ladders of the most expensive reasons.
pub(super) fn render(drawing: &Drawing, out: &mut String) -> Result {
    let reasons = &drawing.chains.reasons;
    if reasons.is_empty() {
        return Ok(());
    }
    out.push_str("<section id=\"chains\">\n<h2>Inside one exit of a nested guest</h2>\n");
    out.push_str(
        "<p class=\"caption\">From the exit of the nested guest until it runs again, to scale. Boxes in the host's \
         row are its work: first on the nested guest's exit, then on every exit of the guest hypervisor, labelled \
         with its reason.</p>\n",
    );
    for (index, reason) in reasons.iter().take(MOST_REASONS).enumerate() {
        for (name, place) in [("median", reason.median), ("p99", reason.p99), ("worst", reason.worst)] {
            let open = index == 0 && name == "median";
            one(drawing, reason, (name, place), open, out)?;
        }
    }
    if reasons.len() > MOST_REASONS {
        let names: Vec<String> = reasons[MOST_REASONS..].iter().map(|reason| reason.reason.clone()).collect();
        writeln!(
            out,
            "<p class=\"quiet\">Not drawn: chains after {}, which cost less in total.</p>",
            Safe(number::list(&names))
        )?;
    }
    for note in thinned(reasons).iter().chain(&drawing.rounded) {
        writeln!(out, "<p class=\"quiet\">{}</p>", Safe(note))?;
    }
    let disturbed = drawing.aggregates.disturbed;
    if disturbed > 0 {
        writeln!(
            out,
            "<p class=\"quiet\">Excluded: {} in which the guest hypervisor halted or the nested guest moved to \
             another vCPU; their cost is not the cost of one exit.</p>",
            Safe(number::many(disturbed, "chain"))
        )?;
    }
    out.write_str("</section>\n")
}

/// Says of which reasons not every chain was ranked.
pub(super) fn thinned(reasons: &[Picked]) -> Option<String> {
    let thinned = reasons.iter().filter(|reason| reason.one_in > 1);
    let named: Vec<String> =
        thinned.map(|reason| format!("one in {} after {}", reason.one_in, reason.reason)).collect();
    (!named.is_empty()).then(|| {
        format!(
            "The median and the 99th percentile are those of {}; the worst chain is that of all.",
            number::list(&named)
        )
    })
}

fn one(drawing: &Drawing, reason: &Picked, (name, place): (&str, u64), open: bool, out: &mut String) -> Result {
    let Some(Shown { inside, .. }) = drawing.chains.at(place) else { return Ok(()) };
    let chain = &inside.chain;
    let vcpu = &drawing.overview.vcpus[chain.lane.0 as usize];
    write!(
        out,
        "<details class=\"chain\" id=\"chain-{place}\"{}><summary><strong>{}</strong> <span class=\"which\">{name} of {} after {}</span> \
         <span class=\"quiet\">{}, vm {}, vCPU {}</span></summary>\n<figure>",
        if open { " open" } else { "" },
        Safe(headline(chain)),
        number::many(reason.count, "chain"),
        Safe(&chain.reason),
        Safe(costs(chain)),
        Safe(&vcpu.vm),
        vcpu.vcpu
    )?;
    ladder::render(&steps(&drawing.overview, inside), lead_ns(chain.span), out)?;
    out.write_str("</figure></details>\n")
}

/// `1 L2 exit = 15 L1 exits, 8 of them VMREAD`.
pub(super) fn headline(chain: &Chain) -> String {
    let most = chain.most_frequent().filter(|(_, count)| *count > 1);
    let of_them =
        most.map_or(String::new(), |(reason, count)| format!(", {} of them {reason}", number::thousands(count)));
    format!("1 L2 exit = {}{of_them}", number::many(chain.exits, "L1 exit"))
}

/// `1.3 ms, and 4.2 ms off the CPU`.
fn costs(chain: &Chain) -> String {
    let cost_ns = chain.cost_ns.unwrap_or(0);
    let away_ns = chain.span.length_ns().saturating_sub(cost_ns);
    let away =
        if away_ns > 0 { format!(" and {} off the CPU", number::duration(away_ns as f64)) } else { String::new() };
    format!("{}{away}", number::duration(cost_ns as f64))
}

/// The slices of the chain's lane while it was open, and a little of what was before and after. A handling is what the recorded
/// host does; a guest runs on its level.
fn steps(overview: &Overview, inside: &ChainSlices) -> Vec<Step> {
    let chain = &inside.chain;
    let titles = overview.states.iter().filter_map(|state| state.title.split_once(" working for "));
    let host = titles.map(|(host, _)| host).next().unwrap_or("L0");
    let lead_ns = lead_ns(chain.span);
    let window = Span { from_ns: chain.span.from_ns - lead_ns, to_ns: chain.span.to_ns.saturating_add(lead_ns) };
    let step = |(slice, detail): &(Slice, String)| {
        let state = &overview.states[usize::from(slice.state.0)];
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
    inside.slices.iter().take(MOST_SLICES).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::timeline::LaneId;

    fn chain(exits: u64, sequence: &[&str]) -> Chain {
        Chain {
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
        let long = Chain { beyond: vec![("MSR".into(), 1_389), ("VMRUN".into(), 1_057)], ..chain(2_538, &["MSR"; 52]) };
        assert_eq!(headline(&long), "1 L2 exit = 2,538 L1 exits, 1,441 of them MSR", "all of them are counted");
        assert_eq!(costs(&chain(1, &[])), "1.0 us and 500 ns off the CPU");
    }
}
