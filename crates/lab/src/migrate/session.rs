//! One migration, from `migrate` until the guest runs on the other side, or does not.

use super::Settings;
use super::observe::Observer;
use super::qemu::{ANSWER, Qemu, Side, realtime_ns};
use crate::Error;
use crate::watch::Watch;
use base::heartbeat::Heartbeat;
use base::qmp::Message;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the source is asked, besides at the beginning of each pass: numbers change once a pass (`migration_update_counters`).
const ASK_EVERY: Duration = Duration::from_millis(50);
/// After its STOP the guest runs again within the limit and what devices take; a target that has not said so by then does not.
const RESUME: Duration = Duration::from_secs(30);

/// A guest that runs on the target has beaten there by then, and an observer that gets a CPU at all has seen it.
const BEAT: Duration = Duration::from_secs(2);

/// What went over both connections.
pub struct Ran {
    /// Of the source.
    pub source: Vec<Message>,
    /// Of the target.
    pub target: Vec<Message>,
    /// The guest went on counting there.
    pub has_moved: bool,
    /// What was seen of it from outside, if that was wanted and it moved.
    pub heartbeat: Option<Heartbeat>,
}

/// Starts both, migrates, and ends both. `place` is a directory of its own.
pub fn migrate(settings: &Settings, place: &Path, watch: &mut Watch<'_>) -> Result<Ran, Error> {
    let mut source = Qemu::start(Side::Source, settings, place)?;
    let mut target = Qemu::start(Side::Target, settings, place)?;
    source.wait_for_guest(settings, watch)?;
    prepare(&mut source, settings)?;
    prepare(&mut target, settings)?;
    let address = json!({ "uri": format!("unix:{}", place.join("migration").display()) });
    target.qmp.execute("migrate-incoming", address.clone(), ANSWER)?;
    let before = source.heartbeat()?;
    let [from, to] = [Side::Source, Side::Target].map(|side| side.memory(place));
    let observe = || Observer::start(&from, &to, settings.period, realtime_ns);
    let observer = settings.is_observed.then(observe).transpose()?;
    source.qmp.execute("migrate", address, ANSWER)?;
    let status = follow(&mut source, settings, watch)?;
    let mut has_moved = false;
    if status == "completed" {
        has_resumed(&mut target)?;
        // Its own account of what came in.
        target.qmp.execute("query-migrate", Value::Null, ANSWER)?;
        let after = target.heartbeat()?;
        watch.rest(ASK_EVERY)?;
        has_moved = after.wrapping_sub(before) < u32::MAX / 2 && target.heartbeat()? != after;
    }
    let heartbeat = observer.filter(|_| has_moved).and_then(|observer| observer.end(BEAT));
    let [source, target] = [&source, &target].map(|qemu| qemu.qmp.messages().to_vec());
    Ok(Ran { source, target, has_moved, heartbeat })
}

/// What both have to be told alike.
fn prepare(qemu: &mut Qemu, settings: &Settings) -> Result<(), Error> {
    let abilities = qemu.qmp.abilities(ANSWER)?;
    let on = |name: &str| json!({ "capability": name, "state": true });
    let wanted: Vec<Value> =
        ["events", "return-path"].into_iter().filter(|name| abilities.has_capability(name)).map(on).collect();
    qemu.qmp.execute("migrate-set-capabilities", json!({ "capabilities": wanted }), ANSWER)?;
    let limit_ms = u64::try_from(settings.limit.as_millis()).unwrap_or(u64::MAX);
    let parameters = json!({ "max-bandwidth": settings.bandwidth_bytes_per_s, "downtime-limit": limit_ms });
    qemu.qmp.execute("migrate-set-parameters", parameters, ANSWER)?;
    Ok(())
}

/// Asks and listens until it is over; how it ended. One that takes too long is cancelled.
fn follow(source: &mut Qemu, settings: &Settings, watch: &mut Watch<'_>) -> Result<String, Error> {
    let began = Instant::now();
    let mut is_cancelled = false;
    loop {
        watch.check()?;
        // At each event the numbers of the pass before are whole.
        source.qmp.event(ASK_EVERY)?;
        let told = source.qmp.execute("query-migrate", Value::Null, ANSWER)?;
        let status = told["status"].as_str().unwrap_or_default();
        if ["completed", "failed", "cancelled"].contains(&status) {
            return Ok(status.to_owned());
        }
        if began.elapsed() > settings.patience && !is_cancelled {
            (watch.say)(&format!("it has not ended after {} s and is cancelled", settings.patience.as_secs()));
            source.qmp.execute("migrate_cancel", Value::Null, ANSWER)?;
            is_cancelled = true;
        }
    }
}

/// Waits until the target says that the guest runs there.
fn has_resumed(target: &mut Qemu) -> Result<(), Error> {
    let until = Instant::now() + RESUME;
    while Instant::now() < until {
        if target.qmp.event(ASK_EVERY)?.is_some_and(|event| event.name == "RESUME") {
            return Ok(());
        }
    }
    Err(Error::TimedOut(format!(
        "the guest did not run on the target after {} s; it says: {}",
        RESUME.as_secs(),
        target.words().trim()
    )))
}
