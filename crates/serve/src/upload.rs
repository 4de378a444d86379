//! A trace or a paste sent by drag and drop, kept in the folder: only where the user allowed it, and not above a size.
//!
//! ```text
//! body --> .NAME.partial --has what is read----> NAME      never over a file that is there
//!             | too long, cut off, nothing known: removed
//! ```

use crate::connections::STUCK;
use crate::error::Refused;
use crate::folder::MOST_TEXT;
use crate::id::{id_of, id_of_run};
use axum::body::Body;
use axum::http::StatusCode;
use base::number::exact_bytes;
use http_body_util::BodyExt;
use intake::Known;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::time::timeout;

/// The file that makes its folder a CTF trace.
const CTF_METADATA: &str = "metadata";

const MOST_LETTERS: usize = 100;

/// A file that is removed unless it was kept.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Gone already where it was kept.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Refuses names that are none of a trace: hidden ones, what a shell's `*` would make an option, and those of files that make their folder a recording.
fn vet(name: &str) -> Result<(), Refused> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > MOST_LETTERS || name.starts_with(['.', '-']) || !name.bytes().all(plain) {
        return Err(Refused::wrong(
            "name the file by letters, digits, `.`, `_` and `-`, a letter or digit first, as in ?name=trace.dat",
        ));
    }
    let lower = name.to_ascii_lowercase();
    let ends = [".json", ".new", ".partial", ".tmp"];
    if lower == CTF_METADATA || ends.iter().any(|end| lower.ends_with(end)) {
        return Err(Refused::wrong(format!(
            "{name} cannot be the name of a trace; send it with another name, such as trace.dat"
        )));
    }
    Ok(())
}

/// Writes `body` as `name` into `folder`, and says by which id it is opened: a text of several runs by that of the first.
///
/// # Errors
/// If the name is none, or is taken; if the body is longer than `most_bytes`, breaks off, or is nothing that is read.
pub(crate) async fn keep(folder: &Path, name: &str, mut body: Body, most_bytes: u64) -> Result<String, Refused> {
    vet(name)?;
    let refused = |error: std::io::Error| Refused {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        sentence: format!("{name} cannot be written: {error}"),
    };
    let taken = || Refused {
        status: StatusCode::CONFLICT,
        sentence: format!("{name} already exists or is being uploaded; send it with another name"),
    };
    let place = folder.join(name);
    if place.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let path = folder.join(format!(".{name}.partial"));
    let file = File::create_new(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(),
        _ => refused(error),
    })?;
    let mut partial = Partial { path, file };
    let mut bytes = 0;
    let stuck = || Refused::wrong(format!("{name}: no data arrived for {} s", STUCK.as_secs()));
    while let Some(frame) = timeout(STUCK, body.frame()).await.map_err(|_| stuck())? {
        let frame = frame.map_err(|_| Refused::wrong(format!("{name} was truncated after {}", exact_bytes(bytes))))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len() as u64;
        if bytes > most_bytes {
            return Err(too_large(most_bytes));
        }
        partial.file.write_all(&data).map_err(refused)?;
    }
    let is_packed = name.ends_with(&format!(".{}", archive::EXTENSION));
    if is_packed {
        let partial = partial.path.clone();
        let listed = tokio::task::spawn_blocking(move || archive::manifest(&partial)?.recording()).await;
        let reason = match listed {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            return Err(Refused::unanswered(format!("{name} is not a packed recording: {reason}")));
        }
    }
    let known = match is_packed || trace::looks_like_trace(&partial.path) && bytes > MOST_TEXT {
        true => Known::Whole,
        false => {
            let partial = partial.path.clone();
            let known = tokio::task::spawn_blocking(move || intake::known(&partial)).await;
            known.map_err(std::io::Error::other).and_then(|known| known).map_err(refused)?
        }
    };
    let id = match known {
        Known::Nothing => {
            return Err(Refused::unanswered(format!(
                "{name} {}; pack a directory (CTF, a recording) first: kvmscope pack",
                intake::nothing_known()
            )));
        }
        Known::Runs(count) if count > 1 => id_of_run(Path::new(name), 1),
        Known::Runs(_) | Known::Whole => id_of(Path::new(name)),
    };
    // A second name and not a rename, which would replace what came meanwhile; the first goes with `partial`.
    std::fs::hard_link(&partial.path, &place).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(),
        _ => refused(error),
    })?;
    Ok(id)
}

/// Said of a body that is longer than allowed.
pub(crate) fn too_large(most_bytes: u64) -> Refused {
    Refused {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        sentence: format!(
            "the upload limit is {}; `kvmscope cut` makes a trace smaller, --upload-limit raises the limit",
            exact_bytes(most_bytes)
        ),
    }
}
