//! Which address gives what? The list of the API; `docs/use/serve.md` describes it.
//!
//! Handlers here parse and check what was asked, and hand it to the pure half: `base`'s tiles, `chains`, `events`, `metrics`.
//! Everything that opens or computes runs on a thread of its own, so that one large recording does not stop the others.

mod asked;
mod lanes;
mod live;
mod perfetto;
mod recording;
mod timeline;

use crate::brief::Briefs;
use crate::cache::Cache;
use crate::error::Refused;
use crate::folder::Folder;
use crate::guard::{Guard, guard};
use crate::live::Watched;
use crate::metrics;
use crate::opened::{Answered, Opened};
use crate::page::{page, with_type};
use crate::upload;
use asked::{Asked, witness};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use base::Narrow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What all requests share.
pub(crate) struct Shared {
    pub folder: Folder,
    pub cache: Cache,
    /// What lists show of its recordings.
    pub(crate) briefs: Briefs,
    /// What those being made say of themselves.
    pub watched: Arc<Watched>,
    /// The most bytes of an upload; `None` where none is taken.
    pub upload_bytes: Option<u64>,
}

type Served = State<Arc<Shared>>;
type Answer = Result<Response, Refused>;

/// The whole server, without its socket.
pub(crate) fn router(shared: Arc<Shared>, rules: Guard) -> Router {
    let by_witness = Router::new()
        .route("/api/recordings/{id}/report", get(recording::report))
        .route("/api/recordings/{id}/compared/{other}", get(recording::compared))
        .route("/api/recordings/{id}/tables/{section}/{table}", get(recording::table))
        .route("/api/recordings/{id}/sections/{section}", get(recording::section))
        .route("/metrics", get(measures));
    Router::new()
        .route("/api/recordings", get(recording::list))
        .route("/api/recordings/{id}/brief", get(recording::brief))
        .route("/api/recordings/{id}/progress", get(recording::progress))
        .route("/api/recordings/{id}/events", get(recording::events))
        .route("/api/recordings/{id}/timeline", get(timeline::timeline))
        .route("/api/recordings/{id}/tile", get(timeline::tile))
        .route("/api/recordings/{id}/states", get(timeline::states))
        .route("/api/recordings/{id}/slices", get(timeline::slices))
        .route("/api/recordings/{id}/reasons", get(timeline::reasons))
        .route("/api/recordings/{id}/search", get(timeline::search))
        .route("/api/recordings/{id}/chains", get(timeline::chains))
        .route("/api/recordings/{id}/chains/{chain}", get(timeline::chain))
        .route("/api/recordings/{id}/aggregates", get(timeline::aggregates))
        .route("/api/recordings/{id}/perfetto", get(perfetto::perfetto))
        .route("/api/live", get(live::live))
        .route("/api/upload", post(take))
        .route_layer(axum::middleware::from_fn(asked::by_no_witness))
        .merge(by_witness)
        .route("/api/{*rest}", get(no_such))
        .fallback_service(get(page))
        .with_state(shared)
        .layer(axum::middleware::from_fn_with_state(rules, guard))
}

/// Runs `work` where it may take long.
async fn at_work<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refused> + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let sentence = "internal error of the server; please report what it printed on stderr";
        Err(Refused { status: axum::http::StatusCode::INTERNAL_SERVER_ERROR, sentence: sentence.to_owned() })
    })
}

impl Shared {
    /// The recording called `id`, opened.
    fn open(&self, id: &str) -> Result<Arc<Opened>, Refused> {
        self.cache.get(id, self.folder.place(id)?)
    }
}

fn json(answer: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(answer).map_err(|error| Refused::unanswered(error.to_string()))?;
    Ok(with_type(bytes, "application/json"))
}

async fn no_such(uri: Uri) -> Answer {
    Err(Refused::missing(format!("the API has no {}; docs/use/serve.md lists its paths", uri.path())))
}

/// Which recording's numbers are wanted; without one, those of all recordings that were asked for lately.
#[derive(Deserialize)]
struct Measured {
    recording: Option<String>,
    witness: Option<String>,
}

async fn measures(State(shared): Served, Asked(measured): Asked<Measured>) -> Answer {
    at_work(move || {
        let answered: Vec<(String, Arc<Answered>)> = match (measured.recording, measured.witness) {
            (Some(id), by) => {
                let opened = shared.open(&id)?;
                let witness = witness(by.as_deref(), &opened)?;
                let answered = opened.answered(&Narrow { witness, ..Narrow::default() })?;
                vec![(id, answered)]
            }
            (None, Some(_)) => return Err(Refused::wrong("`witness=` is of one recording: name it by recording=")),
            (None, None) => {
                let all = shared.cache.all().into_iter();
                all.filter_map(|(id, opened)| Some((id, opened.answered_before()?))).collect()
            }
        };
        let answered = answered.iter().map(|(id, answered)| (id.as_str(), &answered.sections[..]));
        Ok(with_type(metrics::render(answered).into_bytes(), metrics::MEDIA_TYPE))
    })
    .await
}

#[derive(Deserialize)]
struct Sent {
    name: String,
}

async fn take(State(shared): Served, Asked(sent): Asked<Sent>, headers: HeaderMap, body: Body) -> Answer {
    let Some(most_bytes) = shared.upload_bytes else {
        return Err(Refused::forbidden("uploads are not allowed; start the server with --allow-upload"));
    };
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|bytes| bytes > most_bytes) {
        return Err(upload::too_large(most_bytes));
    }
    let id = upload::keep(shared.folder.root(), &sent.name, body, most_bytes).await?;
    json(&serde_json::json!({ "id": id }))
}
