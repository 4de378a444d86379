//! Guests that read or set clocks which are emulated: ports and addresses tell which.

use super::{FEWEST_EXITS, Sample, by_share, hit, reasons_with, seen, worst_vm};
use crate::flow::checks::exits::only_vm;
use base::number::{percent, rate, thousands};
use base::{Cost, CostKind};
use facts::ledger::measure::Measures;
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use walk::events::details::Detail;

/// Share of vCPU time from which on an emulated clock is worth a finding, and the share of all exits that says it of a short excerpt.
pub(in crate::flow) const CLOCK_SHARE: f64 = 0.02;
pub(in crate::flow) const OF_EXCERPT: f64 = 0.5;

/// Exits of an excerpt that say something.
const FEWEST_OF_EXCERPT: u64 = 3;

/// Whether an exit was for a clock.
type Touches = fn(Detail) -> bool;

/// A clock and where it is touched. Ports and addresses: QEMU 9.0, hw/timer/i8254.c (0x40), hw/rtc/mc146818rtc.c (0x70), hw/timer/hpet.c
/// (0xfed00000), hw/acpi/core.c (the timer is 8 behind the base); the base is 0x600 or 0xb000, as SeaBIOS chooses.
const CLOCKS: &[(&str, Touches)] = &[
    ("ACPI PM timer", |detail| matches!(detail, Detail::Port(0x608..=0x60b | 0xb008..=0xb00b, _))),
    ("PIT", |detail| matches!(detail, Detail::Port(0x40..=0x43, _))),
    ("RTC", |detail| matches!(detail, Detail::Port(0x70..=0x71, _))),
    ("HPET", |detail| matches!(detail, Detail::Mmio(0xfed0_0000..=0xfed0_03ff, _))),
];

/// The clock that costs most, if it costs enough.
pub(crate) fn slow_clocks(measure: &Measures<'_>) -> Vec<Hit> {
    let of = |is: Touches| measure.details_where(|_, detail| is(detail));
    let most = CLOCKS.iter().map(|(name, is)| (*name, *is, of(*is))).max_by_key(|(.., (_, ns))| *ns);
    let Some((name, is, (count, ns))) = most else { return Vec::new() };
    let share = ns as f64 / measure.wall_ns.max(1) as f64;
    let is_much = count >= FEWEST_EXITS || count >= FEWEST_OF_EXCERPT && measure.share(count) >= OF_EXCERPT;
    if !is_much || share < CLOCK_SHARE {
        return Vec::new();
    }
    let per_second = count as f64 * 1e9 / measure.wall_ns.max(1) as f64;
    let title = format!(
        "The guest uses an emulated clock, the {name}: {} exits per second and vCPU, {} of the vCPU time",
        rate(per_second),
        percent(share)
    );
    let evidence = vec![
        seen(measure, format!("{} exits for the {name}", thousands(count)), "flow.exit_details")
            .about(reasons_with(measure, is)),
    ];
    let ns_of = |vcpu: &Vcpu| {
        let details = measure.exits_of(vcpu).flat_map(|(.., sums)| sums.details.iter());
        details.filter(|(detail, _)| is(**detail)).map(|(_, (_, ns))| *ns).sum()
    };
    let (_, worst) = worst_vm(measure, ns_of);
    let cost = Cost::of(CostKind::Measured, share, "share of vCPU time");
    let mut hits = hit(measure, by_share(worst, Sample { count, ns }), title, evidence, cost);
    let vm = only_vm(measure).unwrap_or("GUEST".into());
    hits[0].fix = vec![
        "cat /sys/devices/system/clocksource/clocksource0/current_clocksource   # in a Linux guest: tsc or kvm-clock read the time without an exit".to_owned(),
        format!(
            "virsh edit {vm}   # for Windows: <timer name='hypervclock' present='yes'/> in <clock>, and <hyperv> with vapic, vpindex, synic and stimer; then stop and start it"
        ),
    ];
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_of_one_clock() {
        let of = |detail: Detail| -> Vec<&str> {
            CLOCKS.iter().filter(|(_, is)| is(detail)).map(|(name, _)| *name).collect()
        };
        assert_eq!(of(Detail::Port(0xb008, false)), ["ACPI PM timer"]);
        assert_eq!(of(Detail::Port(0x608, false)), ["ACPI PM timer"]);
        assert_eq!(of(Detail::Port(0x40, true)), ["PIT"]);
        assert_eq!(of(Detail::Port(0x71, false)), ["RTC"]);
        assert_eq!(of(Detail::Mmio(0xfed0_00f0, false)), ["HPET"]);
        assert!(of(Detail::Port(0x3f8, true)).is_empty() && of(Detail::Mmio(0xfee0_0000, true)).is_empty());
    }
}
