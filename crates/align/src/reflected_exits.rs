//! Which exit in a guest's own trace is which that was reflected, where reason and place tell too little?
//!
//! A guest of the guest that does one thing in a loop, a hypercall from one place say, leaves exits that are all alike: no
//! stretch of them occurs once. What is reflected carries no register, so the number of a hypercall, which the guest's
//! own `kvm_hypercall` has, stands in the trace below only for calls that were not reflected. The times are left:
//!
//! ```text
//! below   reflected | entry .... exit | entry ... VMRUN or VMRESUME
//! above               the guest's kvm_exit lies here               |
//! ```
//! [`unique_runs`] finds the one place at which a row of exits fits a row of those that were reflected.

use super::guest_side::OwnExit;
use super::host_side::HostVcpu;
use super::inside::Inside;
use super::lines::{Bound, Lines};
use super::matches::Pairs;
use super::unique_runs::{self, Effect, Known, Stretch};
use walk::events::reasons::Reason;

/// Reason and place in the code.
type Kind = (Reason, u64);

/// Bounds of exits that fit one handing up only, by a seed; none if that leaves most exits of that time without one. Each
/// exit found gives two.
pub(super) fn bounds((vcpu, inside): (&HostVcpu, &Inside), own: &[OwnExit], slopes: (f64, f64)) -> Vec<Bound> {
    let stretches = stretches(vcpu, inside);
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else { return Vec::new() };
    let seen = first.from..=last.to;
    let bounds = unique_runs::bounds(inside, stretches, effects(own), None, slopes);
    let Some(lines) = Lines::one(&bounds, slopes) else { return Vec::new() };
    let within = |exit: &&OwnExit| seen.contains(&lines.at(exit.at).0) && seen.contains(&lines.at(exit.at).1);
    let most = own.iter().filter(within).count() < bounds.len();
    if most { bounds } else { Vec::new() }
}

/// Exits that both saw, by what is known of the guest's clock.
pub(super) fn pairs((vcpu, inside): (&HostVcpu, &Inside), own: &[OwnExit], known: Known<'_>) -> Pairs {
    unique_runs::fitting(&stretches(vcpu, inside), &effects(own), known)
}

fn effects(own: &[OwnExit]) -> Vec<Effect<Kind>> {
    own.iter().map(|exit| Effect { at: exit.at, kind: (exit.reason, exit.rip) }).collect()
}

/// Where the guest writes each of them down: before it asks for its guest again, and before it is handed the next.
fn stretches(vcpu: &HostVcpu, inside: &Inside) -> Vec<Stretch<Kind>> {
    let end = vcpu.windows.last().map_or(0, |last| last.to);
    let next = |place: usize, at: u64| {
        let request = vcpu.requests.get(vcpu.requests.partition_point(|request| *request < at));
        let handed = vcpu.reflected.get(place + 1).map(|handed| handed.at);
        let last = end.min(request.copied().unwrap_or(end)).min(handed.unwrap_or(end));
        inside.until(last).unwrap_or(last)
    };
    let stretch = |(place, handed): (usize, &super::host_side::Reflected)| {
        let from = inside.from(handed.at).unwrap_or(end);
        Stretch { kind: (handed.reason, handed.rip), from, to: next(place, handed.at).max(from) }
    };
    vcpu.reflected.iter().enumerate().map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::super::host_side::{Reflected, Window};
    use super::*;
    use walk::events::reasons::Isa;

    const OFFSET: u64 = 50_000;
    const SLOPES: (f64, f64) = (0.999, 1.001);

    /// A guest that is handed the same exit again and again, after 1,000 units and more, and works 300 units on each.
    fn alike() -> (HostVcpu, Vec<u64>) {
        let (mut vcpu, mut handed) = (HostVcpu::default(), Vec::new());
        let mut at = 1_000;
        for number in 0..200 {
            vcpu.reflected.push(Reflected { at, reason: Reason::of(Isa::Vmx, 18), rip: 0x40 });
            vcpu.windows.push(Window { from: at + 2, to: at + 300, cpu: 0 });
            vcpu.requests.push(at + 301);
            handed.push(at);
            at += 1_000 + number * number * 7_919 % 9_001;
        }
        (vcpu, handed)
    }

    fn exit(at: u64) -> OwnExit {
        OwnExit { at: at + OFFSET, reason: Reason::of(Isa::Vmx, 18), rip: 0x40, entered: None }
    }

    #[test]
    fn exits_that_are_all_alike_are_found_by_their_times() {
        let (vcpu, handed) = alike();
        let own: Vec<OwnExit> = handed[20..140].iter().map(|at| exit(at + 5)).collect();
        let inside = Inside::of(&vcpu, 0);
        let bounds = bounds((&vcpu, &inside), &own, SLOPES);
        assert_eq!(bounds.len(), 240);
        let lines = Lines::one(&bounds, SLOPES).unwrap();
        let pairs = pairs((&vcpu, &inside), &own, &|x| Some(lines.at(x)));
        assert!(pairs.iter().all(|(low, high)| *low == high + 20) && pairs.len() == 120);
    }

    #[test]
    fn a_row_that_fits_among_many_exits_that_do_not_says_nothing() {
        let (vcpu, handed) = alike();
        let fits = handed[20..50].iter().map(|at| exit(at + 5));
        let own: Vec<OwnExit> = fits.chain(handed[50..110].iter().map(|at| exit(at + 700))).collect();
        assert!(bounds((&vcpu, &Inside::of(&vcpu, 0)), &own, SLOPES).is_empty());
    }
}
