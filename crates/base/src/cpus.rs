//! A set of CPUs: one type for every list and mask that a kernel, libvirt or a person writes.
//!
//! In: `0-3,8` (sysfs, `taskset -c`), `0-7,^2` (libvirt), `ff,00000001` (a mask). Out: the list form that the kernel prints
//! and that `virsh`, `taskset -c` and `smp_affinity_list` take.
//! Sources: cpuset(7), section "List format" and "Mask format"; virsh(1), `vcpupin`.

use std::fmt;

/// CPUs beyond this number are held to be a typing error; Linux 6.12 allows 8,192 (NR_CPUS_RANGE_END).
pub const MOST_CPUS: u32 = 8_192;

/// A longer list or mask is not read: every CPU up to [`MOST_CPUS`] by itself, `0,1,..,8191`, takes less than 40 KiB.
pub(crate) const MOST_TEXT_BYTES: usize = 64 << 10;

/// A set of CPUs.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    /// 64 CPUs a word, without empty words at the end, so that equal sets are equal words.
    words: Vec<u64>,
}

impl CpuSet {
    /// The set of one CPU.
    pub fn one(cpu: u32) -> Self {
        [cpu].into_iter().collect()
    }

    /// Reads a list: numbers, ranges, ranges in groups (`0-31:2/4`), and `^N` or `^N-M` to leave some out again. Snapshots
    /// of some tools end a file with zero bytes, which are no part of the list.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('\0');
        if text.len() > MOST_TEXT_BYTES {
            return None;
        }
        let (mut set, mut without) = (Self::default(), Self::default());
        for item in text.trim().split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (item, into) = match item.strip_prefix('^') {
                Some(item) => (item, &mut without),
                None => (item, &mut set),
            };
            let (range, groups) = item.split_once(':').map_or((item, None), |(range, groups)| (range, Some(groups)));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            let (used, size) = match groups {
                Some(groups) => {
                    let (used, size) = groups.split_once('/')?;
                    (used.parse().ok()?, size.parse().ok().filter(|size| *size > 0)?)
                }
                None => (1, 1),
            };
            if first > last || last >= MOST_CPUS {
                return None;
            }
            if used >= size {
                into.insert_range(first, last);
            } else {
                (first..=last).filter(|cpu| (cpu - first) % size < used).for_each(|cpu| into.insert(cpu));
            }
        }
        Some(set.without(&without))
    }

    /// Reads a mask in hexadecimal, in one word (`0x30000003000`) or in words of 32 bits, the highest first (`ff,00000001`).
    pub fn parse_mask(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('\0').trim();
        let words = text.strip_prefix("0x").unwrap_or(text);
        // All words but the first have their leading zeros, so that the commas only help the eye.
        if words.is_empty() || words.len() > MOST_TEXT_BYTES || words.split(',').skip(1).any(|word| word.len() != 8) {
            return None;
        }
        let mut set = Self::default();
        for (index, digit) in words.chars().rev().filter(|digit| *digit != ',').enumerate() {
            let (digit, first) = (digit.to_digit(16)?, u32::try_from(index).ok()?.checked_mul(4)?);
            for cpu in (0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| first + bit) {
                if cpu >= MOST_CPUS {
                    return None;
                }
                set.insert(cpu);
            }
        }
        Some(set)
    }

    /// The mask as the kernel writes it: words of 32 bits, the highest first, as long as `like` is, which it wrote itself.
    pub fn mask_like(&self, like: &str) -> String {
        let words: Vec<&str> = like.trim().split(',').collect();
        let needed = self.last().map_or(1, |last| last as usize / 32 + 1);
        let count = words.len().max(needed);
        let width = if count == words.len() { words[0].len() } else { 0 };
        let word =
            |index: usize| (0..32).filter(|bit| self.contains(index as u32 * 32 + bit)).map(|bit| 1_u32 << bit).sum();
        let text = (0..count).rev().map(|index| {
            let word: u32 = word(index);
            let digits = if index + 1 == count { width } else { 8 };
            format!("{word:0digits$x}")
        });
        text.collect::<Vec<_>>().join(",")
    }

    /// The mask as one number, as Open vSwitch and DPDK take it: `0xff`.
    pub fn mask(&self) -> String {
        let digits = self.mask_like("").replace(',', "");
        let digits = digits.trim_start_matches('0');
        format!("0x{}", if digits.is_empty() { "0" } else { digits })
    }

    /// Adds a CPU; one beyond [`MOST_CPUS`] is left out.
    pub fn insert(&mut self, cpu: u32) {
        if cpu >= MOST_CPUS {
            return;
        }
        let (word, bit) = (cpu as usize / 64, cpu % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    /// Adds CPUs from `first` to `last`, which is below [`MOST_CPUS`], a word at a time: lists may repeat long ranges.
    fn insert_range(&mut self, first: u32, last: u32) {
        let (from, to) = (first as usize / 64, last as usize / 64);
        if self.words.len() <= to {
            self.words.resize(to + 1, 0);
        }
        for word in from..=to {
            let low = if word == from { u64::MAX << (first % 64) } else { u64::MAX };
            let high = if word == to { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            self.words[word] |= low & high;
        }
    }

    /// Whether a CPU is in it.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Its CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }

    /// How many CPUs it has.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<u32> {
        self.iter().last()
    }

    /// What both have.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.by_words(other, |a, b| a & b)
    }

    /// What either has.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.by_words(other, |a, b| a | b)
    }

    /// What this has and the other has not.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.by_words(other, |a, b| a & !b)
    }

    /// Whether they share a CPU.
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether the other has all of it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    fn by_words(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        let word = |words: &[u64], index: usize| words.get(index).copied().unwrap_or(0);
        let count = self.words.len().max(other.words.len());
        let mut words: Vec<u64> =
            (0..count).map(|index| combine(word(&self.words, index), word(&other.words, index))).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut between = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{between}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            between = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> String {
        CpuSet::parse(text).unwrap().to_string()
    }

    #[test]
    fn lists_are_read_as_kernel_and_libvirt_write_them() {
        assert_eq!(list("0-3,8\n"), "0-3,8");
        assert_eq!(list("0,2,4,6"), "0,2,4,6");
        assert_eq!(list("0-7,^2,^4-5"), "0-1,3,6-7");
        assert_eq!(list("0-15:2/4"), "0-1,4-5,8-9,12-13");
        assert_eq!(list("127,0,64"), "0,64,127");
        assert_eq!(list(""), "");
        for wrong in ["a", "3-1", "1-", "0-99999999", "0-3:1/0", "0-3:1", "0-3\u{0}1"] {
            assert_eq!(CpuSet::parse(wrong), None, "{wrong}");
        }
        assert_eq!(list("0-63,65\n\u{0}\u{0}"), "0-63,65", "zero bytes behind the line");
    }

    #[test]
    fn ranges_are_filled_by_words() {
        for (first, last) in [(0, 0), (0, 63), (63, 64), (5, 130), (64, 127), (8_128, 8_191)] {
            let each: CpuSet = (first..=last).collect();
            assert_eq!(CpuSet::parse(&format!("{first}-{last}")), Some(each), "{first} to {last}");
        }
    }

    #[test]
    fn a_list_longer_than_any_machine_needs_is_none() {
        let every: Vec<String> = (0..MOST_CPUS).map(|cpu| cpu.to_string()).collect();
        assert_eq!(CpuSet::parse(&every.join(",")).unwrap().len(), MOST_CPUS as usize);
        assert_eq!(CpuSet::parse(&"0-8191,".repeat(MOST_TEXT_BYTES)), None);
        assert_eq!(CpuSet::parse_mask(&"0".repeat(MOST_TEXT_BYTES + 1)), None);
    }

    #[test]
    fn masks_have_their_highest_word_first() {
        assert_eq!(CpuSet::parse_mask("00000001,80000003").unwrap().to_string(), "0-1,31-32");
        assert_eq!(CpuSet::parse_mask("0").unwrap().to_string(), "");
        let set = CpuSet::parse("0-1,31-32").unwrap();
        assert_eq!(set.mask_like("000000ff,ffffffff"), "00000001,80000003");
        assert_eq!(set.mask_like("f,ffffffff"), "1,80000003");
        assert_eq!(set.mask_like("ff"), "1,80000003", "longer than what stood there");
        assert_eq!(CpuSet::one(1).mask_like("ffff"), "0002");
        assert_eq!((set.mask(), CpuSet::default().mask()), ("0x180000003".to_owned(), "0x0".to_owned()));
        assert_eq!(CpuSet::parse_mask("0x30000003000").unwrap().to_string(), "12-13,40-41");
        for wrong in ["xyz", "", "1,2", &format!("1{}", "0".repeat(2_048))] {
            assert_eq!(CpuSet::parse_mask(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sets_are_equal_by_what_they_hold() {
        let high = CpuSet::parse("1,200").unwrap();
        assert_eq!(high.without(&CpuSet::one(200)), CpuSet::one(1));
        assert_eq!((high.len(), high.first()), (2, Some(1)));
        assert!(high.meets(&CpuSet::one(200)) && !high.meets(&CpuSet::one(199)));
        assert!(CpuSet::one(1).is_within(&high) && !high.is_within(&CpuSet::one(1)));
    }
}
