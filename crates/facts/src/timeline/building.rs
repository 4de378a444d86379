//! Lanes while they are added up, each as fine as there is room for.
//!
//! ```text
//! piece --> its lane: a Condensed, made when it occurs --> a lane or a state more: pixels are made coarser, if they have to be
//! ```

use super::lanes::{LOOKS, Look};
use super::overview::{Placed, longest_ns};
use super::passing::{Take, Whose, span};
use base::timeline::{
    COLUMNS, COLUMNS_BESIDE, ChainSums, Condensed, Grid, Lane, LaneId, LaneSums, State, StateId, Zooms,
};
use base::{Level, Span};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walk::events::reasons::Reason;
use walk::thread::Chain;

pub(super) type Key = (usize, Whose);

/// Lanes that are being added up.
pub(super) struct Building {
    pub end_ns: u64,
    zooms: Zooms,
    /// Each with its number of chains.
    lanes: FxHashMap<Key, (Condensed, u64)>,
    /// Lanes of vCPUs of the lowest machines; a page may have them alone.
    vcpus: FxHashMap<Key, LaneId>,
    /// The zoom that these have, and that of the others.
    finest: u32,
    finest_beside: u32,
    occurs: BTreeMap<usize, [bool; LOOKS]>,
    names: BTreeSet<String>,
}

impl Building {
    /// The lanes of the vCPUs of the `lowest` machines.
    pub(super) fn new(lowest: &[Placed<'_>]) -> Self {
        let end_ns = longest_ns(lowest);
        let zooms = Zooms::of(end_ns);
        let of_part = |(place, part): &Placed<'_>| {
            let place = *place;
            part.vcpus.iter().map(move |vcpu| (place, Whose::Vcpu(vcpu.tid))).collect::<Vec<Key>>()
        };
        let vcpus: FxHashMap<Key, LaneId> = lowest.iter().flat_map(of_part).zip((0..).map(LaneId)).collect();
        let finest = zooms.finest_of(0, vcpus.len());
        let mut building = Self {
            end_ns,
            zooms,
            lanes: FxHashMap::default(),
            vcpus: FxHashMap::default(),
            finest,
            finest_beside: finest,
            occurs: BTreeMap::new(),
            names: BTreeSet::new(),
        };
        building.lanes = vcpus.keys().map(|key| (*key, (building.condensed(COLUMNS, finest), 0))).collect();
        building.vcpus = vcpus;
        building
    }

    fn condensed(&self, columns: u32, zoom: u32) -> Condensed {
        let columns = u64::from(columns).min(self.end_ns) as u32;
        let whole = Span { from_ns: 0, to_ns: self.end_ns };
        Condensed::new(Grid::new(whole, columns), Grid::new(self.zooms.window(zoom), self.zooms.width(zoom)))
    }

    /// From `at_ns` on the lane shows `look`; it is made if it is not there.
    fn push(&mut self, key: Key, at_ns: u64, look: Look) {
        if let Some((lane, _)) = self.lanes.get_mut(&key) {
            return lane.push(at_ns, look.index() as u8);
        }
        let mut made = self.condensed(COLUMNS_BESIDE, self.finest_beside);
        made.push(at_ns, look.index() as u8);
        self.lanes.insert(key, (made, 0));
        self.fit();
    }

    /// A look occurs in a part that was recorded at `host`.
    fn occurs(&mut self, place: usize, look: Look, (host, inside): (Level, bool)) {
        let occurs = self.occurs.entry(place).or_insert([false; LOOKS]);
        if !std::mem::replace(&mut occurs[look.index()], true)
            && self.names.insert(Look::named(look.index(), host, inside).name)
        {
            self.fit();
        }
    }

    /// Makes pixels coarser, if there are too many lanes or states for them by now.
    fn fit(&mut self) {
        let finest = self.zooms.finest_of(self.names.len(), self.vcpus.len());
        let finest_beside = self.zooms.finest_of(self.names.len(), self.lanes.len());
        for (key, (lane, _)) in &mut self.lanes {
            let (had, has) =
                if self.vcpus.contains_key(key) { (self.finest, finest) } else { (self.finest_beside, finest_beside) };
            if has > had {
                lane.coarsen(self.zooms.window(has), 1 << (has - had));
            }
        }
        (self.finest, self.finest_beside) = (finest, finest_beside);
    }

    pub(super) fn cpus(&self, place: usize) -> BTreeSet<u32> {
        let of_part = self.lanes.keys().filter(|(of, _)| *of == place);
        of_part.filter_map(|(_, whose)| if let Whose::Cpu(number) = whose { Some(*number) } else { None }).collect()
    }

    /// The states that occur, in the order of parts, and the number of each look of each part among them.
    pub(super) fn states(&self, lowest: &[Placed<'_>], guests: &[Placed<'_>]) -> (Vec<State>, Numbers) {
        let (mut states, mut numbers): (Vec<State>, Numbers) = (Vec::new(), Numbers::new());
        let parts = lowest.iter().map(|part| (part, false)).chain(guests.iter().map(|part| (part, true)));
        for ((place, part), inside) in parts {
            // A look that does not occur has no time that would need its number.
            let mut of_looks = [StateId(0); LOOKS];
            let occurs = self.occurs.get(place).into_iter().flatten().enumerate().filter(|(_, occurs)| **occurs);
            for (index, _) in occurs {
                let state = Look::named(index, part.level, inside);
                let known = states.iter().position(|known| known.name == state.name);
                let number = known.unwrap_or_else(|| {
                    states.push(state);
                    states.len() - 1
                });
                of_looks[index] = StateId(number as u8);
            }
            numbers.insert(*place, of_looks.into());
        }
        (states, numbers)
    }

    /// The lane, if there is one.
    pub(super) fn take(&mut self, key: Key, lane: Lane, numbers: &Numbers) -> Option<LaneSums> {
        let (sums, chains) = self.lanes.remove(&key)?;
        Some(LaneSums { lane, sums, states: numbers.get(&key.0)?.clone(), chains })
    }
}

pub(super) type Numbers = BTreeMap<usize, Arc<[StateId]>>;

/// The lanes of one part, added up on the common line.
pub(super) struct Adding<'a> {
    pub building: &'a mut Building,
    pub part: Placed<'a>,
    /// It is a guest's own trace.
    pub inside: bool,
    /// Where a time of its clock lies on the common line.
    pub(crate) on_line: &'a dyn Fn(u64) -> Option<u64>,
    pub hear: &'a mut dyn FnMut(&ChainSums<'_>),
    /// Names of reasons that were met.
    pub reasons: FxHashMap<Reason, String>,
}

impl Adding<'_> {
    /// The trace is over, and so is the last slice of each lane.
    pub(super) fn end(&mut self) {
        let (place, part) = self.part;
        let Some(end_ns) = (self.on_line)(span(part).to_ns) else { return };
        let of_part = self.building.lanes.iter_mut().filter(|((of, _), _)| *of == place);
        of_part.for_each(|(_, (lane, _))| lane.end(end_ns));
    }
}

impl Take for Adding<'_> {
    fn piece(&mut self, whose: Whose, at_ns: u64, look: Look, _: &str) {
        let (place, part) = self.part;
        self.building.occurs(place, look, (part.level, self.inside));
        if let Some(at_ns) = (self.on_line)(at_ns) {
            self.building.push((place, whose), at_ns, look);
        }
    }

    fn chain(&mut self, tid: i32, chain: &Chain) {
        let (place, part) = self.part;
        let key = (place, Whose::Vcpu(tid));
        let (Some(lane), Some((_, chains))) = (self.building.vcpus.get(&key), self.building.lanes.get_mut(&key)) else {
            return;
        };
        let nth = *chains as u32;
        *chains += 1;
        let since_ns = |at_ns: u64| part.on_axis(at_ns);
        let span = chain.span();
        (self.hear)(&ChainSums {
            lane: *lane,
            nth,
            reason: self.reasons.entry(chain.reason).or_insert_with(|| chain.reason.name()),
            span: Span { from_ns: since_ns(span.from_ns), to_ns: since_ns(span.to_ns) },
            exits: chain.exits,
            cost_ns: chain.cost_ns,
            is_undisturbed: chain.is_undisturbed(),
        });
    }
}
