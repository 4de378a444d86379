//! Sums by key, for keys of which a few come up again and again.
//!
//! ```text
//! key --word()--> near[..64] -> row, if its key is the same       nearly always
//!             '-> places, a hash map -> row                       else; near[..] then names that row
//! ```
//! Every exit of a trace finds the sums of its level and reason here, and often those of a register.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A key that one number nearly tells from the others.
pub trait Key: Copy + Eq + Hash {
    /// Different for most keys that occur together.
    fn word(&self) -> u64;
}

/// Rows by key, in the order in which their keys were met.
#[derive(Debug, Clone)]
pub struct Keyed<K, V> {
    rows: Vec<(K, V)>,
    places: FxHashMap<K, u32>,
    /// Row of the key met last among those that share an entry.
    near: [u32; NEAR],
}

/// Entries of `near`, a power of two: several times as many as a guest has exit reasons in use.
const NEAR: usize = 64;

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Self { rows: Vec::new(), places: FxHashMap::default(), near: [0; NEAR] }
    }
}

impl<K: Key, V: Default> Keyed<K, V> {
    /// The row of `key`, made if there is none.
    #[inline]
    pub fn at(&mut self, key: K) -> &mut V {
        let near = near(&key);
        let place = self.near[near] as usize;
        // Looked up twice: returning a borrow from here would hold it below as well.
        if self.rows.get(place).is_some_and(|(known, _)| *known == key) {
            return &mut self.rows[place].1;
        }
        self.seek(key, near)
    }

    /// The same, but where there is no row and `most` rows are there already, `None`.
    #[inline]
    pub fn at_most(&mut self, key: K, most: usize) -> Option<&mut V> {
        let known = self.rows.len() < most || self.places.contains_key(&key);
        known.then(|| self.at(key))
    }

    #[inline(never)]
    fn seek(&mut self, key: K, near: usize) -> &mut V {
        let place = *self.places.entry(key).or_insert_with(|| {
            if self.rows.is_empty() {
                // Room for one: a large host has thousands of vCPUs with a single reason.
                self.rows.reserve_exact(1);
            }
            self.rows.push((key, V::default()));
            (self.rows.len() - 1) as u32
        });
        self.near[near] = place;
        &mut self.rows[place as usize].1
    }

    /// The rows under other keys; those whose keys become equal are joined.
    pub fn rekeyed(self, new: impl Fn(K) -> K, join: impl Fn(&mut V, V)) -> Self {
        // Room for no more: each of thousands of threads has its own, of large rows.
        let mut all = Self { rows: Vec::with_capacity(self.rows.len()), ..Self::default() };
        for (key, value) in self.rows {
            let key = new(key);
            match all.places.get(&key) {
                Some(place) => join(&mut all.rows[*place as usize].1, value),
                None => {
                    all.places.insert(key, all.rows.len() as u32);
                    all.rows.push((key, value));
                }
            }
        }
        all
    }
}

impl<K, V> Keyed<K, V> {
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter().map(|(key, value)| (key, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.rows.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.rows.iter_mut().map(|(_, value)| value)
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.rows.iter().map(|(key, _)| key)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Upper bits of a product spread keys that differ in a few bits (Knuth, The Art of Computer Programming 3, 6.4).
#[inline]
fn near(key: &impl Key) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (key.word().wrapping_mul(GOLDEN) >> (64 - NEAR.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Key for u64 {
        fn word(&self) -> u64 {
            // Half of all keys share their entry with another.
            *self / 2
        }
    }

    #[test]
    fn every_key_has_its_own_row_however_many_share_an_entry() {
        let mut keyed: Keyed<u64, u64> = Keyed::default();
        let keys = (0..1_000).chain(0..1_000).chain((0..1_000).rev());
        keys.for_each(|key| *keyed.at(key) += key + 1);
        assert_eq!(keyed.len(), 1_000);
        assert!(keyed.iter().enumerate().all(|(place, (key, sum))| place as u64 == *key && *sum == 3 * (key + 1)));
        assert_eq!(keyed.at_most(7, 10), Some(&mut 24));
        assert_eq!(keyed.at_most(5_000, 1_000), None);
        let joined = keyed.rekeyed(|key| key % 10, |sum, more| *sum += more);
        assert_eq!((joined.len(), joined.values().sum::<u64>()), (10, 3 * 500_500));
    }
}
