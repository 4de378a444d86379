//! Frames that tell whether they have arrived as they were sent.
//!
//! ```text
//! word 0   1 .. n-2      n-1            rest
//! number   a pattern     checksum       what does not fill a word
//! ```
//! The checksum makes the exclusive or of all words 0. Of a frame whose first half is one sending's and whose second half another's,
//! it does not.

pub(crate) struct Batch {
    frames: Vec<Vec<u8>>,
    last_word: usize,
    pattern: u64,
}

impl Batch {
    /// So many, of so many bytes: 16 at least.
    pub(crate) fn new(frames: usize, bytes: usize) -> Batch {
        let word = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let frame: Vec<u8> = (0..bytes).map(|at| word(at / 8)[at % 8]).collect();
        let last_word = bytes / 8 - 1;
        let pattern = words(&frame).take(last_word).skip(1).fold(0, |sum, word| sum ^ word);
        Batch { frames: vec![frame; frames], last_word, pattern }
    }

    /// Numbers them from `first` on.
    #[inline]
    pub(crate) fn number(&mut self, first: u64) {
        self.number_by(first..);
    }

    /// Numbers the first ones by these numbers, which ascend; gives how many there were.
    #[inline]
    pub(crate) fn number_by(&mut self, numbers: impl Iterator<Item = u64>) -> usize {
        let checksum_at = 8 * self.last_word;
        let mut numbered = 0;
        for (frame, number) in self.frames.iter_mut().zip(numbers) {
            frame[..8].copy_from_slice(&number.to_le_bytes());
            frame[checksum_at..checksum_at + 8].copy_from_slice(&(self.pattern ^ number).to_le_bytes());
            numbered += 1;
        }
        numbered
    }

    pub(crate) fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }
}

fn words(frame: &[u8]) -> impl Iterator<Item = u64> {
    frame.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

/// The number of a frame; `None` if its checksum is not that of its contents.
#[inline]
pub(crate) fn number_of(frame: &[u8]) -> Option<u64> {
    let sum = words(frame).fold(0, |sum, word| sum ^ word);
    words(frame).next().filter(|_| sum == 0)
}

/// What has arrived until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    next: u64,
    pub frames: u64,
    /// Later than one that was sent after it.
    pub reordered: u64,
    /// The same as the one before it.
    pub duplicated: u64,
    pub torn: u64,
}

impl Arrived {
    #[inline]
    pub(crate) fn take(&mut self, frame: &[u8]) {
        self.take_numbered(number_of(frame));
    }

    /// Takes one more, whose number was looked at.
    #[inline]
    pub(crate) fn take_numbered(&mut self, number: Option<u64>) {
        self.frames += 1;
        match number {
            None => self.torn += 1,
            Some(number) if number >= self.next => self.next = number + 1,
            Some(number) if number + 1 == self.next => self.duplicated += 1,
            Some(_) => self.reordered += 1,
        }
    }

    /// Takes so many without looking at them.
    #[inline]
    pub(crate) fn take_unseen(&mut self, frames: u64) {
        self.frames += frames;
    }

    /// Of so many that were sent, those that never came.
    pub(crate) fn lost(&self, sent: u64) -> u64 {
        (sent + self.duplicated).saturating_sub(self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bytes: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::new(4, bytes);
        batch.number(10);
        batch.frames().to_vec()
    }

    fn arrived(frames: &[&Vec<u8>]) -> Arrived {
        let mut arrived = Arrived { next: 10, ..Arrived::default() };
        frames.iter().for_each(|frame| arrived.take(frame));
        arrived
    }

    #[test]
    fn frames_that_arrive_as_sent_are_all_there() {
        for bytes in [16, 17, 64, 1518] {
            let sent = batch(bytes);
            let arrived = arrived(&sent.iter().collect::<Vec<_>>());
            assert_eq!((arrived.frames, arrived.next, arrived.torn), (4, 14, 0), "{bytes} bytes");
            assert_eq!((arrived.lost(4), arrived.lost(6)), (0, 2));
        }
    }

    #[test]
    fn each_kind_of_damage_is_told_from_the_others() {
        let sent = batch(64);
        let [a, b, c, d] = [&sent[0], &sent[1], &sent[2], &sent[3]];
        let of = |frames: &[&Vec<u8>]| {
            let arrived = arrived(frames);
            (arrived.lost(4), arrived.duplicated, arrived.reordered, arrived.torn)
        };
        assert_eq!(of(&[a, b, d]), (1, 0, 0, 0));
        assert_eq!(of(&[a, b, b, c, d]), (0, 1, 0, 0));
        assert_eq!(of(&[a, c, b, d]), (0, 0, 1, 0));
        let mut torn = b.clone();
        torn[40] ^= 4;
        assert_eq!(of(&[a, &torn, c, d]), (0, 0, 0, 1));
        // Half of one and half of another.
        let mixed = [&b[..32], &c[32..]].concat();
        assert_eq!(of(&[a, &mixed, c, d]), (0, 0, 0, 1));
    }
}
