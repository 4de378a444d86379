//! A guest of a guest on the outermost time line.
//!
//! ```text
//! time of L2 --map of its CPU--> time of L1 --map of L1's CPU on which it ran--> time of L0
//! ```
//! Errors add in the worst case: e02(t) <= e01(f12(t)) + a01 e12(t), a01 being the slope of the lower map. So does this:
//! it carries both ends of the upper interval through the lower map. Where both maps are offsets of KVM, L0's KVM has made
//! one offset and one ratio of them for the processor, and rounded: then that is what the counter did, exactly.
//! ```text
//! ratio02 = ratio01 x ratio12 >> frac_bits      offset02 = (offset01 x ratio12 >> frac_bits) + offset12
//! ```
//! Source: `kvm_calc_nested_tsc_multiplier` and `kvm_calc_nested_tsc_offset` in arch/x86/kvm/x86.c, Linux 6.12.

use super::place::Placed;
use super::{Alignment, Map};

/// The time below `lower` of a guest's time `at`, which `upper` places on `lower`'s own guest clock. `cpu` is the CPU of
/// `upper`'s guest.
pub fn compose(lower: &Alignment, upper: &Alignment, cpu: u32, at: u64) -> Option<Placed> {
    let own = upper.cpus.iter().find(|own| own.cpu == cpu)?;
    let own_map = own.map.as_ref()?;
    let middle = own_map.place(at)?;
    let windows = &own.vcpu.windows;
    // On which CPU of the middle machine did it run? The window that holds it ended there.
    let window = windows.get(windows.partition_point(|window| window.to < middle.value)).or(windows.last())?;
    let map = lower.cpus.iter().find(|below| below.cpu == window.cpu)?.map.as_ref()?;
    exact(map, own_map, at, &middle).or_else(|| joined(map, &middle))
}

/// What the processor was given for both levels together, where both are offsets.
fn exact(lower: &Map, upper: &Map, at: u64, middle: &Placed) -> Option<Placed> {
    let (Map::Offsets(lower, rounding), Map::Offsets(upper, own_rounding)) = (lower, upper) else { return None };
    let (scaling01, scaling12) = (lower.scaling, upper.scaling);
    let scaling = scaling01.under(scaling12)?;
    let offset = scaling12.of_offset(lower.offset_at(middle.value)).wrapping_add(upper.offset_at(at));
    let (low, high) = scaling.below(at, offset);
    let rounding = rounding + (*own_rounding as f64 / scaling01.ratio()).ceil() as u64;
    Some(Placed::between(low.saturating_sub(rounding), high.saturating_add(rounding)))
}

/// Carries an interval through a map.
pub fn joined(map: &Map, middle: &Placed) -> Option<Placed> {
    let (low, value, high) = (map.place(middle.low)?, map.place(middle.value)?, map.place(middle.high)?);
    Some(Placed { value: value.value, low: low.low.min(value.low), high: high.high.max(value.high) })
}
