//! What do causes and effects in both traces say of a guest's clock, where no offset is known?
//!
//! ```text
//! exit of a nested guest, reflected ---------------> the guest's own kvm_exit     (exits, matched one to one)
//! the guest's own kvm_entry -----------------------> its request to the machine below
//! kvm_msr, entry ----------------------------------> its write_msr, read_msr ----> the next    (registers)
//! interrupt injected, entry -----------------------> its handler -----> the next injection    (interrupts)
//! entry ------> any event of the guest ------> exit                                           (inside)
//! ```
//! What both sides list with its kind comes first: exits, where the guest has guests, and accesses to MSRs. Else exits that
//! are all alike, or interrupts, look for the place where they fit. Then they narrow what the others say, and the windows in
//! which the guest ran narrow it further.

use super::guest_side::GuestCpu;
use super::host_side::HostVcpu;
use super::inside::{Inside, add};
use super::lines::{Bound, Lines};
use super::matches::Pairs;
use super::order_only::OrderOnly;
use super::place::{self, Map, Scale};
use super::unique_runs::Known;
use super::{interrupts, reflected_exits, registers};

/// One vCPU and its CPU of the guest.
pub struct Causes<'a> {
    /// What the machine below tells.
    pub vcpu: &'a HostVcpu,
    pub own: &'a GuestCpu,
    /// Exits that both saw.
    pub common: &'a Pairs,
    /// Accesses to MSRs that both saw.
    pub accesses: &'a Pairs,
    /// How far a time may lie from the true one because files round.
    pub slack: u64,
}

/// A map, and what is behind it.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The map; `None` if nothing tells, or what tells contradicts itself.
    pub map: Option<Map>,
    pub bounds: u64,
    pub interrupts: u64,
}

impl Causes<'_> {
    pub fn map(&self, scale: Scale) -> Found {
        let slopes = scale.slopes();
        let first = self.paired(scale);
        match (&first.map, slopes) {
            (Some(Map::Lines(lines)), _) if lines.len() == 1 => {
                // A ratio that nothing tells is around the slopes of the first line.
                let (flat, steep) = lines.slopes();
                let slopes = slopes.map_or((flat, steep), |known| (known.0.min(flat), known.1.max(steep)));
                let at = |x| Some(lines.at(x));
                self.line(Vec::new(), Some(&at), slopes).unwrap_or(first)
            }
            (None, Some(slopes)) if first.bounds == 0 => self.seeded(slopes).unwrap_or_default(),
            _ => first,
        }
    }

    /// The map that exits and accesses allow which both sides list.
    pub fn paired(&self, scale: Scale) -> Found {
        let pairs = self.pairs();
        Found { map: place::through(&pairs, scale), bounds: pairs.len() as u64, interrupts: 0 }
    }

    /// The map that holds whatever the clock does.
    pub fn order(&self) -> Found {
        let pairs = self.pairs();
        Found { map: OrderOnly::between(&pairs).map(Map::OrderOnly), bounds: pairs.len() as u64, interrupts: 0 }
    }

    /// The map that times alone allow: of exits that are all alike, else of interrupts.
    fn seeded(&self, slopes: (f64, f64)) -> Option<Found> {
        let inside = Inside::of(self.vcpu, self.slack);
        let mut reflected = reflected_exits::bounds((self.vcpu, &inside), &self.own.exits, slopes);
        let Some(lines) = inside.line(&mut reflected, &self.times(), slopes) else {
            return self.line(Vec::new(), None, slopes);
        };
        let at = |x| Some(lines.at(x));
        self.line(reflected, Some(&at), slopes)
    }

    /// One line through `bounds`, through what both sides list, and through interrupts.
    fn line(&self, mut bounds: Vec<Bound>, known: Option<Known<'_>>, slopes: (f64, f64)) -> Option<Found> {
        add(&mut bounds, self.pairs());
        let inside = Inside::of(self.vcpu, self.slack);
        let mut more = interrupts::bounds((self.vcpu, &inside), &self.own.handlers, known, slopes);
        for bound in &mut more {
            let y = &mut bound.y;
            *y = if bound.is_lower { y.saturating_sub(self.slack) } else { y.saturating_add(self.slack) };
        }
        let interrupts = more.len() as u64 / 2;
        add(&mut bounds, more);
        let count = bounds.len() as u64;
        let lines: Option<Lines> = inside.line(&mut bounds, &self.times(), slopes);
        lines.map(|lines| Found { map: Some(Map::Lines(lines)), bounds: count, interrupts })
    }

    /// Exits that both saw, where only times tell which is which.
    pub fn alike(&self, map: &Map) -> Pairs {
        let inside = Inside::of(self.vcpu, self.slack);
        let known = |x| map.place(x).map(|placed| (placed.low, placed.high));
        reflected_exits::pairs((self.vcpu, &inside), &self.own.exits, &known)
    }

    /// What exits and accesses that both saw say of the two clocks.
    fn pairs(&self) -> Vec<Bound> {
        let mut bounds = self.exits();
        if !self.accesses.is_empty() {
            let lists = (self.vcpu.accesses.as_slice(), self.own.accesses.as_slice());
            let inside = Inside::of(self.vcpu, self.slack);
            add(&mut bounds, registers::bounds(lists, self.accesses, &inside, self.slack));
        }
        bounds
    }

    /// Times of the guest's events that are held against the windows.
    fn times(&self) -> Vec<u64> {
        let exits = self.own.exits.iter().flat_map(|exit| [Some(exit.at), exit.entered]).flatten();
        let accesses = self.own.accesses.iter().map(|access| access.at);
        exits.chain(self.own.handlers.iter().map(|handler| handler.at)).chain(accesses).collect()
    }

    /// What the exits that both saw say of the two clocks, by time of the guest's.
    pub fn exits(&self) -> Vec<Bound> {
        let (vcpu, own) = (self.vcpu, &self.own.exits);
        let mut bounds = Vec::new();
        let mut last_request = None;
        for (low, high) in self.common {
            let (reflected, exit) = (vcpu.reflected[*low], own[*high]);
            // The nested guest that stopped here was entered by the last request before.
            let request = vcpu.requests.partition_point(|at| *at <= reflected.at).checked_sub(1);
            if let (Some(place), Some(x)) = (request.filter(|_| request != last_request), exit.entered) {
                let at = vcpu.requests[place];
                let window = vcpu.windows.partition_point(|window| window.from < at).checked_sub(1);
                let previous = low.checked_sub(1).map_or(0, |before| vcpu.reflected[before].at);
                if let Some(y) = window.map(|last| vcpu.windows[last].to).filter(|_| at > previous) {
                    bounds.push(Bound { x, y, is_lower: false });
                }
            }
            last_request = request;
            if let Some(window) = vcpu.windows.get(vcpu.windows.partition_point(|window| window.from < reflected.at)) {
                bounds.push(Bound { x: exit.at, y: window.from, is_lower: true });
            }
        }
        bounds.sort_by_key(|bound| bound.x);
        bounds
    }
}
