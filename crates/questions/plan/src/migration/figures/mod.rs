//! The figures of a plan: passes, the working set that decides whether they end, and what is said of the whole.

mod intervals;
mod passes;
mod working_set;

use super::Survey;
use super::predict::{Asked, Prediction};
use base::Figure;
use base::figure::Axis;

/// Those of what is asked: what the model says, and what it says with what earlier runs taught.
pub(super) fn figures(asked: &Asked, model: &Prediction, said: &Prediction, survey: Option<&Survey>) -> Vec<Figure> {
    let others = [working_set::figure(asked, said, survey), intervals::figure(asked, model, said)];
    std::iter::once(passes::figure(asked, said)).chain(others.into_iter().flatten()).collect()
}

pub(super) fn time(title: &str, is_logarithmic: bool) -> Axis {
    Axis { title: title.into(), unit: "ns", is_logarithmic }
}
