//! What does QEMU itself say of how much its guest dirties? Its `calc-dirty-rate`, by samples of pages.
//!
//! Only ever by page-sampling: with `dirty-bitmap` and `dirty-ring` a QEMU 7.2.22 without KVM ended with SIGSEGV, and a meter takes no guest
//! down. And never during a migration, whose own passes it would slow down.
//! Source: qapi/migration.json, QEMU 7.2: `dirty-rate` in MiB/s, `calc-time` 1 to 60 s, `sample-pages` of a GiB, 128 to 16,384.

use crate::Error;
use crate::qmp::Qmp;
use crate::watch::Watch;
use base::bench::{BY_QEMU, DIRTIED, Measured, Params};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// QEMU answers at once, unless its machine is overloaded.
const PATIENCE: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// After its time it still has to compare what it sampled.
const COMPARES: Duration = Duration::from_secs(30);
/// Eight times as many as it takes by itself.
const SAMPLE_PAGES: u64 = 4096;
/// QEMU's bounds of `calc-time`.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=60;
const PAGES_PER_MIB: u64 = (1 << 20) / 4096;

/// Pages dirtied in each of `windows`, as the QEMU says that listens at `socket`; windows are whole seconds to it.
///
/// # Errors
/// If it refuses, migrates, or cannot do that.
pub fn dirty_rate(
    socket: &Path,
    windows: &[Duration],
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Vec<Measured>, Error> {
    let watch = Watch { say, stop };
    let mut qmp = Qmp::connect(socket, PATIENCE, clock_ns)?;
    let abilities = qmp.abilities(PATIENCE)?;
    if !abilities.has("calc-dirty-rate") {
        return Err(Error::Absent(format!("QEMU {} has no calc-dirty-rate, which came with 5.2", qmp.version())));
    }
    let migrates = qmp.execute("query-migrate", Value::Null, PATIENCE)?;
    let status = migrates["status"].as_str().unwrap_or("none");
    if !["none", "completed", "failed", "cancelled"].contains(&status) {
        return Err(Error::Busy(format!(
            "the guest is being migrated ({status}): measure before, this would slow it down"
        )));
    }
    let mut seconds: Vec<u64> =
        windows.iter().map(Duration::as_secs).filter(|seconds| SECONDS.contains(seconds)).collect();
    seconds.sort_unstable();
    seconds.dedup();
    let mut results = Vec::new();
    for seconds in seconds {
        let mut arguments = json!({ "calc-time": seconds });
        if abilities.takes("calc-dirty-rate", "mode") {
            arguments["mode"] = json!("page-sampling");
        }
        if abilities.takes("calc-dirty-rate", "sample-pages") {
            arguments["sample-pages"] = json!(SAMPLE_PAGES);
        }
        (watch.say)(&format!("QEMU samples pages for {seconds} s"));
        qmp.execute("calc-dirty-rate", arguments, PATIENCE)?;
        let rate = answer(&mut qmp, Duration::from_secs(seconds), &watch)?;
        results.push(Measured {
            name: DIRTIED.to_owned(),
            params: Params {
                content: Some(BY_QEMU.to_owned()),
                window_ns: Some(seconds * 1_000_000_000),
                ..Params::default()
            },
            unit: "count".to_owned(),
            samples: vec![rate.saturating_mul(seconds).saturating_mul(PAGES_PER_MIB) as f64],
            ..Measured::default()
        });
    }
    Ok(results)
}

/// MiB a second, as soon as QEMU knows.
fn answer(qmp: &mut Qmp, takes: Duration, watch: &Watch<'_>) -> Result<u64, Error> {
    let until = Instant::now() + takes + COMPARES;
    loop {
        watch.rest(ASK_EVERY)?;
        let told = qmp.execute("query-dirty-rate", Value::Null, PATIENCE)?;
        if let ("measured", Some(rate)) = (told["status"].as_str().unwrap_or_default(), told["dirty-rate"].as_u64()) {
            return Ok(rate);
        }
        if Instant::now() > until {
            return Err(Error::TimedOut(format!(
                "QEMU did not report how much is dirtied within {} s of the expected time",
                COMPARES.as_secs()
            )));
        }
    }
}

fn clock_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    /// A QEMU that migrates or not, and dirties 32 MiB/s; sends what it was asked.
    fn fake(status: &'static str) -> (tempfile::TempDir, std::sync::mpsc::Receiver<Value>) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("qmp")).unwrap();
        let (send, asked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let greeting =
                r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}}"#;
            writeln!(stream, "{greeting}").unwrap();
            for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                let command: Value = serde_json::from_str(&line).unwrap();
                let answer = match command["execute"].as_str().unwrap() {
                    "query-qmp-schema" => json!([
                        {"name": "calc-dirty-rate", "meta-type": "command", "arg-type": "1"},
                        {"name": "1", "meta-type": "object", "members": [
                            {"name": "calc-time", "type": "int"}, {"name": "mode", "type": "2"}]},
                    ]),
                    "query-migrate" if status == "none" => json!({}),
                    "query-migrate" => json!({ "status": status }),
                    "query-dirty-rate" => json!({ "status": "measured", "dirty-rate": 32 }),
                    _ => json!({}),
                };
                let _ = send.send(command.clone());
                writeln!(stream, "{}", json!({ "return": answer, "id": command["id"] })).unwrap();
            }
        });
        (folder, asked)
    }

    fn rates(folder: &tempfile::TempDir) -> Result<Vec<Measured>, Error> {
        let windows = [2_000, 100, 1_000, 2_500].map(Duration::from_millis);
        dirty_rate(&folder.path().join("qmp"), &windows, &mut |_| {}, &AtomicBool::new(false))
    }

    #[test]
    fn pages_are_sampled_for_whole_seconds_and_never_in_another_mode() {
        let (folder, asked) = fake("none");
        let pages: Vec<(Option<u64>, f64)> =
            rates(&folder).unwrap().iter().map(|one| (one.params.window_ns, one.samples[0])).collect();
        assert_eq!(pages, [(Some(1_000_000_000), 8_192.0), (Some(2_000_000_000), 16_384.0)]);
        let calculated: Vec<Value> = asked
            .try_iter()
            .filter(|one| one["execute"] == "calc-dirty-rate")
            .map(|one| one["arguments"].clone())
            .collect();
        // What this QEMU does not know it is not told.
        let expected = [1, 2].map(|seconds| json!({ "calc-time": seconds, "mode": "page-sampling" }));
        assert_eq!(calculated, expected);
    }

    #[test]
    fn a_guest_that_is_being_migrated_is_left_alone() {
        let (folder, asked) = fake("active");
        let error = rates(&folder).unwrap_err().to_string();
        assert!(error.contains("being migrated (active)"), "{error}");
        assert!(asked.try_iter().all(|one| one["execute"] != "calc-dirty-rate"));
    }
}
