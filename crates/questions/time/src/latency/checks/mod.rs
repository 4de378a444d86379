//! What the rules look at: verdicts become evidence, or nothing.

mod broken;
mod late;
mod unsure;

pub(crate) use broken::broken;
pub(in crate::latency) use late::{LATE_NS, LATE_SHARE, late};
pub(crate) use unsure::unsure;

use super::goals::Verdicts;
use base::Evidence;
use facts::budget::Judged;

/// Something seen in the row of a verdict.
fn seen(verdicts: &Verdicts<'_>, judged: &Judged, what: impl Into<String>) -> Evidence {
    let seen = Evidence::in_table(what, "latency.goals").key("goal", verdicts.goal.id.as_str());
    let seen = match &judged.whose.vm {
        Some(vm) => seen.key("vm", vm.as_str()),
        None => seen,
    };
    match judged.whose.vcpu {
        Some(vcpu) => seen.key("vcpu", u64::from(vcpu)),
        None => seen,
    }
}
