//! Ways that need nothing of the processor.

/// Words that are looked at together.
const TOGETHER: usize = 8;

/// One byte after the other, as everybody would write it.
pub(super) fn by_bytes(memory: &[u8]) -> bool {
    for byte in memory {
        // The compiler would make vectors of it, which is what the others are for.
        if std::hint::black_box(*byte) != 0 {
            return false;
        }
    }
    true
}

/// Eight words of 64 bits at a time, and what is left byte by byte.
pub(super) fn by_words(memory: &[u8]) -> bool {
    // SAFETY: any bits are a word.
    let (head, words, tail) = unsafe { memory.align_to::<u64>() };
    let mut blocks = words.chunks_exact(TOGETHER);
    blocks.all(|block| block.iter().fold(0, |all, word| all | word) == 0)
        && blocks.remainder().iter().all(|word| *word == 0)
        && head.iter().chain(tail).all(|byte| *byte == 0)
}

/// By the C library, whose `memcmp` has vectors of its own.
pub(super) fn by_memcmp(memory: &[u8]) -> bool {
    match memory {
        [] => true,
        [first, rest @ ..] => *first == 0 && memory[..rest.len()] == *rest,
    }
}
