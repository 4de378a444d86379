//! A guest of a guest on the outermost time line.
//!
//! ```text
//! time of L2 --map of its CPU--> time of L1 --map of L1's CPU on which it ran--> time of L0
//! ```
//! Errors add in the worst case: e02(t) <= e01(f12(t)) + a01 e12(t), a01 being the slope of the lower map. So does this:
//! it carries both ends of the upper interval through the lower map. Where both maps are offsets that KVM wrote, that is
//! exact (kvm_calc_nested_tsc_offset in arch/x86/kvm/x86.c, Linux 6.12, adds them for a ratio of 1).

use super::place::Placed;
use super::{Alignment, Map};

/// The time below `lower` of a guest's time `at`, which `upper` places on `lower`'s own guest clock. `cpu` is the CPU of
/// `upper`'s guest.
pub fn compose(lower: &Alignment, upper: &Alignment, cpu: u32, at: u64) -> Option<Placed> {
    let own = upper.cpus.iter().find(|own| own.cpu == cpu)?;
    let middle = own.map.as_ref()?.place(at)?;
    let windows = &own.vcpu.windows;
    // On which CPU of the middle machine did it run? The window that holds it ended there.
    let window = windows.get(windows.partition_point(|window| window.to < middle.value)).or(windows.last())?;
    let map = lower.cpus.iter().find(|below| below.cpu == window.cpu)?.map.as_ref()?;
    joined(map, &middle)
}

/// Carries an interval through a map.
pub fn joined(map: &Map, middle: &Placed) -> Option<Placed> {
    let (low, value, high) = (map.place(middle.low)?, map.place(middle.value)?, map.place(middle.high)?);
    Some(Placed { value: value.value, low: low.low.min(value.low), high: high.high.max(value.high) })
}
