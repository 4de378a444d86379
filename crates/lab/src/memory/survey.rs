//! The survey: counts of all pages, samples of those with data, and what becomes of them.

use super::mappings::guest_memory;
use super::pages::{Memory, PAGE_BYTES, State};
use super::target::Target;
use super::xbzrle::encoded_bytes;
use crate::random::Random;
use crate::watch::Watch;
use crate::{Error, zero};
use base::bench::{
    ALLOCATED, BY_CONTENTS, COMPRESS_NS, COMPRESSED, COST, DIRTIED, Measured, PAGES, Params, RESIDENT, ZSTD,
};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Pages of a stratum: a GiB.
const STRATUM_PAGES: u64 = 1 << 18;
/// Pages that are kept for comparison, at most: 64 MiB.
const MOST_SAMPLED: u64 = 1 << 14;
/// What multifd compresses at once, in pages (`MULTIFD_PACKET_SIZE` in migration/multifd.h, QEMU 7.2: 512 KiB).
const GROUP_PAGES: usize = 128;
/// Groups of a GiB that are compressed, and of all memory.
const GROUPS: (u64, u64) = (8, 64);
/// A group of fewer pages says nothing of one of 128.
const LEAST_GROUP_PAGES: usize = 16;
/// QEMU's own level (`DEFAULT_MIGRATE_MULTIFD_ZSTD_LEVEL` in migration/migration.c, QEMU 7.2).
const ZSTD_LEVEL: i32 = 1;

/// How closely is looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub pages_per_gib: u64,
    /// What the sample is drawn by.
    pub seed: u64,
    /// How long after a page was read it is read again; none if nobody asks what is dirtied.
    pub windows: Vec<Duration>,
}

struct Survey<'a> {
    plan: &'a Plan,
    memory: Memory,
    random: Random,
    results: Vec<Measured>,
    /// Pages that are looked at again, by address.
    sampled: Vec<Sampled>,
    /// Of each stratum: pages with data.
    strata: Vec<u64>,
    read_bytes: u64,
}

#[derive(Clone, Copy)]
struct Sampled {
    stratum: usize,
    region: usize,
    page: u64,
    state: State,
}

/// Looks at the memory of `target`'s guest. `say` hears what is going on, `stop` ends it early.
///
/// # Errors
/// If the process ends or may not be looked at.
pub fn survey(
    target: &Target,
    plan: &Plan,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Vec<Measured>, Error> {
    let mut watch = Watch { say, stop };
    let maps = target.directory.join("maps");
    let text = std::fs::read_to_string(&maps).map_err(|error| Error::io(&maps, error))?;
    let memory = Memory::open(target, guest_memory(&text, target.memory_bytes)?)?;
    let began_ns = cpu_ns();
    let before = taken(target, &memory);
    let (results, sampled, strata) = (Vec::new(), Vec::new(), Vec::new());
    let mut survey = Survey { plan, memory, random: Random::of(plan.seed), results, sampled, strata, read_bytes: 0 };
    survey.count(&watch)?;
    survey.watch_pages(&mut watch)?;
    let after = taken(target, &survey.memory);
    for ((name, before), (_, after)) in before.into_iter().zip(after) {
        let one = Measured { samples: [before, after].into_iter().flatten().collect(), ..measured(name, "bytes") };
        survey.results.extend((one.samples.len() == 2).then_some(one));
    }
    let cost = Measured { samples: vec![cpu_ns().saturating_sub(began_ns) as f64], ..measured(COST, "ns") };
    survey.results.push(Measured { counters: counters([("read_bytes", survey.read_bytes)]), ..cost });
    Ok(survey.results)
}

impl Survey<'_> {
    /// Counts the pages of each GiB, and looks into a sample of them.
    fn count(&mut self, watch: &Watch<'_>) -> Result<(), Error> {
        let strata: Vec<(usize, u64, u64)> = (self.memory.regions.iter().enumerate())
            .flat_map(|(index, region)| {
                let pages = region.pages();
                let firsts = (0..pages).step_by(STRATUM_PAGES as usize);
                firsts.map(move |first| (index, first, (pages - first).min(STRATUM_PAGES)))
            })
            .collect();
        let each = self.plan.pages_per_gib.min(MOST_SAMPLED / strata.len().max(1) as u64).max(1);
        let groups = GROUPS.0.min(GROUPS.1.div_ceil(strata.len().max(1) as u64));
        for (region, first, pages) in strata {
            watch.check()?;
            let states = self.memory.states(&self.memory.regions[region], first, pages)?;
            let of = |wanted: State| states.iter().filter(|state| **state == wanted).count() as u64;
            let (holes, swapped) = (of(State::Hole), of(State::Swapped));
            let data: Vec<(u64, State)> = (first..)
                .zip(&states)
                .filter(|(_, state)| matches!(state, State::Mapped | State::InFile))
                .map(|(page, state)| (page, *state))
                .collect();
            let (sampled, zero, one_value) = self.sample(region, &data, each);
            let params = Params {
                launch: self.strata.len() as u32,
                memory: Some(self.memory.regions[region].kind().to_owned()),
                bytes: Some(pages * PAGE_BYTES),
                ..Params::default()
            };
            let counted = [
                ("pages", pages),
                ("holes", holes),
                ("swapped", swapped),
                ("data", data.len() as u64),
                ("sampled", sampled),
                ("zero", zero),
                ("one_value", one_value),
            ];
            self.results.push(Measured { params, counters: counters(counted), ..measured(PAGES, "count") });
            self.strata.push(data.len() as u64);
            self.compress(region, &data, groups);
        }
        Ok(())
    }

    /// Reads some of a stratum's pages: how many, and how many of them are zeros, or one value.
    fn sample(&mut self, region: usize, data: &[(u64, State)], wanted: u64) -> (u64, u64, u64) {
        let (mut sampled, mut zeros, mut one_value) = (0, 0, 0);
        let mut page = [0; PAGE_BYTES as usize];
        for at in self.random.distinct(wanted, data.len() as u64) {
            let Some((number, state)) = data.get(at as usize).copied() else { continue };
            if !self.memory.read(&self.memory.regions[region], number, state, &mut page) {
                continue;
            }
            self.read_bytes += PAGE_BYTES;
            sampled += 1;
            if zero::is_zero(&page) {
                zeros += 1;
            } else if page[1..] == page[..page.len() - 1] {
                one_value += 1;
            }
            self.sampled.push(Sampled { stratum: self.strata.len(), region, page: number, state });
        }
        (sampled, zeros, one_value)
    }

    /// Compresses groups of pages that follow each other, without those of zeros, as multifd does.
    fn compress(&mut self, region: usize, data: &[(u64, State)], groups: u64) {
        let Ok(mut compressor) = zstd::bulk::Compressor::new(ZSTD_LEVEL) else { return };
        let (mut sizes, mut times, mut given) = (Vec::new(), Vec::new(), 0);
        let mut page = [0; PAGE_BYTES as usize];
        // A group begins anywhere; few pages are taken whole.
        for begin in self.random.distinct(groups, (data.len() as u64).saturating_sub(GROUP_PAGES as u64 - 1).max(1)) {
            let mut group = Vec::with_capacity(GROUP_PAGES * PAGE_BYTES as usize);
            for (number, state) in data.iter().skip(begin as usize).take(4 * GROUP_PAGES) {
                if group.len() == GROUP_PAGES * PAGE_BYTES as usize {
                    break;
                }
                if self.memory.read(&self.memory.regions[region], *number, *state, &mut page) {
                    self.read_bytes += PAGE_BYTES;
                    if !zero::is_zero(&page) {
                        group.extend_from_slice(&page);
                    }
                }
            }
            if group.len() < LEAST_GROUP_PAGES * PAGE_BYTES as usize {
                continue;
            }
            let began_ns = cpu_ns();
            let Ok(compressed) = compressor.compress(&group) else { continue };
            let took_ns = cpu_ns().saturating_sub(began_ns);
            // Of a whole group, also where this one is shorter.
            let whole = (GROUP_PAGES as f64 * PAGE_BYTES as f64) / group.len() as f64;
            sizes.push((compressed.len() as f64 * whole).round());
            times.push((took_ns as f64 * whole).round());
            given += group.len() as u64;
        }
        let params = Params {
            launch: self.strata.len().saturating_sub(1) as u32,
            content: Some(ZSTD.to_owned()),
            bytes: Some(GROUP_PAGES as u64 * PAGE_BYTES),
            ..Params::default()
        };
        if !sizes.is_empty() {
            let both = [(COMPRESSED, "bytes", sizes), (COMPRESS_NS, "ns", times)];
            self.results.extend(both.map(|(name, unit, samples)| Measured {
                params: params.clone(),
                samples,
                counters: counters([("given_bytes", given)]),
                ..measured(name, unit)
            }));
        }
    }

    /// Reads the sample again and again: what has changed since the first time, and how much of it?
    fn watch_pages(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        let mut windows = self.plan.windows.clone();
        windows.sort_unstable();
        if windows.is_empty() || self.sampled.is_empty() {
            return Ok(());
        }
        (watch.say)("reading the sample for the first time");
        let began = Instant::now();
        let first = self.read_sampled();
        let first_at = began + began.elapsed() / 2;
        for window in windows {
            watch.rest((began + window).saturating_duration_since(Instant::now()))?;
            let again = Instant::now();
            let now = self.read_sampled();
            // Pages are read in the same order: the same time lies between the two readings of each.
            let window_ns = (again + again.elapsed() / 2).saturating_duration_since(first_at).as_nanos() as u64;
            self.compare(&first, &now, window_ns);
        }
        Ok(())
    }

    fn read_sampled(&mut self) -> Vec<Option<Box<[u8]>>> {
        let mut all = Vec::with_capacity(self.sampled.len());
        for Sampled { region, page, state, .. } in &self.sampled {
            let mut into = vec![0; PAGE_BYTES as usize].into_boxed_slice();
            let is_read = self.memory.read(&self.memory.regions[*region], *page, *state, &mut into);
            self.read_bytes += if is_read { PAGE_BYTES } else { 0 };
            all.push(is_read.then_some(into));
        }
        all
    }

    fn compare(&mut self, first: &[Option<Box<[u8]>>], now: &[Option<Box<[u8]>>], window_ns: u64) {
        /// Of a stratum: compared, changed, of those such as XBZRLE makes shorter, and what it makes of these.
        #[derive(Clone, Copy, Default)]
        struct Seen {
            sampled: u64,
            changed: u64,
            encoded: u64,
            encoded_bytes: u64,
        }
        let mut seen = vec![Seen::default(); self.strata.len()];
        for ((sampled, before), after) in self.sampled.iter().zip(first).zip(now) {
            let (Some(before), Some(after), Some(seen)) = (before, after, seen.get_mut(sampled.stratum)) else {
                continue;
            };
            seen.sampled += 1;
            if before != after {
                seen.changed += 1;
                if let Some(bytes) = encoded_bytes(before, after) {
                    seen.encoded += 1;
                    seen.encoded_bytes += bytes as u64;
                }
            }
        }
        for (stratum, (seen, data)) in seen.into_iter().zip(&self.strata).enumerate() {
            let params = Params {
                launch: stratum as u32,
                content: Some(BY_CONTENTS.to_owned()),
                window_ns: Some(window_ns),
                ..Params::default()
            };
            let counted = [
                ("data", *data),
                ("sampled", seen.sampled),
                ("changed", seen.changed),
                ("xbzrle", seen.encoded),
                ("xbzrle_bytes", seen.encoded_bytes),
            ];
            self.results.push(Measured { params, counters: counters(counted), ..measured(DIRTIED, "count") });
        }
    }
}

fn measured(name: &str, unit: &str) -> Measured {
    Measured { name: name.to_owned(), unit: unit.to_owned(), ..Measured::default() }
}

fn counters<const N: usize>(counted: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counted.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// What the process has of memory, and what the files behind its guest's take.
fn taken(target: &Target, memory: &Memory) -> [(&'static str, Option<f64>); 2] {
    let status = std::fs::read_to_string(target.directory.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let files: BTreeMap<u64, u64> = memory.regions.iter().filter_map(|region| region.allocated()).collect();
    let allocated = (!files.is_empty()).then(|| files.values().sum::<u64>() as f64);
    [(RESIDENT, resident.map(|kib| kib as f64 * 1024.0)), (ALLOCATED, allocated)]
}

/// What this thread has used of a CPU.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
