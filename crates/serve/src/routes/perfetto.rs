//! A recording as `export --perfetto` writes it, which the dashboard hands to ui.perfetto.dev.

use super::asked::{Asked, Named, window};
use super::{Answer, Served, at_work};
use crate::error::Refused;
use crate::page::with_type;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use base::recording::Emulator;
use base::{Narrow, Span};
use serde::Deserialize;
use show::perfetto;
use show::picture::Picture;

/// How many slices behind the end of what was written are missing.
const LEFT_OUT: &str = "x-kvmscope-left-out";

/// The window, and the most slices that are wanted of it.
#[derive(Deserialize)]
pub(super) struct Wanted {
    t0: Option<u64>,
    t1: Option<u64>,
    most_slices: Option<u64>,
}

pub(super) async fn perfetto(State(shared): Served, Named(id): Named<String>, Asked(wanted): Asked<Wanted>) -> Answer {
    at_work(move || {
        let opened = shared.open(&id)?;
        let drawn = opened.drawn();
        let window: Span = window(&drawn.timeline, wanted.t0, wanted.t1)?;
        let narrow = Narrow { window: Some(window), ..Narrow::default() };
        let emulated = opened.input.recording.emulated.map(Emulator::name);
        let picture = Picture { drawn, emulated, narrow: &narrow };
        if picture.lanes().is_empty() {
            return Err(Refused::unanswered("no vCPU ran in this recording, so there is nothing to draw"));
        }
        let fit = picture.fit(wanted.most_slices.unwrap_or(perfetto::MOST_SLICES).min(perfetto::MOST_SLICES));
        let mut bytes = Vec::new();
        perfetto::write(&mut bytes, &picture, &fit)
            .map_err(|error| Refused::unanswered(format!("the file could not be written: {error}")))?;
        let mut response = with_type(bytes, "application/octet-stream");
        let name = format!("attachment; filename=\"{id}.pftrace\"");
        if let Ok(name) = HeaderValue::try_from(name) {
            response.headers_mut().insert(CONTENT_DISPOSITION, name);
        }
        response.headers_mut().insert(LEFT_OUT, fit.left_out.into());
        Ok(response)
    })
    .await
}
