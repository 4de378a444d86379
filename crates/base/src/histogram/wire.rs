//! A distribution as bytes: HdrHistogram's V2 form, which its libraries in other languages read.
//!
//! ```text
//! cookie  bytes  offset  digits  lowest  highest  ratio      u32 u32 u32 u32 u64 u64 f64, big-endian
//! counts  in the order of the counters, each zigzag and LEB128; n counters that are 0 are the one number -n
//! ```
//! In: a distribution, or such bytes with the exact sum and maximum, which the form does not carry. Out: the other one. Merging the
//! decoded parts gives the counters of the whole, so every percentile of a merge is that of all samples.
//! Source: `V2Serializer` and `V2Deserializer` of the hdrhistogram crate 7.6, with which the tests compare.

use super::{DIGITS, Histogram, largest, number};

/// V2 without compression; 0x10 is the size of a count, which V2 does not use.
const COOKIE: u32 = 0x1c84_9303 | 0x10;
/// Bytes before the counts.
const HEADER: usize = 40;
/// Decimal digits that the layout keeps.
const SIGNIFICANT: u32 = 3;
/// The number of the largest counter there is, that of `u64::MAX`.
const MOST: usize = ((65 - DIGITS as usize) << DIGITS) - 1;

/// Why bytes are no distribution.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    /// They begin otherwise.
    #[error("{0} bytes are no histogram in HdrHistogram's V2 form with three significant digits")]
    Unknown(usize),
    /// They end early, or hold a count that cannot be.
    #[error("the counts of a histogram are damaged at byte {0}")]
    Damaged(usize),
}

impl Histogram {
    /// The counters in HdrHistogram's V2 form.
    pub fn wire(&self) -> Vec<u8> {
        let mut counts = Vec::new();
        let counters = self.counted();
        let mut next = 0;
        for (first, stride) in counters.strides() {
            for (at, count) in (first..).zip(stride).filter(|(_, count)| **count > 0) {
                if at > next {
                    put(&mut counts, -((at - next) as i64));
                }
                put(&mut counts, i64::from(*count));
                next = at + 1;
            }
        }
        // The least that a histogram of the library can be made for is two.
        let highest = self.max.max(2);
        let mut bytes = Vec::with_capacity(HEADER + counts.len());
        for word in [COOKIE, counts.len() as u32, 0, SIGNIFICANT] {
            bytes.extend(word.to_be_bytes());
        }
        for word in [1, highest, 1.0_f64.to_bits()] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(counts);
        bytes
    }

    /// The distribution of these bytes, whose samples have this sum and this maximum.
    ///
    /// # Errors
    /// If they are damaged, or of another form or precision.
    pub fn of_wire(bytes: &[u8], sum: u64, max: u64) -> Result<Self, WireError> {
        let word =
            |at: usize| bytes.get(at..at + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap_or_default()));
        let unknown = || WireError::Unknown(bytes.len());
        let (Some(COOKIE), Some(length), Some(0), Some(SIGNIFICANT)) = (word(0), word(4), word(8), word(12)) else {
            return Err(unknown());
        };
        let is_whole = bytes.get(16..24) == Some(&1_u64.to_be_bytes()) && bytes.len() == HEADER + length as usize;
        if !is_whole {
            return Err(unknown());
        }
        let mut histogram = Self { sum: u128::from(sum), max, ..Self::default() };
        let (mut at, mut counter) = (HEADER, 0_usize);
        while at < bytes.len() {
            let damaged = || WireError::Damaged(at);
            let (count, read) = get(&bytes[at..]).ok_or_else(damaged)?;
            let size = count.unsigned_abs();
            if count > 0 {
                if counter > MOST {
                    return Err(damaged());
                }
                histogram.counters.add(number(largest(counter)), u32::try_from(size).unwrap_or(u32::MAX));
                histogram.count = histogram.count.saturating_add(size);
                counter += 1;
            } else {
                let zeros = usize::try_from(size.max(1)).map_err(|_| damaged())?;
                counter = counter.saturating_add(zeros);
            }
            at += read;
        }
        Ok(histogram)
    }
}

/// Zigzag, then seven bits a byte, the lowest first; a ninth byte has all eight.
fn put(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// The inverse, and how many bytes it read.
fn get(bytes: &[u8]) -> Option<(i64, usize)> {
    let (mut value, mut read) = (0_u64, 0);
    loop {
        let byte = *bytes.get(read)?;
        let is_ninth = read == 8;
        value |= u64::from(if is_ninth { byte } else { byte & 0x7f }) << (7 * read);
        read += 1;
        if is_ninth || byte & 0x80 == 0 {
            return Some(((value >> 1) as i64 ^ -((value & 1) as i64), read));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

    fn samples() -> Vec<u64> {
        (1..4_000_u64).map(|n| (n * n * 7_919) % (1 << (n % 40))).chain([0, 1, 2047, 2048, 1 << 62]).collect()
    }

    fn ours(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn the_library_reads_what_we_write_and_we_read_what_it_writes() {
        let values = samples();
        let histogram = ours(&values);
        let mut theirs = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        theirs.auto(true);
        values.iter().for_each(|value| theirs.record(*value).unwrap());
        let read: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut &histogram.wire()[..]).unwrap();
        assert_eq!((read.len(), read.max()), (theirs.len(), theirs.max()));
        let mut written = Vec::new();
        V2Serializer::new().serialize(&theirs, &mut written).unwrap();
        let back = Histogram::of_wire(&written, histogram.sum(), histogram.max()).unwrap();
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert_eq!(read.value_at_quantile(q), theirs.value_at_quantile(q));
            assert_eq!(back.quantile(q), histogram.quantile(q), "{q}");
        }
        assert_eq!((back.count(), back.buckets()), (histogram.count(), histogram.buckets()));
    }

    #[test]
    fn parts_that_were_bytes_merge_to_the_whole() {
        let values = samples();
        let whole = ours(&values);
        let mut merged = Histogram::new();
        for part in values.chunks(700).map(ours) {
            merged.merge(&Histogram::of_wire(&part.wire(), part.sum(), part.max()).unwrap());
        }
        assert_eq!((merged.buckets(), merged.sum(), merged.max()), (whole.buckets(), whole.sum(), whole.max()));
        assert_eq!(merged.wire(), whole.wire());
        let empty = Histogram::new();
        assert_eq!(Histogram::of_wire(&empty.wire(), 0, 0).unwrap().count(), 0);
        let largest = ours(&[u64::MAX]);
        assert_eq!(Histogram::of_wire(&largest.wire(), u64::MAX, u64::MAX).unwrap().quantile(0.5), Some(u64::MAX));
    }

    #[test]
    fn damage_is_refused() {
        let bytes = ours(&samples()).wire();
        assert_eq!(Histogram::of_wire(&bytes[..20], 0, 0).unwrap_err(), WireError::Unknown(20));
        assert!(Histogram::of_wire(&bytes[..bytes.len() - 1], 0, 0).is_err());
        let mut endless = bytes.clone();
        let end = endless.len();
        endless[end - 1] |= 0x80;
        assert!(matches!(Histogram::of_wire(&endless, 0, 0), Err(WireError::Damaged(_))));
        let mut other = bytes;
        other[3] ^= 1;
        assert!(matches!(Histogram::of_wire(&other, 0, 0), Err(WireError::Unknown(_))));
    }
}
