//! Very many stretches of time in order, in 4 bytes each where gap and length are below 65 us, as those of a busy guest's exits are.
//!
//! ```text
//! stretches      ####        ######          ##
//! kept       [gap|length] [gap  |length] [gap|length]         a number: one word of 16 bits, or LONG and two
//! ```

use base::Span;

/// Stretches as gap and length of 32 bits; what does not fit into them takes several.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    /// Where the first gap begins.
    from_ns: u64,
    /// Where the last stretch ends.
    to_ns: u64,
    words: Vec<u16>,
    count: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub total_ns: u64,
    pub longest_ns: u64,
    pub(crate) first_long_ns: Option<u64>,
}

const MOST: u64 = u32::MAX as u64;

/// The number takes the two words behind this one, the lower first.
const LONG: u16 = u16::MAX;

impl Packed {
    /// None yet, from `from_ns` on.
    pub(super) fn from(from_ns: u64) -> Self {
        Self { from_ns, to_ns: from_ns, ..Self::default() }
    }

    /// The next one; what overlaps the one before is left out of it.
    #[inline(always)]
    pub(super) fn push(&mut self, span: Span) {
        self.count += 1;
        let (gap_ns, length_ns) = (span.from_ns.wrapping_sub(self.to_ns), span.to_ns.wrapping_sub(span.from_ns));
        if gap_ns < u64::from(LONG) && length_ns.wrapping_sub(1) < u64::from(LONG) - 1 {
            self.to_ns = span.to_ns;
            self.words.extend_from_slice(&[gap_ns as u16, length_ns as u16]);
        } else {
            self.push_odd(span);
        }
    }

    fn put(&mut self, number: u32) {
        match u16::try_from(number) {
            Ok(word) if word != LONG => self.words.push(word),
            _ => self.words.extend_from_slice(&[LONG, number as u16, (number >> 16) as u16]),
        }
    }

    /// Gap and length of each.
    fn pairs(&self) -> impl Iterator<Item = [u32; 2]> {
        let mut words = self.words.iter().copied();
        let mut number = move || match words.next()? {
            LONG => Some(u32::from(words.next()?) | u32::from(words.next()?) << 16),
            word => Some(u32::from(word)),
        };
        std::iter::from_fn(move || Some([number()?, number()?]))
    }

    /// One that overlaps, is empty or long.
    #[inline(never)]
    fn push_odd(&mut self, span: Span) {
        let from_ns = span.from_ns.max(self.to_ns);
        let (mut gap_ns, mut length_ns) = (from_ns - self.to_ns, span.to_ns.saturating_sub(from_ns));
        if length_ns == 0 {
            return;
        }
        self.to_ns = span.to_ns;
        while gap_ns > MOST {
            self.put(u32::MAX);
            self.put(0);
            gap_ns -= MOST;
        }
        while length_ns > 0 {
            let length = length_ns.min(MOST);
            self.put(gap_ns as u32);
            self.put(length as u32);
            (gap_ns, length_ns) = (0, length_ns - length);
        }
    }

    /// The same, counted from `origin_ns` on.
    pub(super) fn since(self, origin_ns: u64) -> Self {
        let since = |at_ns: u64| at_ns.saturating_sub(origin_ns);
        Self { from_ns: since(self.from_ns), to_ns: since(self.to_ns), ..self }
    }

    /// How long all are together and the longest is, and where the first one begins that takes `enough_ns`; those that touch
    /// are one.
    pub(super) fn sums(&self, enough_ns: u64) -> Sums {
        let mut sums = Sums::default();
        let mut whole = Span { from_ns: self.from_ns, to_ns: self.from_ns };
        for [gap, length] in self.pairs() {
            if gap > 0 {
                whole.from_ns = whole.to_ns + u64::from(gap);
                whole.to_ns = whole.from_ns;
            }
            whole.to_ns += u64::from(length);
            sums.total_ns += u64::from(length);
            sums.longest_ns = sums.longest_ns.max(whole.length_ns());
            if sums.first_long_ns.is_none() && whole.length_ns() >= enough_ns {
                sums.first_long_ns = Some(whole.from_ns);
            }
        }
        sums
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// All in order; long ones in pieces that touch.
    pub(super) fn iter(&self) -> impl Iterator<Item = Span> {
        self.pairs().scan(self.from_ns, |at_ns, [gap, length]| {
            let from_ns = *at_ns + u64::from(gap);
            *at_ns = from_ns + u64::from(length);
            Some(Span { from_ns, to_ns: *at_ns })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stretches_come_back_as_they_were_however_long() {
        let spans = [(7, 7 + 3 * MOST), (20 * MOST, 20 * MOST + 1), (20 * MOST + 5, 21 * MOST + 5)];
        let mut packed = Packed::from(5);
        spans.iter().for_each(|(from_ns, to_ns)| packed.push(Span { from_ns: *from_ns, to_ns: *to_ns }));
        packed.push(Span { from_ns: 21 * MOST, to_ns: 21 * MOST + 5 });
        let packed = packed.since(2);
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for Span { from_ns, to_ns } in packed.iter().filter(|span| span.length_ns() > 0) {
            match merged.last_mut().filter(|(_, last_ns)| *last_ns == from_ns) {
                Some((_, last_ns)) => *last_ns = to_ns,
                None => merged.push((from_ns, to_ns)),
            }
        }
        assert_eq!(merged, spans.map(|(from_ns, to_ns)| (from_ns - 2, to_ns - 2)));
        assert_eq!(packed.count(), 4);
    }

    proptest! {
        #[test]
        fn every_number_comes_back_whatever_words_it_takes(
            lengths in prop::collection::vec((edges(), edges()), 0..50),
        ) {
            let (mut packed, mut at_ns, mut spans) = (Packed::from(0), 0, Vec::new());
            for (gap_ns, length_ns) in lengths {
                let from_ns = at_ns + gap_ns;
                at_ns = from_ns + length_ns.max(1);
                spans.push(Span { from_ns, to_ns: at_ns });
                packed.push(Span { from_ns, to_ns: at_ns });
            }
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), spans);
        }
    }

    /// Around the largest number of one word, and of two.
    fn edges() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..9, 65_530u64..65_540, Just(MOST - 1), 0u64..MOST]
    }

    #[test]
    fn busy_guests_take_four_bytes_an_exit() {
        let mut packed = Packed::from(0);
        (0..100).for_each(|exit| packed.push(Span { from_ns: 70_000 * exit + 60_000, to_ns: 70_000 * exit + 70_000 }));
        assert_eq!(packed.words.len(), 200);
    }

    #[test]
    fn sums_are_those_of_stretches_that_touch() {
        let mut packed = Packed::from(100);
        for (from_ns, to_ns) in [(100, 103), (110, 115), (115, 119), (119, 120), (2 * MOST, 2 * MOST + 4), (20, 40)] {
            packed.push(Span { from_ns, to_ns });
        }
        assert_eq!(packed.sums(10), Sums { total_ns: 17, longest_ns: 10, first_long_ns: Some(110) });
        assert_eq!(packed.sums(11), Sums { total_ns: 17, longest_ns: 10, first_long_ns: None });
        let mut long = Packed::from(0);
        long.push(Span { from_ns: 1, to_ns: 2 * MOST });
        assert_eq!(long.sums(MOST + 1).first_long_ns, Some(1), "in pieces");
    }
}
