//! What of a drawn flow is wanted, and how its states are arranged for people.
//!
//! In: a drawn flow, and how the user narrowed it. Out: lanes, slices cut to the window, and for every state the row of
//! a staircase it stands in, by its name, which is that of the ledger's column:
//!
//! ```text
//! L2        ____      ____      guest_l2                              the deeper the guest, the higher the row
//! L1            _  _            guest_l1
//! L0             __ __          handling_*, irq, softirq, nmi, halt_poll: the recorded machine itself
//! VMM                           userspace
//! off CPU  _                    halted, wake_delay, preempted, blocked
//! ```

use base::timeline::{Chain, Drawn, LaneId, SliceId, StateId, Timeline};
use base::{Level, Narrow, Span};
use std::collections::HashMap;

/// A VM's name for people; where `emulated` says by whom, times are not real.
pub(crate) fn vm_title(vm: &str, emulated: Option<&str>) -> String {
    match emulated {
        Some(by) => format!("{vm} (emulated by {by}: times are not real)"),
        None => vm.to_owned(),
    }
}

/// A drawn flow, and what of it to show.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    pub drawn: &'a Drawn,
    /// Who emulated the hardware, if somebody did; then times are not real, and every name of a VM says so.
    pub emulated: Option<&'a str>,
    /// Which VM, vCPU, level and window.
    pub narrow: &'a Narrow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub row: Row,
    /// For whom the time was spent: the guest that ran or that was served, else the recorded machine.
    pub level: Level,
    /// The state without its level: `guest`, `handling`, `preempted`.
    pub state: &'static str,
}

/// A row of the staircase; rows compare in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A guest, by how far it lies below the deepest that names have room for.
    Guest(u8),
    GuestOfUnknownLevel,
    /// The recorded machine's kernel.
    Host,
    /// The VMM's own code.
    Vmm,
    OffCpu,
    Unknown,
}

/// A slice cut to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub id: SliceId,
    /// When it began, before the window perhaps.
    pub began_ns: u64,
    pub span: Span,
    pub state: StateId,
    /// Why it began, such as an exit's reason; empty where nothing tells.
    pub why: &'a str,
    /// The exit that KVM or the VMM still works on, after an interrupt perhaps; empty for all else.
    pub cause: &'a str,
}

/// As much of a picture as an output has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// The window, ending earlier than asked for if there are too many slices.
    pub window: Span,
    pub slices: u64,
    /// Slices of the window asked for that lie behind it.
    pub left_out: u64,
}

impl<'a> Picture<'a> {
    pub fn lanes(&self) -> Vec<LaneId> {
        let vcpus = self.drawn.vcpus.iter().enumerate();
        vcpus.filter(|(_, of)| self.narrow.wants_vcpu(&of.vm, of.vcpu)).map(|(lane, _)| LaneId(lane as u32)).collect()
    }

    pub fn vms(&self) -> Vec<(&'a str, Vec<LaneId>)> {
        let mut vms: Vec<(&str, Vec<LaneId>)> = Vec::new();
        let mut places = HashMap::new();
        for lane in self.lanes() {
            let vm = self.drawn.vcpus[lane.0 as usize].vm.as_str();
            let place = *places.entry(vm).or_insert(vms.len());
            if place == vms.len() {
                vms.push((vm, Vec::new()));
            }
            vms[place].1.push(lane);
        }
        vms
    }

    /// Lanes beside those of the vCPUs by what they stand below, in order: CPUs, other threads, guests' own traces. They
    /// show the vCPUs' time once more, so a picture of some VM or level alone has none.
    pub fn beside(&self) -> Vec<(&'a str, Vec<LaneId>)> {
        let Narrow { vm, vcpu, level, window: _, witness: _ } = self.narrow;
        let mut groups: Vec<(&str, Vec<LaneId>)> = Vec::new();
        if vm.is_some() || vcpu.is_some() || level.is_some() {
            return groups;
        }
        let lanes = self.drawn.timeline.lanes().iter().enumerate().skip(self.drawn.vcpus.len());
        for (place, lane) in lanes {
            let id = LaneId(place as u32);
            match groups.iter_mut().find(|(group, _)| *group == lane.group) {
                Some((_, lanes)) => lanes.push(id),
                None => groups.push((&lane.group, vec![id])),
            }
        }
        groups
    }

    /// The VM's name for people, with the mark of emulation.
    pub(crate) fn vm_title(&self, vm: &str) -> String {
        vm_title(vm, self.emulated)
    }

    /// The window asked for, within what was recorded.
    pub fn window(&self) -> Span {
        let mut all = self.drawn.timeline.span();
        // Behind a cut some lanes go on and others do not.
        all.to_ns = self.drawn.cut.map_or(all.to_ns, |cut| all.to_ns.min(cut.at_ns.max(all.from_ns)));
        let Some(asked) = self.narrow.window else { return all };
        let from_ns = asked.from_ns.clamp(all.from_ns, all.to_ns);
        Span { from_ns, to_ns: asked.to_ns.clamp(from_ns, all.to_ns) }
    }

    /// The longest window from the start of the one asked for that holds at most `most` slices of vCPUs.
    pub fn fit(&self, most: u64) -> Fit {
        self.fit_of(self.lanes(), most)
    }

    /// The same for slices of all lanes.
    pub fn fit_all(&self, most: u64) -> Fit {
        let beside = self.beside().into_iter().flat_map(|(_, lanes)| lanes);
        self.fit_of(self.lanes().into_iter().chain(beside).collect(), most)
    }

    fn fit_of(&self, lanes: Vec<LaneId>, most: u64) -> Fit {
        let window = self.window();
        let mut starts: Vec<u64> = lanes.into_iter().flat_map(|lane| self.starts(lane, window)).collect();
        starts.sort_unstable();
        let all = starts.len() as u64;
        let first_out = usize::try_from(most).ok().and_then(|most| starts.get(most).copied());
        let to_ns = first_out.unwrap_or(window.to_ns);
        let slices = first_out.map_or(all, |out_ns| starts.partition_point(|start| *start < out_ns) as u64);
        let behind = self.drawn.cut.map_or(0, |cut| cut.left_out);
        Fit { window: Span { to_ns, ..window }, slices, left_out: all - slices + behind }
    }

    /// Where the wanted slices of `lane` start; read by and by, because a lane may have millions.
    fn starts(&self, lane: LaneId, window: Span) -> Vec<u64> {
        let kinds = self.kinds();
        let (mut starts, mut rest) = (Vec::new(), window);
        loop {
            let read = self.drawn.timeline.slices(lane, rest, READ_AT_ONCE);
            let wanted = read.slices.iter().filter(|slice| self.is_wanted(&kinds[usize::from(slice.state.0)]));
            starts.extend(wanted.map(|slice| slice.span.from_ns));
            match read.slices.last() {
                Some(last) if read.left_out > 0 => rest.from_ns = last.span.to_ns,
                _ => return starts,
            }
        }
    }

    fn is_wanted(&self, kind: &Kind) -> bool {
        self.narrow.wants_level(kind.level)
    }

    /// The slices of `lane` in `window` whose level is wanted, in time order.
    pub fn pieces(&self, lane: LaneId, window: Span) -> Vec<Piece<'a>> {
        let kinds = self.kinds();
        let timeline = &self.drawn.timeline;
        let mut pieces = Vec::new();
        let slices = timeline.slices(lane, window, usize::MAX).slices;
        let mut exit = slices.first().map_or("", |first| self.exit_before(first.id, &kinds));
        for slice in slices {
            let kind = &kinds[usize::from(slice.state.0)];
            let why = timeline.detail(slice.id).map_or("", |(_, why)| why);
            // A guest that runs ends the exit before.
            if !why.is_empty() || kind.state == "guest" {
                exit = why;
            }
            let cause = if ["handling", "userspace"].contains(&kind.state) { exit } else { "" };
            let (began_ns, end_ns) = (slice.span.from_ns, slice.span.to_ns);
            let span = Span { from_ns: began_ns.max(window.from_ns), to_ns: end_ns.min(window.to_ns) };
            if self.is_wanted(kind) {
                pieces.push(Piece { id: slice.id, began_ns, span, state: slice.state, why, cause });
            }
        }
        pieces
    }

    /// The exit that was being worked on when slice `id` began; empty where none was.
    fn exit_before(&self, id: SliceId, kinds: &[Kind]) -> &'a str {
        let before = (0..id.index).rev().map(|index| self.drawn.timeline.detail(SliceId { index, ..id }));
        for (slice, why) in before.flatten() {
            if !why.is_empty() || kinds[usize::from(slice.state.0)].state == "guest" {
                return why;
            }
        }
        ""
    }

    /// The chains of `lane` that begin in `window`, in time order, with their place among all chains.
    pub fn chains(&self, lane: LaneId, window: Span) -> impl Iterator<Item = (usize, &'a Chain)> {
        let chains = self.drawn.chains.iter().enumerate().filter(move |(_, chain)| chain.lane == lane);
        chains.filter(move |(_, chain)| (window.from_ns..window.to_ns).contains(&chain.span.from_ns))
    }

    /// What each state of the timeline is, by its number.
    pub fn kinds(&self) -> Vec<Kind> {
        self.drawn.timeline.states().iter().map(|state| kind(&state.name, self.drawn.host)).collect()
    }

    /// What a slice is called: its reason, else its state.
    pub fn name<'p>(&'p self, piece: &Piece<'p>) -> &'p str {
        if piece.why.is_empty() { &self.drawn.timeline.states()[usize::from(piece.state.0)].title } else { piece.why }
    }

    pub(crate) fn row_title(&self, row: Row) -> String {
        row.title(self.drawn.host)
    }
}

impl Row {
    /// Its name, where the recorded machine is `host`.
    pub fn title(self, host: Level) -> String {
        match self {
            Row::Guest(under) => Level::At(DEEPEST - under).to_string(),
            Row::GuestOfUnknownLevel => Level::Unknown.to_string(),
            Row::Host => host.to_string(),
            Row::Vmm => "VMM".to_owned(),
            Row::OffCpu => "off CPU".to_owned(),
            Row::Unknown => "unknown".to_owned(),
        }
    }
}

/// What the state called `name` is, where the recorded machine is `host`.
pub fn kind(name: &str, host: Level) -> Kind {
    let level = |text: &str| match text.strip_prefix('l').and_then(|depth| depth.parse().ok()) {
        Some(depth) => Level::At(depth),
        None => Level::Unknown,
    };
    if let Some(of) = name.strip_prefix("guest_") {
        let row = match level(of) {
            Level::At(depth) => Row::Guest(DEEPEST - depth),
            Level::Below | Level::Unknown => Row::GuestOfUnknownLevel,
        };
        return Kind { row, level: level(of), state: "guest" };
    }
    if let Some(of) = name.strip_prefix("handling_") {
        return Kind { row: Row::Host, level: level(of), state: "handling" };
    }
    let place = OWN.iter().find(|(known, _)| *known == name);
    let (state, row) = place.copied().unwrap_or(("unknown", Row::Unknown));
    Kind { row, level: host, state }
}

/// Slices taken out of the timeline in one go where only their number counts.
const READ_AT_ONCE: usize = 1 << 16;

/// Room for levels in [`Row::Guest`].
const DEEPEST: u8 = u8::MAX;

/// States of the recorded machine itself.
const OWN: [(&str, Row); 9] = [
    ("userspace", Row::Vmm),
    ("irq", Row::Host),
    ("softirq", Row::Host),
    ("nmi", Row::Host),
    ("halt_poll", Row::Host),
    ("halted", Row::OffCpu),
    ("wake_delay", Row::OffCpu),
    ("preempted", Row::OffCpu),
    ("blocked", Row::OffCpu),
];
