//! Is a page of memory zeros, and how fast can one core tell?
//!
//! A plain loop over words, of which compilers make vectors where they know of any: from memory it takes about as long as reading does.
//! A page of zeros has to be read whole, any other one gives itself away in its first block mostly.

/// A page, as QEMU and the kernel count them on x86-64.
pub const PAGE_BYTES: usize = 4096;

/// Bytes that are combined before they are looked at.
const BLOCK_BYTES: usize = 1024;
const WORD_BYTES: usize = 8;

/// Whether all of `memory` is zeros.
pub fn is_zero(memory: &[u8]) -> bool {
    memory.chunks(BLOCK_BYTES).all(|block| read(block) == 0)
}

/// How many pages of `memory` are zeros.
pub fn zero_pages(memory: &[u8]) -> usize {
    memory.chunks(PAGE_BYTES).filter(|page| is_zero(page)).count()
}

/// Reads all of `memory` and does no more with it than combine its words: what a scan is measured against. 0 if no bit is set.
pub fn read(memory: &[u8]) -> u64 {
    let words = memory.chunks_exact(WORD_BYTES);
    let rest = words.remainder().iter().fold(0, |all, byte| all | u64::from(*byte));
    words.filter_map(|word| word.try_into().ok()).fold(rest, |all, word| all | u64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_bit_is_seen_wherever_it_is() {
        let mut page = [0_u8; PAGE_BYTES];
        assert!(is_zero(&page) && is_zero(&[]));
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] = 1 << (bit % 8);
            assert!(!is_zero(&page), "bit {bit} is not seen");
            page[bit / 8] = 0;
        }
    }

    #[test]
    fn any_length_from_any_byte_on_is_looked_at_and_nothing_else() {
        for length in (0..2 * WORD_BYTES).chain(BLOCK_BYTES - 1..BLOCK_BYTES + 2 * WORD_BYTES) {
            for from in 0..WORD_BYTES {
                let mut memory = vec![0xff_u8; from + length + WORD_BYTES];
                memory[from..from + length].fill(0);
                assert!(is_zero(&memory[from..from + length]), "{length} bytes from {from} on");
                if length > 0 {
                    memory[from + length - 1] = 0x80;
                    assert!(!is_zero(&memory[from..from + length]), "{length} bytes from {from} on");
                }
            }
        }
    }

    #[test]
    fn pages_are_counted_and_a_last_one_may_be_short() {
        let mut memory = vec![0_u8; 5 * PAGE_BYTES + 100];
        memory[PAGE_BYTES] = 1;
        memory[5 * PAGE_BYTES + 99] = 1;
        assert_eq!(zero_pages(&memory), 4);
        assert!(read(&memory[..2 * PAGE_BYTES]) != 0 && read(&memory[2 * PAGE_BYTES..5 * PAGE_BYTES]) == 0);
    }
}
