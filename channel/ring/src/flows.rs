//! Flow tables of several machines that stay consistent: who may send what to whom, in epochs.
//!
//! ```text
//! vSwitch  --writes--> table, read-only for guests: sequence (odd while it is written), epoch, rules
//! sender   --copies it, asks it for a port, stamps its epoch into the frame-->  ring
//! receiver --copies it again if the epoch has moved, judges key and stamp-->  delivers, or drops
//! ```
//! Each change begins an epoch. A frame is **late** if its rule was revoked after the epoch that it was sent by. A late frame is
//! delivered while the revocation is at most `grace` epochs old, and never afterwards. The receiver looks at the epoch after it has
//! copied the frame, so that what it delivers was allowed when it looked, however long the frame lay in the ring. Where the table
//! cannot be read consistently within a bound, nothing is delivered.
//!
//! Epochs have 64 bits in the table, and 32 in frames: one that lay in a ring for 2^32 changes does not exist.

use std::sync::atomic::Ordering;

use thiserror::Error;

use crate::fault::Refused;
use crate::layout::{LINE_BYTES, PAGE_BYTES};
use crate::region::{Error, Region};

const MAGIC: u64 = u64::from_le_bytes(*b"kvmflows");
const CAPACITY_AT: usize = 8;
const GRACE_AT: usize = 16;
const SEQUENCE_AT: usize = 2 * LINE_BYTES;
const EPOCH_AT: usize = SEQUENCE_AT + 8;
const RULES_AT: usize = PAGE_BYTES;
const RULE_BYTES: usize = 40;
const MOST_RULES: usize = 1 << 16;
/// How often a reader tries again while the table is written.
const TRIES: usize = 64;

/// A rule in the table, found by its key with linear probing: where its frames go now, and where they went last before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rule {
    key: u64,
    now: Option<Grant>,
    last: Option<Ended>,
}

/// Frames go to this port, from this epoch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    port: u16,
    since: u64,
}

/// A grant that was revoked, and the epoch that began with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended {
    grant: Grant,
    revoked: u64,
}

const IS_NOW: u64 = 1;
const IS_LAST: u64 = 2;

impl Rule {
    /// A place that no key has taken.
    fn is_free(&self) -> bool {
        self.now.is_none() && self.last.is_none()
    }

    fn ended(&mut self, epoch: u64) {
        if let Some(grant) = self.now.take() {
            self.last = Some(Ended { grant, revoked: epoch });
        }
    }

    fn bytes(&self) -> [u8; RULE_BYTES] {
        let port = |grant: Option<Grant>| grant.map_or(0, |grant| u64::from(grant.port));
        let since = |grant: Option<Grant>| grant.map_or(0, |grant| grant.since);
        let last = self.last.map(|ended| ended.grant);
        let flags = u64::from(self.now.is_some()) * IS_NOW + u64::from(self.last.is_some()) * IS_LAST;
        let ports = flags + (port(self.now) << 16) + (port(last) << 32);
        let words = [self.key, ports, since(self.now), since(last), self.last.map_or(0, |ended| ended.revoked)];
        let mut bytes = [0; RULE_BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8]) -> Rule {
        let word = |i: usize| bytes[8 * i..8 * i + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let now = Grant { port: (word(1) >> 16) as u16, since: word(2) };
        let last = Ended { grant: Grant { port: (word(1) >> 32) as u16, since: word(3) }, revoked: word(4) };
        Rule {
            key: word(0),
            now: (word(1) & IS_NOW != 0).then_some(now),
            last: (word(1) & IS_LAST != 0).then_some(last),
        }
    }
}

/// The place in a table of this capacity where a key is looked for first (Fibonacci hashing).
fn home(key: u64, capacity: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (capacity - 1)
}

/// The vSwitch's side: the only one that writes.
#[derive(Debug)]
pub struct Flows {
    region: Region,
    rules: Vec<Rule>,
    used: usize,
    epoch: u64,
    sequence: u64,
    grace: u64,
}

/// The table has no room for one more key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the flow table is full: {capacity} places")]
pub struct Full {
    /// Places that it has.
    pub capacity: usize,
}

impl Flows {
    /// An empty table with room for some three quarters of `capacity` rules, a power of two. Late frames are delivered for `grace` epochs.
    pub fn new(capacity: usize, grace: u64) -> Result<Flows, Error> {
        if !capacity.is_power_of_two() || capacity > MOST_RULES {
            return Err(Refused::Slots { slots: u32::try_from(capacity).unwrap_or(u32::MAX) }.into());
        }
        let region = Region::read_only_for_others("kvmscope-flows", RULES_AT + capacity * RULE_BYTES)?;
        let memory = region.memory();
        memory.store(CAPACITY_AT, capacity as u64, Ordering::Relaxed);
        memory.store(GRACE_AT, grace, Ordering::Relaxed);
        memory.store(0, MAGIC, Ordering::Release);
        Ok(Flows { region, rules: vec![Rule::default(); capacity], used: 0, epoch: 0, sequence: 0, grace })
    }

    /// For guests.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The current one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Frames of `key` go to `port` from the epoch on that is returned; what was sent to another port before is late.
    pub fn allow(&mut self, key: u64, port: u16) -> Result<u64, Full> {
        let is_full = |used: usize, rules: &[Rule]| (used + 1) * 4 > rules.len() * 3;
        if is_full(self.used, &self.rules) {
            self.lay_anew();
        }
        let place = self.place(key);
        let epoch = self.epoch + 1;
        let rule = &mut self.rules[place];
        if rule.now.is_some_and(|grant| grant.port == port) {
            return Ok(self.epoch);
        }
        if rule.is_free() {
            if is_full(self.used, &self.rules) {
                return Err(Full { capacity: self.rules.len() });
            }
            self.used += 1;
        }
        let rule = &mut self.rules[place];
        rule.key = key;
        rule.ended(epoch);
        rule.now = Some(Grant { port, since: epoch });
        self.write(epoch, &[place]);
        Ok(epoch)
    }

    /// Frames of `key` go nowhere from the epoch on that is returned; a key without a rule changes nothing.
    pub fn revoke(&mut self, key: u64) -> u64 {
        let place = self.place(key);
        let epoch = self.epoch + 1;
        let rule = &mut self.rules[place];
        if rule.key != key || rule.now.is_none() {
            return self.epoch;
        }
        rule.ended(epoch);
        self.write(epoch, &[place]);
        epoch
    }

    fn place(&self, key: u64) -> usize {
        find(key, self.rules.len(), |place| self.rules[place])
    }

    /// Forgets rules that were revoked longer ago than the grace period: nothing of theirs is delivered without them either.
    fn lay_anew(&mut self) {
        let is_kept =
            |rule: &Rule| rule.now.is_some() || rule.last.is_some_and(|ended| self.epoch - ended.revoked <= self.grace);
        let kept: Vec<Rule> = self.rules.iter().copied().filter(is_kept).collect();
        let capacity = self.rules.len();
        self.rules.fill(Rule::default());
        self.used = kept.len();
        for rule in kept {
            let place = self.place(rule.key);
            self.rules[place] = rule;
        }
        let all: Vec<usize> = (0..capacity).collect();
        self.write(self.epoch, &all);
    }

    fn write(&mut self, epoch: u64, places: &[usize]) {
        let memory = self.region.memory();
        memory.store(SEQUENCE_AT, self.sequence + 1, Ordering::Relaxed);
        // No rule is written before the sequence is seen to be odd.
        memory.fence();
        for &place in places {
            memory.copy_in(RULES_AT + place * RULE_BYTES, &self.rules[place].bytes());
        }
        memory.store(EPOCH_AT, epoch, Ordering::Release);
        memory.store(SEQUENCE_AT, self.sequence + 2, Ordering::Release);
        (self.epoch, self.sequence) = (epoch, self.sequence + 2);
    }
}

/// The place of a key, or the free one where it would be. A table is never full; of one that is, by whoever wrote it, any place.
fn find(key: u64, capacity: usize, at: impl Fn(usize) -> Rule) -> usize {
    let begin = home(key, capacity);
    let mut places = (0..capacity).map(|step| (begin + step) & (capacity - 1));
    let fits = |&place: &usize| {
        let rule = at(place);
        rule.is_free() || rule.key == key
    };
    places.find(fits).unwrap_or(begin)
}

/// A guest's side: a private copy, which it decides by.
#[derive(Debug)]
pub struct FlowView {
    region: Region,
    copy: Vec<u8>,
    fresh: Vec<u8>,
    capacity: usize,
    grace: u64,
    epoch: u64,
}

/// What becomes of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its rule holds.
    Deliver,
    /// Its rule was revoked after it was sent, not longer ago than the grace period.
    DeliverLate,
    /// Its rule was revoked longer ago.
    Revoked,
    /// No rule let it be sent here when it was.
    NotAllowed,
}

impl Verdict {
    /// Whether the frame is delivered.
    pub fn delivers(self) -> bool {
        matches!(self, Verdict::Deliver | Verdict::DeliverLate)
    }
}

/// The table was being written at each of so many looks.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the flow table was being written at each of {TRIES} looks")]
pub struct Busy;

impl FlowView {
    /// Of a table that a vSwitch handed out.
    pub fn of(region: Region) -> Result<FlowView, Error> {
        if region.bytes() < RULES_AT || region.word(0) != MAGIC {
            return Err(Refused::NoRing.into());
        }
        let capacity = usize::try_from(region.word(CAPACITY_AT)).unwrap_or(usize::MAX);
        let needs = RULES_AT.saturating_add(capacity.saturating_mul(RULE_BYTES));
        if !capacity.is_power_of_two() || capacity > MOST_RULES || region.bytes() < needs {
            return Err(Refused::Size { has: region.bytes(), needs }.into());
        }
        let grace = region.word(GRACE_AT);
        let bytes = capacity * RULE_BYTES;
        Ok(FlowView { region, copy: vec![0; bytes], fresh: vec![0; bytes], capacity, grace, epoch: 0 })
    }

    /// The epoch of the copy.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Copies the table if its epoch has moved. While it cannot be read, the copy stays what it was, and nothing may be decided by it.
    pub fn refresh(&mut self) -> Result<(), Busy> {
        let memory = self.region.memory();
        for _ in 0..TRIES {
            let sequence = memory.load(SEQUENCE_AT, Ordering::Acquire);
            let epoch = memory.load(EPOCH_AT, Ordering::Acquire);
            if epoch == self.epoch && sequence.is_multiple_of(2) {
                return Ok(());
            }
            memory.copy_out(RULES_AT, &mut self.fresh);
            memory.fence();
            if sequence.is_multiple_of(2) && memory.load(SEQUENCE_AT, Ordering::Relaxed) == sequence {
                std::mem::swap(&mut self.copy, &mut self.fresh);
                self.epoch = epoch;
                return Ok(());
            }
            std::hint::spin_loop();
        }
        Err(Busy)
    }

    /// Where frames of a key go, by the copy.
    pub fn route(&self, key: u64) -> Option<u16> {
        Some(self.rule(key)?.now?.port)
    }

    /// What becomes of a frame of `key` that arrived `here`, sent by the epoch of `stamp`; by the copy, so [`FlowView::refresh`] goes
    /// before it and after the frame was copied.
    pub fn judge(&self, key: u64, stamp: u32, here: u16) -> Verdict {
        let Some(rule) = self.rule(key) else { return Verdict::NotAllowed };
        // The latest epoch with these low bits that has begun.
        let age = u64::from((self.epoch as u32).wrapping_sub(stamp));
        let Some(sent) = self.epoch.checked_sub(age) else { return Verdict::NotAllowed };
        if rule.now.is_some_and(|grant| grant.port == here && grant.since <= sent) {
            return Verdict::Deliver;
        }
        match rule.last {
            Some(Ended { grant, revoked }) if grant.port == here && (grant.since..revoked).contains(&sent) => {
                // One that was revoked in an epoch to come was written by somebody who lies.
                let is_late = self.epoch.checked_sub(revoked).is_some_and(|age| age <= self.grace);
                if is_late { Verdict::DeliverLate } else { Verdict::Revoked }
            }
            _ => Verdict::NotAllowed,
        }
    }

    fn rule(&self, key: u64) -> Option<Rule> {
        let at = |place: usize| Rule::of(&self.copy[place * RULE_BYTES..][..RULE_BYTES]);
        Some(at(find(key, self.capacity, at))).filter(|rule| rule.key == key && !rule.is_free())
    }
}
