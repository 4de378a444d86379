//! Copies between private memory and memory that somebody else changes at the same time.
//!
//! `memcpy` may read a byte twice or assume that it does not change; these loads and stores happen exactly once each.

/// # Safety
/// `bytes` bytes can be read at `from` and written at `to`, and the two do not overlap. Either may change meanwhile.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    while bytes - done >= 64 {
        // SAFETY: 64 more bytes are inside both, by the condition.
        unsafe { line(to.add(done), from.add(done)) };
        done += 64;
    }
    if done < bytes {
        // SAFETY: what is left of both.
        unsafe { rest(to.add(done), from.add(done), bytes - done) };
    }
}

/// What does not fill a line. It is not inlined: loops that copy lines would have no registers left.
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn rest(to: *mut u8, from: *const u8, bytes: usize) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    while bytes - done >= 16 {
        // SAFETY: 16 more bytes are inside both, by the condition.
        unsafe { quarter(to.add(done), from.add(done)) };
        done += 16;
    }
    while bytes - done >= 8 {
        // SAFETY: 8 more bytes are inside both; no alignment is needed, since a word may be read in parts: what is read is the peer's.
        unsafe {
            let word = from.add(done).cast::<[u8; 8]>().read_volatile();
            to.add(done).cast::<[u8; 8]>().write_volatile(word);
        }
        done += 8;
    }
    while done < bytes {
        // SAFETY: one more byte is inside both.
        unsafe { to.add(done).write_volatile(from.add(done).read_volatile()) };
        done += 1;
    }
}

/// # Safety
/// As [`copy`], of 64 bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn line(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise; SSE is part of x86-64, and the four registers are named as overwritten.
    unsafe {
        std::arch::asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movups [{to}], {a}",
            "movups [{to} + 16], {b}",
            "movups [{to} + 32], {c}",
            "movups [{to} + 48], {d}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// As [`copy`], of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn quarter(to: *mut u8, from: *const u8) {
    // SAFETY: as in `line`.
    unsafe {
        std::arch::asm!(
            "movups {a}, [{from}]",
            "movups [{to}], {a}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_no_byte_beside_it() {
        let from: Vec<u8> = (0..300).map(|i| (i * 7 + 1) as u8).collect();
        for bytes in 0..=200 {
            for begin in 0..9 {
                let mut to = vec![0u8; 300];
                // SAFETY: both vectors have 300 bytes.
                unsafe { copy(to.as_mut_ptr().add(begin), from.as_ptr().add(3), bytes) };
                assert_eq!(to[begin..begin + bytes], from[3..3 + bytes], "{bytes} bytes at {begin}");
                assert!(to[..begin].iter().chain(&to[begin + bytes..]).all(|&byte| byte == 0));
            }
        }
    }
}
