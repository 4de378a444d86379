//! What do causes and effects in both traces say of a guest's clock, where no offset is known?
//!
//! ```text
//! exit of a nested guest, handed up ---------------> the guest's own kvm_exit     (exits, matched one to one)
//! the guest's own kvm_entry -----------------------> its request to the machine below
//! interrupt injected, entry -----------------------> its handler -----> the next injection    (interrupts)
//! entry ------> any event of the guest ------> exit                                           (inside)
//! ```
//! Exits come first, where the guest has guests; else interrupts look for the place where they fit. Then both narrow what
//! the other says, and the windows in which the guest ran narrow it further.

use super::above::CpuAbove;
use super::below::VcpuBelow;
use super::inside::{Inside, add};
use super::interrupts;
use super::lines::{Bound, Lines};
use super::matches::Pairs;
use super::order::Order;
use super::place::{self, Map, Scale};

/// One vCPU and its CPU of the guest.
pub struct Causes<'a> {
    /// What the machine below tells.
    pub vcpu: &'a VcpuBelow,
    /// What the guest tells.
    pub own: &'a CpuAbove,
    /// Exits that both saw.
    pub common: &'a Pairs,
    /// How far a time may lie from the true one because files round.
    pub slack: u64,
}

impl Causes<'_> {
    /// The map that all of them allow, and how many bounds are behind it.
    pub fn map(&self, scale: Scale) -> (Option<Map>, u64) {
        let slopes = scale.slopes();
        let (first, count) = self.exits_alone(scale);
        match (&first, slopes) {
            (Some(Map::Lines(lines)), _) if lines.len() == 1 => {
                // A ratio that nothing tells is around the slopes of the first line.
                let (flat, steep) = lines.slopes();
                let slopes = slopes.map_or((flat, steep), |known| (known.0.min(flat), known.1.max(steep)));
                let at = |x| Some(lines.at(x));
                self.line(Some(&at), slopes).unwrap_or((first, count))
            }
            (None, Some(slopes)) if count == 0 => self.line(None, slopes).unwrap_or((None, 0)),
            _ => (first, count),
        }
    }

    /// The map that exits allow.
    pub fn exits_alone(&self, scale: Scale) -> (Option<Map>, u64) {
        let exits = self.exits();
        (place::through(&exits, scale), exits.len() as u64)
    }

    /// The map that holds whatever the clock does.
    pub fn order(&self) -> (Option<Map>, u64) {
        let exits = self.exits();
        (Order::between(&exits).map(Map::Order), exits.len() as u64)
    }

    fn line(&self, known: Option<interrupts::Known<'_>>, slopes: (f64, f64)) -> Option<(Option<Map>, u64)> {
        let mut bounds = self.exits();
        let inside = Inside::of(self.vcpu, self.slack);
        let mut more = interrupts::bounds((self.vcpu, &inside), &self.own.handlers, known, slopes);
        for bound in &mut more {
            let y = &mut bound.y;
            *y = if bound.is_lower { y.saturating_sub(self.slack) } else { y.saturating_add(self.slack) };
        }
        add(&mut bounds, more);
        let count = bounds.len() as u64;
        let lines: Option<Lines> = inside.line(&mut bounds, &self.times(), slopes);
        lines.map(|lines| (Some(Map::Lines(lines)), count))
    }

    /// Times of the guest's events that are held against the windows.
    fn times(&self) -> Vec<u64> {
        let exits = self.own.exits.iter().flat_map(|exit| [Some(exit.at), exit.entered]).flatten();
        exits.chain(self.own.handlers.iter().map(|handler| handler.at)).collect()
    }

    /// What the exits that both saw say of the two clocks, by time of the guest's.
    pub fn exits(&self) -> Vec<Bound> {
        let (vcpu, own) = (self.vcpu, &self.own.exits);
        let mut bounds = Vec::new();
        let mut last_request = None;
        for (low, high) in self.common {
            let (handed, exit) = (vcpu.reflected[*low], own[*high]);
            // The nested guest that stopped here was entered by the last request before.
            let request = vcpu.requests.partition_point(|at| *at <= handed.at).checked_sub(1);
            if let (Some(place), Some(x)) = (request.filter(|_| request != last_request), exit.entered) {
                let at = vcpu.requests[place];
                let window = vcpu.windows.partition_point(|window| window.from < at).checked_sub(1);
                let previous = low.checked_sub(1).map_or(0, |before| vcpu.reflected[before].at);
                if let Some(y) = window.map(|last| vcpu.windows[last].to).filter(|_| at > previous) {
                    bounds.push(Bound { x, y, is_lower: false });
                }
            }
            last_request = request;
            if let Some(window) = vcpu.windows.get(vcpu.windows.partition_point(|window| window.from < handed.at)) {
                bounds.push(Bound { x: exit.at, y: window.from, is_lower: true });
            }
        }
        bounds.sort_by_key(|bound| bound.x);
        bounds
    }
}
