//! What a request asks for, checked; whatever is wrong with it is said in a sentence.

use crate::error::Refused;
use crate::opened::Opened;
use axum::extract::{FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use base::timeline::{LaneId, Timeline};
use base::{Level, Span};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// The query of a request.
pub(super) struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|error| Refused::wrong(sentence(&error.body_text())))
    }
}

/// The parts of a request's path.
pub(super) struct Named<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(named)| Self(named)).map_err(|error| Refused::wrong(sentence(&error.body_text())))
    }
}

/// Whose record counts, where several levels saw the same.
#[derive(Deserialize)]
pub(super) struct WitnessQuery {
    pub witness: Option<String>,
}

/// The level that is asked for, which must have recorded something.
///
/// # Errors
/// If it has not.
pub(super) fn witness(asked: Option<&str>, opened: &Opened) -> Result<Option<Level>, Refused> {
    let Some(asked) = asked else { return Ok(None) };
    let levels: BTreeSet<Level> = opened.input.parts.iter().map(|part| part.level).collect();
    let known = levels.iter().find(|level| level.to_string() == asked).copied();
    known.map(Some).ok_or_else(|| {
        let known: Vec<String> = levels.iter().map(Level::to_string).collect();
        let known = if known.is_empty() { "no level".to_owned() } else { known.join(", ") };
        Refused::wrong(format!("`witness={asked}` has no trace here; there are traces of {known}"))
    })
}

/// Refuses `witness=` where an answer is the same by whatever record: it is not passed over in silence.
pub(super) async fn by_no_witness(request: Request, next: Next) -> Result<Response, Refused> {
    let mut asked = request.uri().query().unwrap_or_default().split('&');
    if asked.any(|pair| pair.split('=').next() == Some("witness")) {
        let sentence = "`witness=` selects whose record counts in report, tables, sections, compared and metrics; this answer does not \
                        depend on it: leave it out";
        return Err(Refused::wrong(sentence));
    }
    Ok(next.run(request).await)
}

/// What the parser of addresses found wrong, as a sentence for people: `..: missing field `w``, `..: t0: invalid digit ..`.
fn sentence(error: &str) -> String {
    let reason = error.split_once(": ").map_or(error, |(_, reason)| reason);
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    if let Some(name) = reason.strip_prefix("missing field ").and_then(quoted) {
        return format!("`{name}=` is missing in the address");
    }
    let name = match reason.split_once(": ") {
        Some((name, _)) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            Some(name.to_owned())
        }
        _ => quoted(reason),
    };
    match name {
        Some(name) => format!("`{name}` in the address has an invalid value"),
        None => "invalid address; docs/use/serve.md describes the parameters".to_owned(),
    }
}

/// The window `[t0, t1)` on `timeline`; what is not given is where it begins and ends.
///
/// # Errors
/// If the window ends before it begins.
pub(super) fn window(timeline: &impl Timeline, t0: Option<u64>, t1: Option<u64>) -> Result<Span, Refused> {
    let all = timeline.span();
    let window = Span { from_ns: t0.unwrap_or(all.from_ns), to_ns: t1.unwrap_or(all.to_ns) };
    if window.length_ns() == 0 {
        let Span { from_ns, to_ns } = window;
        return Err(Refused::wrong(format!(
            "t0 = {from_ns} must be before t1 = {to_ns}, both in ns since the first event"
        )));
    }
    Ok(window)
}

/// The lane called `lane`.
///
/// # Errors
/// If `timeline` does not have it.
pub(super) fn lane(timeline: &impl Timeline, lane: u32) -> Result<LaneId, Refused> {
    let lanes = timeline.lanes().len();
    if (lane as usize) < lanes {
        return Ok(LaneId(lane));
    }
    let has = match lanes {
        0 => "no lane".to_owned(),
        1 => "only lane 0".to_owned(),
        more => format!("lanes 0 to {}", more - 1),
    };
    Err(Refused::missing(format!("no lane {lane}; this recording has {has}")))
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_the_parsers_words() {
        for (error, said) in [
            ("Failed to deserialize query string: missing field `w`", "`w=` is missing in the address"),
            (
                "Failed to deserialize query string: t0: invalid digit found in string",
                "`t0` in the address has an invalid value",
            ),
            (
                "Invalid URL: Cannot parse `chain` with value `x` to a `usize`",
                "`chain` in the address has an invalid value",
            ),
            ("Invalid URL", "invalid address; docs/use/serve.md describes the parameters"),
        ] {
            assert_eq!(sentence(error), said);
        }
    }
}
