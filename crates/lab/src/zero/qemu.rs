//! How QEMU looks: three bytes first, then vectors of AVX2.
//!
//! Written from the description of `buffer_is_zero` in util/bufferiszero.c, QEMU 9.1 to 10.0: first, middle and last byte; then head and
//! tail unaligned with what does not fill a block, then aligned blocks of eight vectors, compared with zero byte by byte (no PTEST)
//! and without a prefetch. Buffers below 256 bytes are looked at by words.

use super::plain;
use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_setzero_si256,
};

/// Bytes of a vector.
const VECTOR_BYTES: usize = 32;
/// Vectors that are tested together.
const TOGETHER: usize = 8;
/// What is shorter has no whole block besides its head and its tail.
const LEAST_BYTES: usize = TOGETHER * VECTOR_BYTES;

/// Whether all of `memory` is zeros.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn by_avx2(memory: &[u8]) -> bool {
    let length = memory.len();
    let (Some(first), Some(last)) = (memory.first(), memory.last()) else { return true };
    if first | memory[length / 2] | last != 0 {
        return false;
    }
    if length < LEAST_BYTES {
        return plain::by_words(memory);
    }
    let begin = memory.as_ptr();
    // SAFETY: callers below keep `at` at least a vector before the end.
    let load = |at: usize| unsafe { _mm256_loadu_si256(begin.add(at).cast::<__m256i>()) };
    let is_zero = |vector: __m256i| _mm256_movemask_epi8(_mm256_cmpeq_epi8(vector, _mm256_setzero_si256())) == -1;
    let mut all = _mm256_or_si256(load(0), load(length - VECTOR_BYTES));
    // From the first aligned vector to the last one that ends before the last byte; the head and the tail cover the rest.
    let mut at = VECTOR_BYTES - begin.addr() % VECTOR_BYTES;
    let end = length - 1 - (begin.addr() + length - 1) % VECTOR_BYTES;
    for vector in 1..TOGETHER {
        all = _mm256_or_si256(all, load(end - vector * VECTOR_BYTES));
    }
    while at + (TOGETHER - 1) * VECTOR_BYTES < end {
        if !is_zero(all) {
            return false;
        }
        all = load(at);
        for vector in 1..TOGETHER {
            all = _mm256_or_si256(all, load(at + vector * VECTOR_BYTES));
        }
        at += TOGETHER * VECTOR_BYTES;
    }
    is_zero(all)
}
