//! A vector whose memory is used again without being written twice.
//!
//! ```text
//! slots  [ 7 | 3 | 9 | 4 | 0 | 0 | 0 ]   made once, kept when the column is emptied
//!          '--- len ---'   '- room -'    filled in place, then `advance`
//! ```
//! Whoever fills it in a loop asks for room once and then stores into a slice, which the compiler keeps in registers;
//! `Vec::push` would look at the vector's three words in memory for every element.

use std::ops::{Deref, DerefMut};

/// Elements of one kind; a slice of them.
#[derive(Debug, Clone, Default)]
pub struct Column<T> {
    slots: Vec<T>,
    len: usize,
}

impl<T: Copy + Default> Column<T> {
    /// Adds an element.
    #[inline]
    pub fn push(&mut self, element: T) {
        if self.len == self.slots.len() {
            self.grow(1);
        }
        self.slots[self.len] = element;
        self.len += 1;
    }

    /// The next `most` slots. What was stored into the first of them counts after [`Column::advance`].
    #[inline]
    pub fn room(&mut self, most: usize) -> &mut [T] {
        if self.slots.len() - self.len < most {
            self.grow(most);
        }
        &mut self.slots[self.len..self.len + most]
    }

    /// Counts the next `filled` slots as elements; not more than there are.
    #[inline]
    pub fn advance(&mut self, filled: usize) {
        self.len = (self.len + filled).min(self.slots.len());
    }

    /// Forgets all elements but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Forgets all elements and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let wanted = (self.len + more).max(2 * self.slots.len());
        self.slots.resize(wanted, T::default());
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.slots[..self.len]
    }
}

impl<T> DerefMut for Column<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.slots[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_pushed_and_those_filled_and_nothing_of_an_earlier_use() {
        let mut column = Column::default();
        column.push(1);
        column.room(3)[..2].copy_from_slice(&[2, 3]);
        column.advance(2);
        column.push(4);
        assert_eq!(*column, [1, 2, 3, 4]);
        column.truncate(3);
        column.push(5);
        assert_eq!(*column, [1, 2, 3, 5]);
        column.clear();
        column.room(2);
        assert!(column.is_empty(), "room alone is no element");
        column.advance(usize::MAX - 1);
        assert!(column.len() >= 2, "never more than there are");
    }
}
