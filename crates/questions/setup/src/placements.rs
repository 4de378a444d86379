//! Which threads of each machine run where, with the placements that are better: what placement, real time and comparisons share.

use crate::placement::build::build;
use crate::placement::culprits::is_real_time;
pub(crate) use crate::placement::model::Model;
use crate::placement::model::{AskedPolling, Wishes};
use base::Problem;
use facts::Case;
use facts::described::described;
use host::Machine;
use host::machine::Role;
use std::sync::Arc;

/// The machines about which anything was told, and what could not be read of them.
pub type Placements = (Vec<Model>, Vec<Problem>);

/// Those of `case`, searched for once.
pub fn placements(case: &Case) -> Arc<Placements> {
    case.memo(|case| build(&described(case), &wishes(case)))
}

/// What placements are for, as the user states it; a plan that the recording carries asks for polling threads where the user does not.
pub(crate) fn wishes(case: &Case) -> Wishes {
    let mut wishes = case.given().queries.get::<Wishes>().cloned().unwrap_or_default();
    if wishes.polling.is_none()
        && let Some(plan) = &case.input().plan
        && let Some(threads) = plan.value.polling_cpus()
    {
        wishes.polling = Some(AskedPolling { threads, from: format!("{}, a plan of service chains", plan.path) });
    }
    wishes
}

/// Whether an ordinary vCPU may run where one with a real-time policy does: what the limit of these leaves is all that it gets.
pub(crate) fn beside_real_time(machine: &Machine) -> bool {
    let vcpus = || machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let of = |first: bool| {
        vcpus().filter(move |thread| is_real_time(thread) == first).filter_map(|thread| thread.affinity.as_ref())
    };
    of(true).any(|one| of(false).any(|other| one.value.meets(&other.value)))
}
