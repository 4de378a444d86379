//! How fast does one core find out which pages are zeros, and how fast could it at best?
//!
//! ```text
//! cache   256 KiB, read again and again            memory   twice the last-level cache or more, a piece at a time
//! each round: looking for zeros, and plain reading, in an order that is drawn: one sample each
//! ```
//! What is compared stands in the same round, so that a machine that slows down slows both. Two contents: zeros, which have to be
//! read whole, and a first word that is not zero.

use super::audit::Audit;
use super::launch::{Job, Launch, Tell, plan};
use super::sizing::warm;
use base::bench::{Measured, Params};
use lab::Error;
use lab::random::Random;
use lab::zero::{PAGE_BYTES, read, zero_pages};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What fits into the second-level cache of any server's core.
const CACHE_BYTES: usize = 256 << 10;
/// A sample from memory: long beside the timer, short beside a time slice.
const PIECE_BYTES: usize = 1 << 20;
/// The least that counts as memory.
const LEAST_MEMORY_BYTES: u64 = 256 << 20;
/// So many samples each test has at least, however long they take.
const LEAST_ROUNDS: u32 = 30;
/// And at most.
const MOST_ROUNDS: u32 = 20_000;

/// What looking for zeros is called, beside [`base::bench::READ`].
const SCAN: &str = "words";

/// How a launch measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the machine's files are.
    pub root: PathBuf,
    /// The CPU to stay on.
    pub cpu: u32,
    /// How long the samples of a test may take.
    pub target: Duration,
    /// Whether to measure by the real-time policy SCHED_FIFO.
    pub fifo: bool,
    /// Bytes that count as memory; `None` where this machine has too little of it.
    pub memory_bytes: Option<u64>,
    pub launch: u32,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Content {
        Zeros = "zeros",
        FirstWord = "first word",
    }
}

impl Content {
    fn fill(self, memory: &mut [u8]) {
        memory.fill(0);
        // A page of zeros that nobody wrote to is the same one for all of memory, and always in the cache.
        for page in std::hint::black_box(&mut *memory).chunks_mut(PAGE_BYTES) {
            match self {
                Self::Zeros => {}
                Self::FirstWord => page[..8].fill(1),
            }
        }
    }

    /// What is measured of it: reading costs the same whatever is read.
    fn tests(self) -> &'static [Test] {
        match self {
            Self::Zeros => &[Test::Scan, Test::Read],
            Self::FirstWord => &[Test::Scan],
        }
    }
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Test {
        Scan = SCAN,
        Read = base::bench::READ,
    }
}

impl Test {
    fn run(self, memory: &[u8]) -> u64 {
        match self {
            Self::Scan => zero_pages(memory) as u64,
            Self::Read => read(memory),
        }
    }
}

pub const LAUNCH: Launch = Launch { name: "zeropages", run: |orders, tell| run(&plan(orders)?, tell) };

impl Plan {
    /// The plan of launch `number`.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn launch(&self, number: u32) -> Result<Job, Error> {
        Job::new(LAUNCH, self.cpu, self.fifo, &Self { launch: number, ..self.clone() })
    }

    /// How many results a launch gives.
    pub fn results(&self) -> usize {
        let tests: usize = Content::ALL.iter().map(|content| content.tests().len()).sum();
        tests * if self.memory_bytes.is_some() { 2 } else { 1 }
    }
}

/// Bytes that are memory and not cache on the machine below `root`: twice its last-level cache, if half of what is free is that much.
///
/// # Errors
/// If there is too little: the sentence says what it takes.
pub fn memory_bytes(root: &Path) -> Result<u64, Error> {
    let kib = |text: &str| text.trim().trim_end_matches(['K', 'B', 'k', ' ']).trim().parse::<u64>().ok();
    let caches = (0..8).filter_map(|index| {
        let path = root.join(format!("sys/devices/system/cpu/cpu0/cache/index{index}/size"));
        kib(&std::fs::read_to_string(path).ok()?)
    });
    let wanted = (2 * caches.max().unwrap_or(0) * 1024).max(LEAST_MEMORY_BYTES).next_multiple_of(PIECE_BYTES as u64);
    let about = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let free = about.lines().find_map(|line| kib(line.strip_prefix("MemAvailable:")?)).unwrap_or(0) * 1024;
    if free / 2 < wanted {
        let needs =
            format!("scanning memory needs {} MiB, twice the last-level cache, and as much left free", wanted >> 20);
        return Err(Error::Absent(format!("{needs}; {} MiB are available", free >> 20)));
    }
    Ok(wanted)
}

/// Measures everything, and tells each result as it comes.
///
/// # Errors
/// If `tell` fails.
pub fn run(plan: &Plan, tell: &mut Tell<'_>) -> Result<(), Error> {
    let mut random = Random::of(u64::from(plan.launch));
    let places = [("cache", Some(CACHE_BYTES as u64)), ("memory", plan.memory_bytes)];
    for (place, bytes) in places.into_iter().filter_map(|(place, bytes)| Some((place, bytes?))) {
        let mut memory = Pages::of(bytes as usize);
        for content in Content::ALL {
            content.fill(memory.whole());
            measured(plan, place, content, memory.whole(), &mut random).into_iter().try_for_each(&mut *tell)?;
        }
    }
    Ok(())
}

/// Memory that begins with a page.
struct Pages {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Pages {
    fn of(length: usize) -> Self {
        let bytes = vec![0; length + PAGE_BYTES];
        let from = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self { bytes, from, length }
    }

    fn whole(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }
}

fn measured(plan: &Plan, place: &str, content: Content, memory: &[u8], random: &mut Random) -> Vec<Measured> {
    let audit = Audit::begin(&plan.root, plan.cpu);
    let mut tests: Vec<(Test, Vec<u64>)> = content.tests().iter().map(|test| (*test, Vec::new())).collect();
    let until = Instant::now() + plan.target * tests.len() as u32;
    let mut pieces = memory.chunks(PIECE_BYTES.min(memory.len())).cycle();
    for round in 0..MOST_ROUNDS {
        if round >= LEAST_ROUNDS && Instant::now() > until {
            break;
        }
        random.shuffle(&mut tests);
        for (test, samples) in &mut tests {
            let Some(piece) = pieces.next() else { continue };
            samples.push(ticks(|| test.run(piece)));
        }
    }
    tests.sort_by_key(|(test, _)| *test);
    let interference = audit.end();
    let one = |(test, samples): (Test, Vec<u64>)| Measured {
        name: test.name().to_owned(),
        params: Params {
            place: "here".to_owned(),
            ring: Some(3),
            launch: plan.launch,
            operations: Some((PIECE_BYTES.min(memory.len()) / PAGE_BYTES) as u64),
            memory: Some(place.to_owned()),
            content: Some(content.name().to_owned()),
            bytes: Some(memory.len() as u64),
            ..Params::default()
        },
        unit: "cycles".to_owned(),
        hdr: warm(&samples).buckets(),
        interference: interference.clone(),
        ..Measured::default()
    };
    tests.into_iter().map(one).collect()
}

fn ticks(body: impl FnOnce() -> u64) -> u64 {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has LFENCE and RDTSC, which touch no memory.
    let begin = unsafe {
        _mm_lfence();
        let begin = _rdtsc();
        _mm_lfence();
        begin
    };
    std::hint::black_box(body());
    let mut cpu = 0;
    // SAFETY: the processors of KVM hosts have RDTSCP; it writes the number that it is given room for.
    unsafe { __rdtscp(&mut cpu) }.wrapping_sub(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_measured_in_the_same_rounds() {
        let plan = Plan {
            root: PathBuf::from("/"),
            cpu: 0,
            target: Duration::from_micros(1),
            fifo: false,
            memory_bytes: Some(4 << 20),
            launch: 0,
        };
        let mut all = Vec::new();
        run(&plan, &mut |measured| {
            all.push(measured);
            Ok(())
        })
        .unwrap();
        assert_eq!(all.len(), plan.results());
        let counts: Vec<u64> = all.iter().map(|one| one.distribution().count()).collect();
        // The first tenth warms up.
        assert!(counts.iter().all(|count| *count == u64::from(LEAST_ROUNDS) * 9 / 10), "{counts:?}");
        let reads = all.iter().filter(|one| one.name == base::bench::READ);
        assert!(reads.clone().count() == 2 && reads.clone().all(|one| one.params.content.as_deref() == Some("zeros")));
    }

    #[test]
    fn contents_are_what_their_names_say() {
        let mut pages = Pages::of(3 * PAGE_BYTES);
        assert_eq!(pages.whole().as_ptr().addr() % PAGE_BYTES, 0);
        Content::Zeros.fill(pages.whole());
        assert_eq!(zero_pages(pages.whole()), 3);
        Content::FirstWord.fill(pages.whole());
        assert_eq!(zero_pages(pages.whole()), 0);
        assert_eq!(pages.whole().iter().position(|byte| *byte != 0), Some(0));
    }

    #[test]
    fn a_machine_with_too_little_is_told() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    2097152 kB\n");
        assert_eq!(memory_bytes(tree.path()).unwrap(), LEAST_MEMORY_BYTES, "a cache that nobody tells is small");
        write("sys/devices/system/cpu/cpu0/cache/index3/size", "491520K\n");
        assert_eq!(memory_bytes(tree.path()).unwrap(), 960 << 20);
        write("proc/meminfo", "MemAvailable:    1048576 kB\n");
        let said = memory_bytes(tree.path()).unwrap_err().to_string();
        assert!(said.contains("960 MiB") && said.contains("1024 MiB"), "{said}");
    }
}
