//! Who answers CPUID, by its time? A hint, no proof.
//!
//! ```text
//! core cycles   0 ........ 300 ....... 900 ........... 2,600 ......... 6,000 ............
//!                processor     between      somebody, as at L1    between    as at L2 or deeper
//! ```
//! Bounds: 180 cycles on bare metal and 1,350 at L1 (V. Kuznetsov, FOSDEM 2018), newer Xeons take more; 6,850 to 28,850 at
//! L2 (commit 1201f226c863). A nested guest of kvm_pvm may take what an L1 does, because CPUID goes past its hypervisor.

use crate::model::Seen;
use base::figure::Standing;
use base::number::thousands;
use host::Virtualization;
use host::timing::ADDITIONS;

const BARE: f64 = 300.0;
const SOMEBODY: f64 = 900.0;
const L1: f64 = 2_600.0;
const L2: f64 = 6_000.0;

/// Does somebody below answer CPUID? No row where nobody measured.
pub(super) fn answered_below(facts: &Virtualization) -> Option<Seen> {
    let timing = facts.timing?;
    let cycles = timing.cpuid_core_cycles();
    let (state, like) = match cycles {
        _ if cycles <= BARE => (Standing::Off, "as on bare metal"),
        _ if cycles < SOMEBODY => (Standing::Unknown, "between bare metal and a guest"),
        _ if cycles <= L1 => (Standing::On, "as at L1"),
        _ if cycles < L2 => (Standing::On, "between L1 and L2"),
        _ => (Standing::On, "as at L2 or deeper"),
    };
    let [cpuid, additions] = [timing.cpuid_cycles, timing.additions_cycles].map(thousands);
    Some(Seen::new(state, format!("{like} (a hint): CPUID takes {cpuid} cycles, {ADDITIONS} additions {additions}")))
}
