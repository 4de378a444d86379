//! Counters by number, of which few are in use.
//!
//! ```text
//! numbers   0 .. 31   32 .. 63   64 .. 95   ...
//! places       1        none        0       the stride of 32 counters that counts them
//! strides   [64 .. 95] [0 .. 31]
//! ```
//! A distribution of durations has tens of thousands of counters, most of which stay 0: so they take no memory, and those
//! in use lie together.

#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    /// For each stride of numbers its place in `strides`, or [`NONE`].
    places: Vec<u16>,
    strides: Vec<[u32; STRIDE]>,
}

/// Counters that are kept together.
pub(crate) const STRIDE: usize = 32;

/// No counter of a stride is in use.
const NONE: u16 = u16::MAX;

impl Counters {
    /// Adds `more` to the counter of `number`, saturating.
    #[inline]
    pub(crate) fn add(&mut self, number: u16, more: u32) {
        let count = &mut self.of_stride(usize::from(number) / STRIDE)[usize::from(number) % STRIDE];
        *count = count.saturating_add(more);
    }

    /// Asks the CPU for the counter of `number`, which will be added to soon.
    #[inline(always)]
    pub(crate) fn fetch(&self, number: u16) {
        #[cfg(target_arch = "x86_64")]
        if let Some(place) = self.places.get(usize::from(number) / STRIDE)
            && let Some(stride) = self.strides.get(usize::from(*place))
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint, which reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(&stride[usize::from(number) % STRIDE]).cast()) }
        }
    }

    /// Adds all of `other`, saturating.
    pub(crate) fn merge(&mut self, other: &Counters) {
        if self.strides.is_empty() {
            *self = other.clone();
            return;
        }
        for (first, counts) in other.strides() {
            for (count, more) in self.of_stride(first / STRIDE).iter_mut().zip(counts) {
                *count = count.saturating_add(*more);
            }
        }
    }

    /// The counters in use, and others of their strides, by the number of the first.
    pub(crate) fn strides(&self) -> impl Iterator<Item = (usize, &[u32; STRIDE])> {
        let known = self.places.iter().enumerate().filter(|(_, place)| **place != NONE);
        known.map(|(stride, place)| (stride * STRIDE, &self.strides[usize::from(*place)]))
    }

    #[inline]
    fn of_stride(&mut self, stride: usize) -> &mut [u32; STRIDE] {
        let place = self.places.get(stride).map_or(NONE, |place| *place);
        if usize::from(place) < self.strides.len() {
            return &mut self.strides[usize::from(place)];
        }
        self.begin(stride)
    }

    #[cold]
    fn begin(&mut self, stride: usize) -> &mut [u32; STRIDE] {
        if stride >= self.places.len() {
            self.places.resize(stride + 1, NONE);
        }
        let place = self.strides.len();
        self.places[stride] = place as u16;
        if place == 0 {
            // Room for one: most distributions are narrow, and each vCPU has one for every reason.
            self.strides.reserve_exact(1);
        }
        self.strides.push([0; STRIDE]);
        &mut self.strides[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_out_ascending_whatever_was_met_first_and_stay_at_their_most() {
        let (mut counters, mut more) = (Counters::default(), Counters::default());
        [70, 5, u16::MAX, 5].into_iter().for_each(|number| counters.add(number, 2));
        more.add(5, u32::MAX);
        more.add(300, 1);
        counters.merge(&more);
        let met = counters.strides().flat_map(|(first, counts)| (first..).zip(*counts)).filter(|(_, count)| *count > 0);
        assert_eq!(met.collect::<Vec<_>>(), [(5, u32::MAX), (70, 2), (300, 1), (usize::from(u16::MAX), 2)]);
        assert_eq!(counters.strides().count(), 4);
    }
}
