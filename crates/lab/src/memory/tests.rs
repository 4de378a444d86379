//! The survey on a process whose memory is known to the page, and on one that is emptier afterwards if anything was made of its holes.

use super::*;
use base::bench::{ALLOCATED, ANONYMOUS, COMPRESSED, DIRTIED, Measured, PAGES, RESIDENT, SHARED};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PAGE: usize = 4096;
const ALL: usize = 16_384;
/// Pages of noise, of text, written to and zero, of one value; behind them nothing was ever written.
const NOISE: usize = 2_048;
const TEXT: usize = 2_048;
const ZERO: usize = 1_024;
const ONE_VALUE: usize = 512;
const DATA: usize = NOISE + TEXT + ZERO + ONE_VALUE;
/// Of the noise: written to in turn, for ever.
const HOT: usize = 256;

/// After so many rounds the first byte of a hot page is what it was: not the same number for all, or a window of that many finds none changed.
fn cycle(page: usize) -> u8 {
    100 + (page % 100) as u8
}

/// Its own test, which the others start as a process of their own: 64 MiB, then writes until its input ends.
#[test]
fn stand_in() {
    let Ok(kind) = std::env::var("KVMSCOPE_STAND_IN") else { return };
    let flags = match kind.as_str() {
        SHARED => libc::MAP_SHARED,
        _ => libc::MAP_PRIVATE,
    };
    // SAFETY: a new mapping where the kernel likes, of memory that nobody else has; the result is looked at.
    let begin = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), ALL * PAGE, access, flags | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(begin, libc::MAP_FAILED);
    // SAFETY: the mapping is ours; huge pages would fill its holes.
    unsafe { libc::madvise(begin, ALL * PAGE, libc::MADV_NOHUGEPAGE) };
    // SAFETY: the mapping is that long, lives as long as the process, and has no other reference.
    let memory = unsafe { std::slice::from_raw_parts_mut(begin.cast::<u8>(), DATA * PAGE) };
    let mut random = crate::random::Random::of(1);
    memory[..NOISE * PAGE]
        .chunks_mut(8)
        .for_each(|word| word.copy_from_slice(&(random.below(u64::MAX) | 1).to_le_bytes()));
    let text = b"the quick brown fox jumps over the lazy dog; ";
    memory[NOISE * PAGE..(NOISE + TEXT) * PAGE].iter_mut().zip(text.iter().cycle()).for_each(|(to, from)| *to = *from);
    memory[(NOISE + TEXT) * PAGE..(NOISE + TEXT + ZERO) * PAGE].fill(std::hint::black_box(0));
    memory[(NOISE + TEXT + ZERO) * PAGE..].fill(0x5a);
    println!("\nready {:x}", begin.addr());
    let ended = std::sync::Arc::new(AtomicBool::new(false));
    let (heard, order) = (ended.clone(), std::sync::atomic::Ordering::Relaxed);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        heard.store(true, order);
    });
    while !ended.load(order) {
        for page in 0..HOT {
            memory[page * PAGE] = memory[page * PAGE].wrapping_add(1) % cycle(page);
            std::hint::black_box(&memory[page * PAGE]);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct StandIn {
    child: Child,
    /// Where its 64 MiB begin: the C library reserves as much for a thread's own heap.
    begin: String,
}

impl StandIn {
    fn start(kind: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::tests::stand_in", "--nocapture"]).env("KVMSCOPE_STAND_IN", kind);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let begin = lines.find_map(|line| line.unwrap().strip_prefix("ready ").map(str::to_owned)).unwrap();
        // Whoever reads no more breaks its pipe: keep it until the end.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, begin }
    }

    fn target(&self) -> Target {
        let found = Target::find(&self.child.id().to_string()).unwrap();
        Target { memory_bytes: Some((ALL * PAGE) as u64), ..found }
    }

    /// What the kernel says of the 64 MiB, exactly: the rest of the process goes on as it likes.
    fn resident(&self) -> Vec<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps", self.child.id())).unwrap();
        let lines = text.lines().skip_while(|line| !line.starts_with(&format!("{}-", self.begin)));
        let lines = lines.take_while(|line| !line.starts_with("VmFlags:"));
        let of = lines.filter(|line| ["Size:", "Rss:", "Swap:"].iter().any(|name| line.starts_with(name)));
        of.map(str::to_owned).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn surveyed(target: &Target, plan: &Plan) -> Vec<Measured> {
    survey(target, plan, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

fn plan(windows: &[u64]) -> Plan {
    let windows = windows.iter().map(|ms| Duration::from_millis(*ms)).collect();
    Plan { pages_per_gib: ALL as u64, seed: 7, windows }
}

#[test]
fn what_is_there_is_counted_and_nothing_is_made_of_what_is_not() {
    for kind in [ANONYMOUS, SHARED] {
        let stand_in = StandIn::start(kind);
        let target = stand_in.target();
        let before = stand_in.resident();
        assert_eq!(before.len(), 3, "{before:?}");
        let results = surveyed(&target, &plan(&[]));
        assert_eq!(stand_in.resident(), before, "{kind}: looking has changed what is resident");
        let again = surveyed(&target, &plan(&[]));
        // A hole of private memory that is read becomes the page of zeros that all share, which takes nothing and is no hole.
        assert_eq!(again.iter().find(|one| one.name == PAGES).unwrap().counters["holes"] as usize, ALL - DATA);
        let [pages] = &results.iter().filter(|one| one.name == PAGES).collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(pages.params.memory.as_deref(), Some(kind));
        let of = |name: &str| pages.counters[name] as usize;
        assert_eq!(
            ["pages", "holes", "swapped", "data", "sampled", "zero", "one_value"].map(of),
            [ALL, ALL - DATA, 0, DATA, DATA, ZERO, ONE_VALUE],
            "{kind}"
        );
        let taken = |name: &str| results.iter().find(|one| one.name == name).map(|one| one.samples.clone());
        assert_eq!(taken(RESIDENT).unwrap().len(), 2);
        let allocated = taken(ALLOCATED);
        assert_eq!(allocated.is_some(), kind == SHARED);
        if let Some(allocated) = allocated {
            assert_eq!(allocated, [(DATA * PAGE) as f64; 2], "a hole that is read through a mapping would be filled");
        }
    }
}

#[test]
fn a_sample_is_as_large_as_asked_and_groups_of_noise_and_of_text_differ() {
    let stand_in = StandIn::start(ANONYMOUS);
    let results = surveyed(&stand_in.target(), &Plan { pages_per_gib: 500, ..plan(&[]) });
    let pages = results.iter().find(|one| one.name == PAGES).unwrap();
    assert_eq!(pages.counters["sampled"], 500);
    let share = pages.counters["zero"] as f64 / 500.0;
    assert!((share - ZERO as f64 / DATA as f64).abs() < 0.1, "{share}");
    let compressed = results.iter().find(|one| one.name == COMPRESSED).unwrap();
    let whole = compressed.params.bytes.unwrap() as f64;
    assert!(compressed.samples.len() >= 4, "{compressed:?}");
    let [most, least] = [f64::max, f64::min].map(|of| compressed.samples.iter().copied().reduce(of).unwrap());
    assert!(most > 0.98 * whole && least < 0.1 * whole, "{:?}", compressed.samples);
}

#[test]
fn pages_that_are_written_to_and_no_others_have_changed() {
    let stand_in = StandIn::start(SHARED);
    let results = surveyed(&stand_in.target(), &plan(&[300, 600]));
    let windows: Vec<&Measured> = results.iter().filter(|one| one.name == DIRTIED).collect();
    let [first, second] = &windows[..] else { panic!("{windows:?}") };
    assert!(first.params.window_ns.unwrap() >= 200_000_000 && first.params.window_ns < second.params.window_ns);
    for window in windows {
        // A byte whose cycle the window is a multiple of is what it was, and others are not.
        let changed = window.counters["changed"] as usize;
        assert!((1..=HOT).contains(&changed), "{window:?}");
        assert_eq!(window.counters["sampled"] as usize, DATA);
        // A byte of 4,096: where it is, how long, and what it became.
        assert_eq!(window.counters["xbzrle"] as usize, changed);
        assert_eq!(window.counters["xbzrle_bytes"] as usize, 3 * changed);
    }
}

#[test]
fn one_that_wants_no_more_is_not_kept() {
    let stand_in = StandIn::start(ANONYMOUS);
    let stop = AtomicBool::new(true);
    assert!(survey(&stand_in.target(), &plan(&[]), &mut |_| {}, &stop).is_err());
}
