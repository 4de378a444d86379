//! KVM's own counters as files: `/sys/kernel/debug/kvm/exits:123456` of grep, or `==> .../exits <==` of head, and the next line.
//!
//! They are sums since the module was loaded, of all VMs, or of the one whose folder (`PID-FD`) they are in; of two copies
//! what was added between them.

use super::{Row, count};
use std::collections::BTreeMap;

/// Where they lie.
const ROOT: &str = "/sys/kernel/debug/kvm/";

/// What is a state and no sum: the last value counts.
const STATES: [&str; 7] = [
    "pages_4k",
    "pages_2m",
    "pages_1g",
    "nx_lpage_splits",
    "guest_mode",
    "max_mmu_page_hash_collisions",
    "max_mmu_rmap_size",
];

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    // One copy after the other, and when each was made.
    let mut copies: Vec<Vec<(String, u64)>> = vec![Vec::new()];
    let mut times: Vec<f64> = Vec::new();
    let mut headed: Option<String> = None;
    // What a command waited between them, where nobody printed the time.
    let mut slept: Option<f64> = None;
    for line in text.lines() {
        let line = line.trim();
        let inside = line.split_once(ROOT).map(|(_, inside)| inside);
        let told = match inside {
            Some(inside) => match inside.split_once(':') {
                Some((name, value)) => count(value.trim()).map(|count| (name.to_owned(), count)),
                None => {
                    // A prompt may stand in that folder, with a command behind it.
                    let name = inside.trim_end_matches(" <==").trim();
                    headed = (!name.contains([' ', '#', '$'])).then(|| name.to_owned());
                    None
                }
            },
            None => headed.take().zip(count(line)).or_else(|| bare(line)),
        };
        times.extend(time_of_day(line));
        slept = slept.or_else(|| sleep(line));
        let Some((name, count)) = told else { continue };
        let is_new = copies.last().is_some_and(|copy| copy.first().is_some_and(|(first, _)| *first == name));
        if is_new {
            copies.push(Vec::new());
        }
        copies.last_mut().into_iter().for_each(|copy| copy.push((name.clone(), count)));
    }
    let seconds = match (&times[..], copies.len()) {
        ([first, .., last], 2..) if times.len() == copies.len() => Some((last - first).rem_euclid(86_400.0)),
        ([], 2) => slept,
        _ => None,
    };
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let before: BTreeMap<&str, u64> = match &copies[..] {
        [first, _, ..] => first.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
        _ => BTreeMap::new(),
    };
    let row = |(name, count): &(String, u64)| {
        let is_state = STATES.contains(&name.rsplit('/').next().unwrap_or(name));
        let added = before.get(name.as_str()).filter(|_| !is_state).and_then(|before| count.checked_sub(*before));
        let per_second = added.zip(seconds).map(|(added, seconds)| added as f64 / seconds);
        Row { name: name.clone(), count: added.unwrap_or(*count), per_second, ..Row::default() }
    };
    (copies.last().map_or(Vec::new(), |last| last.iter().map(row).collect()), seconds)
}

/// `halt_exits:23044110` of grep in the folder itself, `vcpu0/exits:812044` in that of a VM.
fn bare(line: &str) -> Option<(String, u64)> {
    let (path, value) = line.split_once(':')?;
    let vcpu = |path: &str| path.strip_prefix("vcpu")?.parse::<u32>().ok();
    let (_, name) = path.split_once('/').filter(|(folder, _)| vcpu(folder).is_some()).unwrap_or(("", path));
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name.then(|| Some((path.to_owned(), value.parse().ok()?)))?
}

/// `10` of `grep . exits; sleep 10; grep . exits`.
fn sleep(line: &str) -> Option<f64> {
    let (_, behind) = line.split_once("sleep ").filter(|(before, _)| before.contains("grep"))?;
    behind.split([';', ' ', '&']).next()?.parse().ok()
}

/// `10:22:01.004118221` of `date +%T.%N`, in seconds.
fn time_of_day(line: &str) -> Option<f64> {
    let parts: Vec<f64> = line.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let fits = (0.0..24.0).contains(&hours) && (0.0..60.0).contains(&minutes) && (0.0..61.0).contains(&seconds);
    fits.then_some(hours * 3_600.0 + minutes * 60.0 + seconds)
}
