//! Which threads of each machine run where, with the placements that are better: what placement, real time and comparisons share.

use crate::placement::build::build;
pub(crate) use crate::placement::model::Model;
use crate::placement::model::{AskedPolling, Wishes};
use base::Problem;
use facts::Case;
use std::sync::Arc;

/// The machines about which anything was told, and what could not be read of them.
pub type Placements = (Vec<Model>, Vec<Problem>);

/// Those of `case`, searched for once.
pub fn placements(case: &Case) -> Arc<Placements> {
    case.memo(|case| build(case.input(), &wishes(case)))
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
