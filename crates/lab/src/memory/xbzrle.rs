//! How many bytes does QEMU's XBZRLE make of a page that changed?
//!
//! The difference is runs in turn: how many bytes are the same, how many are not, and those. Lengths are unsigned LEB128. What comes out
//! no shorter than the page is sent whole. Source: docs/xbzrle.txt and `xbzrle_encode_buffer` in migration/xbzrle.c, QEMU 7.2.

/// Bytes of the difference; `None` where the page is sent whole.
pub(super) fn encoded_bytes(old: &[u8], new: &[u8]) -> Option<usize> {
    let length = old.len().min(new.len());
    let is_same = |at: usize| old.get(at) == new.get(at);
    let run = |from: usize, same: bool| (from..length).take_while(|at| is_same(*at) == same).count();
    let (mut at, mut encoded) = (0, 0);
    while at < length {
        let same = run(at, true);
        at += same;
        // What is the same at the end needs not be said.
        if at == length {
            break;
        }
        let changed = run(at, false);
        at += changed;
        encoded += leb128_bytes(same) + leb128_bytes(changed) + changed;
        if encoded >= length {
            return None;
        }
    }
    Some(encoded)
}

fn leb128_bytes(value: usize) -> usize {
    (usize::BITS - value.leading_zeros()).max(1).div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_qemus_documentation_takes_24_bytes() {
        let page = |middle: &[u8]| [vec![0; 1001], middle.to_vec(), vec![0; 3074]].concat();
        let old: Vec<u8> = (0x05..=0x13).chain([0x68, 0, 0, 0x6b, 0, 0x6d]).collect();
        let new: Vec<u8> = (0x01..=0x0f).chain([0x68, 0, 0, 0x67, 0, 0x69]).collect();
        assert_eq!(encoded_bytes(&page(&old), &page(&new)), Some(24));
    }

    #[test]
    fn a_word_takes_few_bytes_and_a_page_that_is_rewritten_is_sent_whole() {
        let old = vec![1_u8; 4096];
        let mut new = old.clone();
        assert_eq!(encoded_bytes(&old, &new), Some(0));
        new[2048] = 9;
        assert_eq!(encoded_bytes(&old, &new), Some(2 + 1 + 1));
        assert_eq!(encoded_bytes(&old, &vec![2; 4096]), None);
        // Every second byte: three bytes for each of them.
        let half: Vec<u8> = (0..4096).map(|at| 1 + (at % 2) as u8).collect();
        assert_eq!(encoded_bytes(&old, &half), None);
        assert_eq!([0, 1, 127, 128, 16_383, 16_384].map(leb128_bytes), [1, 1, 1, 2, 2, 3]);
    }
}
