//! Machine code of ours, which `global_asm!` puts into a section that nobody writes: its bytes, and where its labels are in a guest.

/// Where a label is in this process.
macro_rules! label {
    ($label:ident) => {{
        unsafe extern "C" {
            static $label: u8;
        }
        &raw const $label
    }};
}

/// The bytes from the first label of a block of `global_asm!` to the last one. Both must be of one block, and in this order.
macro_rules! code {
    ($begin:ident .. $end:ident) => {{
        let (begin, end) = ($crate::machine_code::label!($begin), $crate::machine_code::label!($end));
        let bytes = end.addr().checked_sub(begin.addr()).expect("the last label stands behind the first");
        // SAFETY: both labels are of one block, whose bytes nobody writes.
        let code: &'static [u8] = unsafe { std::slice::from_raw_parts(begin, bytes) };
        code
    }};
}

/// Makes a function that gives a label's address in a guest where the code from `$begin` on lies at `$at`.
macro_rules! guest_addresses {
    ($at:ident, $begin:ident; $($(#[$doc:meta])* $name:ident = $label:ident;)*) => {
        $($(#[$doc])* pub(crate) fn $name() -> u64 {
            $at + $crate::machine_code::label!($label) as u64 - $crate::machine_code::label!($begin) as u64
        })*
    };
}

pub(crate) use {code, guest_addresses, label};
