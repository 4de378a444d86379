//! Vectors: as many as fit into registers are combined, and tested once.
//!
//! The processor's own prefetchers stop at the end of a page, because they do not know where the next one lies. `AHEAD` asks for the block
//! that lies a page further: where it was measured (Sapphire Rapids) that took 2 to 5 % of the rate, so that it is a way of its own.

use super::{PAGE_BYTES, plain};
use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_prefetch,
    _mm_setzero_si128, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256, _mm256_testz_si256,
};

/// Bytes that are tested together.
const BLOCK_BYTES: usize = 256;
/// The least of memory that a prefetch brings.
const LINE_BYTES: usize = 64;

/// Asks for the block that lies a page behind `block`. What is not there is not brought (Intel SDM vol. 2B, PREFETCHh).
#[inline(always)]
fn prefetch(block: *const u8) {
    for line in (0..BLOCK_BYTES).step_by(LINE_BYTES) {
        // SAFETY: SSE is part of x86-64; a prefetch neither faults nor changes anything, wherever it points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(PAGE_BYTES + line).cast()) };
    }
}

/// Blocks of eight vectors of 128 bits.
pub(super) fn by_sse2(memory: &[u8]) -> bool {
    let mut blocks = memory.chunks_exact(BLOCK_BYTES / 2);
    for block in &mut blocks {
        let at = block.as_ptr();
        // SAFETY: SSE2 is part of x86-64; the eight vectors lie in the block, and need not be aligned.
        let is_zero = unsafe {
            let load = |vector: usize| _mm_loadu_si128(at.cast::<__m128i>().add(vector));
            let pair = |first: usize| _mm_or_si128(load(first), load(first + 1));
            let all = _mm_or_si128(_mm_or_si128(pair(0), pair(2)), _mm_or_si128(pair(4), pair(6)));
            _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())) == 0xffff
        };
        if !is_zero {
            return false;
        }
    }
    plain::by_words(blocks.remainder())
}

/// Blocks of eight vectors of 256 bits.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn by_avx2<const AHEAD: bool>(memory: &[u8]) -> bool {
    let mut blocks = memory.chunks_exact(BLOCK_BYTES);
    for block in &mut blocks {
        let at = block.as_ptr();
        if AHEAD {
            prefetch(at);
        }
        // SAFETY: the eight vectors lie in the block, and need not be aligned.
        let load = |vector: usize| unsafe { _mm256_loadu_si256(at.cast::<__m256i>().add(vector)) };
        let pair = |first: usize| _mm256_or_si256(load(first), load(first + 1));
        let all = _mm256_or_si256(_mm256_or_si256(pair(0), pair(2)), _mm256_or_si256(pair(4), pair(6)));
        if _mm256_testz_si256(all, all) == 0 {
            return false;
        }
    }
    plain::by_words(blocks.remainder())
}

/// Blocks of four vectors of 512 bits, in assembly: Rust has had these vectors since 1.89, which is newer than what this is built with.
///
/// # Safety
/// The processor must have AVX-512F.
pub(super) unsafe fn by_avx512(memory: &[u8]) -> bool {
    let blocks = memory.len() / BLOCK_BYTES;
    let rest = &memory[blocks * BLOCK_BYTES..];
    if blocks > 0 {
        let left: usize;
        // SAFETY: reads so many blocks from the begin of the memory, which has them; all registers that change are named, with them those
        // whose upper parts VZEROUPPER clears.
        unsafe {
            std::arch::asm!(
                "2:",
                "vmovdqu64 zmm0, [{at}]",
                "vmovdqu64 zmm1, [{at} + 128]",
                "vporq zmm0, zmm0, [{at} + 64]",
                "vporq zmm1, zmm1, [{at} + 192]",
                "vporq zmm0, zmm0, zmm1",
                "vptestmq k1, zmm0, zmm0",
                "kortestw k1, k1",
                "jnz 3f",
                "add {at}, {block}",
                "dec {left}",
                "jnz 2b",
                "3:",
                "vzeroupper",
                at = inout(reg) memory.as_ptr() => _,
                left = inout(reg) blocks => left,
                block = const BLOCK_BYTES,
                out("xmm0") _,
                out("xmm1") _,
                out("xmm2") _,
                out("xmm3") _,
                out("xmm4") _,
                out("xmm5") _,
                out("xmm6") _,
                out("xmm7") _,
                out("xmm8") _,
                out("xmm9") _,
                out("xmm10") _,
                out("xmm11") _,
                out("xmm12") _,
                out("xmm13") _,
                out("xmm14") _,
                out("xmm15") _,
                out("k1") _,
                options(nostack, readonly),
            );
        }
        if left > 0 {
            return false;
        }
    }
    plain::by_words(rest)
}

/// Combines all blocks and tests none; 1 if a bit is set.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn read_avx2(memory: &[u8]) -> u64 {
    let mut sums = [_mm256_setzero_si256(); 4];
    for block in memory.chunks_exact(BLOCK_BYTES) {
        let at = block.as_ptr();
        for vector in 0..8 {
            // SAFETY: the eight vectors lie in the block, and need not be aligned.
            let loaded = unsafe { _mm256_loadu_si256(at.cast::<__m256i>().add(vector)) };
            sums[vector % 4] = _mm256_or_si256(sums[vector % 4], loaded);
        }
    }
    let all = _mm256_or_si256(_mm256_or_si256(sums[0], sums[1]), _mm256_or_si256(sums[2], sums[3]));
    u64::from(_mm256_testz_si256(all, all) == 0)
}

/// The same where there are no wider vectors.
pub(super) fn read_sse2(memory: &[u8]) -> u64 {
    // SAFETY: SSE2 is part of x86-64.
    let mut sums = unsafe { [_mm_setzero_si128(); 4] };
    for block in memory.chunks_exact(BLOCK_BYTES) {
        let at = block.as_ptr();
        for vector in 0..16 {
            // SAFETY: as above; the sixteen vectors lie in the block, and need not be aligned.
            sums[vector % 4] =
                unsafe { _mm_or_si128(sums[vector % 4], _mm_loadu_si128(at.cast::<__m128i>().add(vector))) };
        }
    }
    // SAFETY: as above.
    let mask = unsafe {
        let all = _mm_or_si128(_mm_or_si128(sums[0], sums[1]), _mm_or_si128(sums[2], sums[3]));
        _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128()))
    };
    u64::from(mask != 0xffff)
}
