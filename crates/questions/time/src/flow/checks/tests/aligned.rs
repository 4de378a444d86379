//! A guest's own trace beside that of its host.

use super::fired;
use base::{Clock, Level};
use facts::align::guest_side::{GuestCpu, OwnExit};
use facts::align::host_side::{HostVcpu, Reflected, Window};
use facts::align::offsets::Offsets;
use facts::align::pairing::By;
use facts::align::readings::Counter;
use facts::align::{Alignment, Cpu, Map, Outside};
use facts::ledger::model::{Aligned, PartFlow};
use facts::ledger::quiet::quiet;
use walk::Axis;
use walk::events::reasons::{Isa, Reason};

/// L1's own trace: `found` of its ten exits are among those that L0 reflected, and `outside` of its events are misplaced.
fn aligned(found: usize, outside: u64) -> PartFlow {
    let reason = Reason { isa: Isa::Svm, code: 0x60 };
    let window = Window { from: 0, to: 1_000, cpu: 0 };
    let reflected = |place: u64| Reflected { at: 10 + 20 * place, reason, rip: place };
    let own = |place: u64| OwnExit { at: 15 + 20 * place, reason, rip: place, entered: None };
    let mut vcpu = HostVcpu { tid: 100, vcpu: Some(0), windows: vec![window], ..HostVcpu::default() };
    vcpu.reflected = (0..10).map(reflected).collect();
    vcpu.steps.write(0, 0, 0);
    let cpu = Cpu {
        cpu: 0,
        own: GuestCpu { exits: (0..10).map(own).collect(), ..GuestCpu::default() },
        paired_by: By::Exits,
        one_counter: false,
        counter: Counter::default(),
        map: Offsets::of(&vcpu, &Counter::default()).map(|offsets| Map::Offsets(offsets, 0)),
        bounds: 1,
        interrupts: 0,
        common: (10 - found..10).map(|place| (place, place)).collect(),
        accesses: Vec::new(),
        outside: Outside { events: 100, violations: outside, worst: 7, ..Outside::default() },
        vcpu,
    };
    let clock = Clock::nanoseconds("mono");
    let axis = Axis::new(&clock, &clock);
    let alignment = Alignment {
        below: "L0".into(),
        machine: "L1".into(),
        own_axis: axis.clone(),
        axis,
        cpus: vec![cpu],
        unpaired: 0,
        tasks: Default::default(),
    };
    PartFlow {
        aligned: Some(Aligned {
            alignment,
            vms: vec!["web".into()],
            lies: None,
            joined: None,
            sites: Vec::new(),
            symbols: None,
        }),
        machine: "L1".into(),
        level: Level::L1,
        ..quiet(Isa::Svm)
    }
}

#[test]
fn a_guest_whose_exits_or_events_do_not_fit_is_told_and_one_that_fits_is_not() {
    assert!(fired(&aligned(10, 0)).is_empty());
    assert_eq!(fired(&aligned(9, 0)), ["FLW-ALIGN"]);
    assert_eq!(fired(&aligned(10, 1)), ["FLW-ALIGN"]);
    let mut broken = aligned(10, 0);
    broken.aligned.as_mut().unwrap().alignment.cpus[0].vcpu.steps.breaks = 1;
    assert_eq!(fired(&broken), ["FLW-ALIGN"]);
}
