//! Where do the events of a guest's own trace lie on the time line of the machine below, and how sure is that?
//!
//! In:  the trace of a machine and the trace of a guest of it. Out: for each CPU of the guest its vCPU thread below, a
//! [`Map`] from the guest's clock to the clock below, each of the guest's own `kvm_exit` events found among the exits
//! that the machine below reflected, and the events that contradict the map.
//!
//! ```text
//! below: windows of the guest, exits reflected, offsets   \                  offsets known: exact
//!                                                          pairing --> map   samples of trace-cmd
//! above: its own exits and entries, by CPU                /                  causal bounds: lines, order
//! ```
//! Causal bounds are those of [`causes`]. Lines, and bands of a largest drift, are believed until one of the guest's
//! events contradicts them; then its clock wanders, and order alone is left. Levels are joined by [`compose`].

pub mod causes;
pub mod compose;
mod drift_band;
pub mod guest_side;
pub mod host_side;
pub mod hull;
mod inside;
pub mod interrupts;
pub mod lines;
mod matches;
pub mod offsets;
mod order_only;
mod outside;
pub mod pairing;
pub mod place;
pub mod readings;
mod reflected_exits;
mod registers;
mod scaling;
mod shift;
mod steps;
pub mod symbols;
mod tasks;
pub mod unique_runs;

pub use outside::Outside;
pub use place::{Map, Placed};
pub use walk::Axis;

use causes::{Causes, Found};
use guest_side::GuestCpu;
use host_side::HostVcpu;
use matches::Pairs;
use offsets::Offsets;
use place::Scale;
use readings::Counter;
use scaling::Scaling;
use shift::Shift;
use tasks::Tasks;
use walk::Part;

/// One guest on the time line of the machine below.
#[derive(Debug, Clone)]
pub struct Alignment {
    pub below: String,
    pub machine: String,
    /// The clock of the machine below.
    pub axis: Axis,
    /// The guest's, with the scale of the one below where both count the same counter.
    pub own_axis: Axis,
    /// CPUs of the guest whose vCPU thread is known.
    pub cpus: Vec<Cpu>,
    /// Exits in the guest's trace on CPUs whose vCPU thread is not known.
    pub unpaired: u64,
    /// The guest's tasks, and the exits that the machine below saw while they ran.
    pub tasks: Tasks,
}

impl Alignment {
    /// The median and the largest error of the events of `cpu`, in ns; `None` if none could be placed.
    pub fn errors_ns(&self, cpu: &Cpu) -> Option<(f64, f64)> {
        let errors = &cpu.outside.errors;
        let ns = |units: u64| self.axis.length_ns(units as f64);
        errors.quantile(0.5).map(|median| (ns(median), ns(errors.max())))
    }
}

/// One CPU of the guest.
#[derive(Debug, Clone)]
pub struct Cpu {
    /// Its number in the guest.
    pub cpu: u32,
    /// What the machine below tells of it.
    pub vcpu: HostVcpu,
    pub own: GuestCpu,
    pub paired_by: pairing::By,
    /// Both traces have the ticks of one counter as their times.
    pub one_counter: bool,
    pub counter: Counter,
    /// How its times are found below; `None` if nothing tells.
    pub map: Option<Map>,
    /// Causal bounds or samples behind the map.
    pub bounds: u64,
    /// Interrupts among what the bounds come from.
    pub interrupts: u64,
    /// (place in `vcpu.reflected`, place in `own.exits`) of exits found in both.
    pub common: Pairs,
    /// The same of accesses to MSRs, where causes and effects are asked.
    pub accesses: Pairs,
    /// Its events, held against the windows in which it ran.
    pub outside: Outside,
}

impl Cpu {
    fn causes(&self, units: &Units<'_>) -> Causes<'_> {
        let (common, accesses, slack) = (&self.common, &self.accesses, units.rounding(self.counter));
        Causes { vcpu: &self.vcpu, own: &self.own, common, accesses, slack }
    }

    /// Ticks of the guest for each tick below, where a file tells it, and what tells it.
    pub fn told_ratio(&self) -> Option<(f64, &'static str)> {
        match &self.map {
            Some(Map::Shift(shift, _)) => Some((shift.ratio(), "time_shift")),
            _ => {
                let told_by = if self.counter.error.is_some() { "measured" } else { "debugfs" };
                self.counter.scaling.map(|scaling| (scaling.ratio(), told_by))
            }
        }
    }

    /// Exits, interrupts and accesses to MSRs found in both traces, where the map is made of causes and effects.
    pub fn pairs(&self) -> Option<[u64; 3]> {
        let is_causal = matches!(self.map, Some(Map::Lines(_) | Map::DriftBand(_) | Map::OrderOnly(_)));
        is_causal.then_some([self.common.len() as u64, self.interrupts, self.accesses.len() as u64])
    }

    /// Ticks of the guest for each tick below, where both count the same counter, a line says that they differ by more than
    /// clocks drift, and nothing else does.
    pub fn untold_ratio(&self) -> Option<f64> {
        let Some(Map::Lines(lines)) = &self.map else { return None };
        let (flat, steep) = lines.slopes();
        let ratio = 2.0 / (flat + steep);
        (self.one_counter && self.counter.scaling.is_none() && (ratio - 1.0).abs() > place::MOST_DRIFT).then_some(ratio)
    }

    /// Exits in the guest's trace that are not among those reflected, though the trace below tells of that time.
    pub fn strangers(&self) -> u64 {
        let (Some(map), Some(first), Some(last)) = (&self.map, self.vcpu.reflected.first(), self.vcpu.reflected.last())
        else {
            return 0;
        };
        let mut common = self.common.iter().map(|(_, own)| *own).peekable();
        let mut strangers = 0;
        for (place, exit) in self.own.exits.iter().enumerate() {
            if common.next_if_eq(&place).is_some() {
                continue;
            }
            let told = |placed: Placed| placed.low >= first.at && placed.high <= last.at;
            strangers += u64::from(map.place(exit.at).is_some_and(told));
        }
        strangers
    }
}

/// Aligns `guest`, which may have a name, to `lower`; the clocks are those with which the two are shown.
pub fn align(
    (lower, lower_clock): (&Part, &base::Clock),
    (guest, guest_clock): (&Part, &base::Clock),
    ignored: &[String],
    name: Option<&str>,
    vm_of: pairing::VmOf<'_>,
) -> Alignment {
    let axis = Axis::new(&lower.trace.facts().clock, lower_clock);
    let own_axis = Axis::new(&guest.trace.facts().clock, guest_clock);
    let mut below = host_side::read(lower, &axis, ignored);
    let mut above = guest_side::read(guest, &own_axis, ignored);
    let facts = (lower.trace.facts(), guest.trace.facts());
    let named = facts.0.guests.iter().find(|named| Some(named.trace_id) == facts.1.trace_id);
    let named = named.map_or(&[][..], |named| &named.vcpu_tids);
    let hints = pairing::PairingHints { cpus: facts.1.cpus, threads: named, name };
    let pairs = pairing::pair(&below, &above, &hints, vm_of);
    let samples = facts.1.time_shifts.iter().find(|shift| Some(shift.peer) == facts.0.trace_id);
    let readings = lower.tsc.clone().unwrap_or_default();
    let (recorded, emulated) = (below.writes_are_recorded, lower.emulated);
    let units = Units { below: &axis, own: &own_axis, recorded, emulated };
    let mut cpus: Vec<Cpu> = Vec::new();
    for pair in pairs {
        let vcpu = std::mem::take(&mut below.vcpus[pair.thread]);
        let own = above.remove(&pair.cpu).unwrap_or_default();
        let shift = samples.and_then(|samples| Shift::of(samples, pair.cpu));
        let counter = readings::of(&vcpu, &readings, units.recorded);
        cpus.push(one(pair, vcpu, own, shift, counter, &units));
    }
    judge(&mut cpus, guest, &own_axis);
    // What every event of the guest was asked of, one may contradict: a clock can wander between the exits.
    for in_order in [false, true] {
        let refuted =
            |cpu: &Cpu| matches!(cpu.map, Some(Map::Lines(_) | Map::DriftBand(_))) && cpu.outside.violations > 0;
        if !cpus.iter().any(refuted) {
            break;
        }
        for cpu in cpus.iter_mut().filter(|cpu| refuted(cpu)) {
            let (causes, scale) = (cpu.causes(&units), units.scale(&cpu.vcpu, cpu.counter));
            let found = if in_order { causes.order() } else { causes.paired(scale) };
            (cpu.map, cpu.bounds, cpu.interrupts) = (found.map, found.bounds, found.interrupts);
        }
        judge(&mut cpus, guest, &own_axis);
    }
    for cpu in cpus.iter_mut().filter(|cpu| cpu.common.is_empty()) {
        let lines = cpu.map.as_ref().filter(|map| matches!(map, Map::Lines(_)));
        cpu.common = lines.map_or_else(Pairs::new, |map| cpu.causes(&units).alike(map));
    }
    let tasks = tasks::tasks(guest, &own_axis, ignored, &cpus);
    let unpaired = above.values().map(|own| own.exits.len() as u64).sum();
    let ratio = cpus.iter().find_map(|cpu| cpu.told_ratio()).map_or(1.0, |(ratio, _)| ratio);
    let own_axis = if axis.tsc && own_axis.tsc { axis.scaled(ratio) } else { own_axis };
    Alignment { below: lower.machine.clone(), machine: guest.machine.clone(), axis, own_axis, cpus, unpaired, tasks }
}

/// Holds all events of the guest against the windows in which it ran.
fn judge(cpus: &mut [Cpu], guest: &Part, axis: &Axis) {
    let maps = cpus.iter().filter_map(|cpu| Some((cpu.cpu, (cpu.map.as_ref()?, &cpu.vcpu)))).collect();
    let mut told = outside::outside(guest, axis, &maps);
    for cpu in cpus {
        cpu.outside = told.remove(&cpu.cpu).unwrap_or_default();
    }
}

/// The units of both clocks.
struct Units<'a> {
    below: &'a Axis,
    own: &'a Axis,
    /// Writes of offsets are events of the trace below.
    recorded: bool,
    /// The counter is an emulator's: KVM finds it unsteady.
    emulated: bool,
}

impl Units<'_> {
    /// True if both traces have the ticks of one counter as their times.
    fn same(&self) -> bool {
        self.below.tsc && self.own.tsc
    }

    /// How far a time may lie from the true one because files round, in units of the machine below.
    fn rounding(&self, counter: Counter) -> u64 {
        let ratio = counter.scaling.map_or(1.0, Scaling::ratio);
        self.below.rounding() + (self.own.rounding() as f64 / ratio).ceil() as u64
    }

    /// What is known of the two clocks beside causes and effects.
    fn scale(&self, vcpu: &HostVcpu, counter: Counter) -> Scale {
        match counter.scaling {
            None if self.same() && self.recorded && vcpu.steps.is_empty() => Scale::Held,
            _ if self.same() && self.emulated => Scale::Unsteady,
            Some(scaling) if self.same() => Scale::Counter(scaling.ratio()),
            _ if self.same() => Scale::Counter(1.0),
            _ if self.below.has_scale() && self.own.has_scale() => Scale::Known(1.0),
            _ => Scale::Unknown,
        }
    }
}

/// Finds the map of one CPU, and the exits that both sides saw.
fn one(
    pair: pairing::Pair,
    vcpu: HostVcpu,
    own: GuestCpu,
    shift: Option<Shift>,
    counter: Counter,
    units: &Units<'_>,
) -> Cpu {
    let (same, rounding) = (units.same(), units.rounding(counter) + counter.error.unwrap_or(0));
    let paired_by = pair.by;
    let most_match = pair.common.len() * 2 > own.exits.len();
    let offsets = Offsets::of(&vcpu, &counter).filter(|_| same);
    let shift = shift.filter(|_| units.below.tsc == units.own.tsc);
    let asked = offsets.is_none() && shift.is_none();
    let accesses = if asked { registers::pairs(&vcpu.accesses, &own.accesses) } else { Pairs::new() };
    let causes = Causes { vcpu: &vcpu, own: &own, common: &pair.common, accesses: &accesses, slack: rounding };
    // Where one offset held all the time and contradicts the exits that both saw, the counter is scaled, untold.
    let scaled = |offsets: &Offsets| {
        let doubted = counter.scaling.is_none() && most_match && offsets.are_one();
        let bounds = if doubted { causes.exits() } else { Vec::new() };
        offsets.contradict(&bounds).then(|| place::scaled(&bounds)).flatten().map(|map| (map, bounds.len() as u64))
    };
    let told = |map: Map, bounds: u64| Found { map: Some(map), bounds, interrupts: 0 };
    let (found, common) = match (offsets, shift) {
        (Some(offsets), _) => match scaled(&offsets) {
            Some((map, bounds)) => (told(map, bounds), None),
            None => {
                let common =
                    matches::by_time(&vcpu.reflected, &own.exits, |exit| offsets.places(exit.at).map(|(_, high)| high));
                (told(Map::Offsets(offsets, rounding), vcpu.steps.len() as u64), Some(common))
            }
        },
        (None, Some(shift)) => {
            let samples = shift.len() as u64;
            (told(Map::Shift(shift, rounding), samples), None)
        }
        (None, None) => (causes.map(units.scale(&vcpu, counter)), None),
    };
    let Found { map, bounds, interrupts } = found;
    let (cpu, common, outside) = (pair.cpu, common.unwrap_or(pair.common), Outside::default());
    let one_counter = same;
    Cpu { cpu, vcpu, own, paired_by, one_counter, counter, map, bounds, interrupts, common, accesses, outside }
}
