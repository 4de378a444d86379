//! The recording that is being made, while it is.

use super::asked::Asked;
use super::{Served, at_work};
use crate::error::Refused;
use crate::folder::Place;
use crate::live;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

/// Which recording; without one, the one that was written last.
#[derive(Deserialize)]
pub(super) struct Wanted {
    recording: Option<String>,
}

pub(super) async fn live(
    State(shared): Served,
    Asked(wanted): Asked<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    // What a browser sends that has lost the connection and comes back.
    let sent = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let watched = shared.watched.clone();
    let (id, root, gauges) = at_work(move || {
        let found = match wanted.recording {
            Some(id) => {
                let Place::Open(recording) = shared.folder.place(&id)? else {
                    return Err(Refused::missing(format!("`{id}` is no directory, so it is not being recorded")));
                };
                Some((id, recording.root))
            }
            None => live::latest(&shared.folder),
        };
        let found = found.and_then(|(id, root)| Some((id, shared.watched.read(&root)?.0, root)));
        found.map(|(id, gauges, root)| (id, root, gauges)).ok_or_else(|| {
            Refused::missing("no samples here; `kvmscope record --live` and `kvmscope lab ovs` with -o DIR/now, in this folder, take some")
        })
    })
    .await?;
    let events = live::events(&id, root, (watched, gauges), sent);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}
