//! What a request asks for, checked; whatever is wrong with it is said in a sentence.

use crate::error::Refused;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use base::Span;
use base::timeline::{LaneId, Timeline};
use serde::de::DeserializeOwned;

/// The query of a request.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|error| Refused::wrong(error.body_text()))
    }
}

/// The parts of a request's path.
pub struct Named<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(named)| Self(named)).map_err(|error| Refused::wrong(error.body_text()))
    }
}

/// The window `[t0, t1)` on `timeline`; what is not given is where it begins and ends.
///
/// # Errors
/// If the window ends before it begins.
pub fn window(timeline: &impl Timeline, t0: Option<u64>, t1: Option<u64>) -> Result<Span, Refused> {
    let all = timeline.span();
    let window = Span { from_ns: t0.unwrap_or(all.from_ns), to_ns: t1.unwrap_or(all.to_ns) };
    if window.length_ns() == 0 {
        let Span { from_ns, to_ns } = window;
        return Err(Refused::wrong(format!(
            "t0 = {from_ns} must lie before t1 = {to_ns}, both in ns since the first event"
        )));
    }
    Ok(window)
}

/// The lane called `lane`.
///
/// # Errors
/// If `timeline` does not have it.
pub fn lane(timeline: &impl Timeline, lane: u32) -> Result<LaneId, Refused> {
    let lanes = timeline.lanes().len();
    if (lane as usize) < lanes {
        return Ok(LaneId(lane));
    }
    let has = match lanes {
        0 => "no lane".to_owned(),
        1 => "lane 0 alone".to_owned(),
        more => format!("lanes 0 to {}", more - 1),
    };
    Err(Refused::missing(format!("there is no lane {lane}; this recording has {has}")))
}
