//! One migration, from `migrate` until the guest runs on the other side, or does not.

use super::guest_memory;
use super::inject::{AtWork, Culprit, HOLDS, Injection, ONE_SIDED, Phase, is_held};
use super::method;
use super::network::{self, Bed};
use super::observe::Observer;
use super::qemu::{ANSWER, Extra, Qemu, Side, realtime_ns};
use super::watched::Watched;
use super::{Settings, Whereabouts};
use base::heartbeat::Heartbeat;
use base::method::Method;
use base::moved_memory::MovedMemory;
use base::network::Network;
use base::processes::{self, Ended, Process, Processes};
use base::qmp::{Event, Message};
use lab::Error;
use lab::watch::Watch;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the source is asked, besides at the beginning of each pass: numbers change once a pass (`migration_update_counters`).
const ASK_EVERY: Duration = Duration::from_millis(50);
/// After its STOP the guest runs again within the limit and what devices take; a target that has not said so by then does not.
const RESUME: Duration = Duration::from_secs(30);

/// A guest that runs somewhere has beaten there by then, and an observer that gets a CPU at all has seen it.
const BEAT: Duration = Duration::from_secs(10);

/// How a migration may end; one of post-copy whose other side is gone waits to be recovered.
const ENDS: [&str; 4] = ["completed", "failed", "cancelled", "postcopy-paused"];

pub(super) struct Ran {
    /// What went over the connection to the source.
    pub source: Vec<Message>,
    pub target: Vec<Message>,
    pub guest: Whereabouts,
    /// What was seen of it from outside, if that was wanted and it moved.
    pub heartbeat: Option<Heartbeat>,
    /// What packets to it saw, where there were any.
    pub network: Option<Network>,
    /// Whether its memory is what it was, if it moved.
    pub memory: Option<MovedMemory>,
    /// What the operating system told of both.
    pub processes: Processes,
}

/// Both sides, and what is to happen between them.
struct Move<'a> {
    settings: &'a Settings,
    method: Method,
    uri: String,
    source: Qemu,
    target: Qemu,
    /// Where both are, if they have a network.
    bed: Option<&'a Bed>,
    /// What goes wrong meanwhile.
    at_work: Option<AtWork>,
}

/// Starts both, migrates by `method`, and ends both. `place` is a directory of its own; on a `bed` packets go to the guest meanwhile.
pub(super) fn migrate(
    settings: &Settings,
    method: Method,
    place: &Path,
    bed: Option<&Bed>,
    watch: &mut Watch<'_>,
) -> Result<Ran, Error> {
    let start = |side| {
        let plug = bed.map(|bed| bed.plug(side)).transpose()?;
        Qemu::start_with(side, settings, place, plug.map_or(Extra::Nothing, Extra::Network))
    };
    let (mut source, mut target) = (start(Side::Source)?, start(Side::Target)?);
    source.wait_for_guest(settings, watch)?;
    let interval = bed.map(|bed| bed.warm_up(watch)).transpose()?;
    prepare(&mut source, Side::Source, settings, method)?;
    prepare(&mut target, Side::Target, settings, method)?;
    let [from, to] = [Side::Source, Side::Target].map(|side| side.memory(place));
    let observe = || Observer::start(&from, &to, settings.period, realtime_ns);
    let observer = settings.is_observed.then(observe).transpose()?;
    let from_ns = realtime_ns();
    let watched = Watched::start([source.id(), target.id()])?;
    let train = bed.zip(interval).map(|(bed, interval)| bed.train(interval)).transpose()?;
    let link_before = bed.and_then(|_| network::sent_by(source.id()));
    let uri =
        bed.map(Bed::uri).filter(|_| !method::is_through_a_file(method)).unwrap_or_else(|| address(method, place));
    let mut both = Move { settings, method, uri, source, target, bed, at_work: None };
    let guest = match both.travel(watch) {
        Ok(guest) => guest,
        Err(Error::Stopped) => return Err(Error::Stopped),
        // A side that is gone is an end like others, and is recorded.
        Err(_) if both.has_lost_a_side(watch)? => both.remains(watch)?,
        Err(error) => return Err(error),
    };
    let Move { mut source, mut target, at_work, .. } = both;
    drop(at_work);
    let has_moved = guest == Whereabouts::Target;
    let heartbeat = observer.filter(|_| has_moved).and_then(|observer| observer.end(BEAT));
    let link = network::sent_by(source.id()).zip(link_before).map(|(after, before)| network::since(after, before));
    let network = train.and_then(|train| train.end(has_moved.then_some(BEAT), link));
    let [looks, looks_of_target] = watched.end();
    let process = |qemu: &mut Qemu, looks: Vec<_>| {
        let how = qemu.ended().map(|status| status.to_string());
        // It was there at the last look, and no longer at the one after.
        let at_ns = looks.last().map_or_else(realtime_ns, |look: &processes::Look| look.at_ns);
        Process { looks, ended: how.map(|how| Ended { at_ns, how }), words: qemu.words().trim().to_owned() }
    };
    let processes = Processes {
        schema: processes::SCHEMA.to_owned(),
        from_ns,
        to_ns: realtime_ns(),
        source: process(&mut source, looks),
        target: process(&mut target, looks_of_target),
    };
    // What is asked from now on is not of the migration.
    let [of_source, of_target] = [&source, &target].map(|qemu| qemu.qmp.messages().to_vec());
    let memory = if has_moved {
        (watch.say)("comparing its memory with what it was");
        match guest_memory::compare([&mut source, &mut target], settings, place, from_ns, watch) {
            Ok(memory) => Some(memory),
            Err(Error::Stopped) => return Err(Error::Stopped),
            // What was measured of the move is whole without it.
            Err(error) => {
                (watch.say)(&format!("its memory was not compared: {error}"));
                None
            }
        }
    } else {
        None
    };
    Ok(Ran { source: of_source, target: of_target, guest, heartbeat, network, memory, processes })
}

/// Where it goes that has no network.
fn address(method: Method, place: &Path) -> String {
    let scheme = if method::is_through_a_file(method) { "file" } else { "unix" };
    format!("{scheme}:{}", place.join("migration").display())
}

/// What both have to be told alike, who waits for pages on the target, and what goes wrong here.
fn prepare(qemu: &mut Qemu, side: Side, settings: &Settings, method: Method) -> Result<(), Error> {
    let abilities = qemu.qmp.abilities(ANSWER)?;
    let on = |name: &str| json!({ "capability": name, "state": true });
    // A file has no way back.
    let back = (!method::is_through_a_file(method)).then_some("return-path");
    let waits = (method == Method::Postcopy && side == Side::Target).then_some("postcopy-blocktime");
    let is_source = side == Side::Source;
    let injected = |of: fn(&Injection) -> bool| is_source && settings.injection.as_ref().is_some_and(of);
    let holds = injected(|one| one.phase == Phase::Dark).then_some(HOLDS);
    let one_sided = injected(|one| one.culprit == Culprit::Capability).then_some(ONE_SIDED);
    let wanted: Vec<Value> = [Some("events"), back, method.capability().map(|(name, _)| name), waits, holds, one_sided]
        .into_iter()
        .flatten()
        .filter(|name| abilities.has_capability(name))
        .map(on)
        .collect();
    qemu.qmp.execute("migrate-set-capabilities", json!({ "capabilities": wanted }), ANSWER)?;
    let limit_ms = u64::try_from(settings.limit.as_millis()).unwrap_or(u64::MAX);
    let mut parameters = method::parameters(method);
    parameters.insert("max-bandwidth".to_owned(), settings.bandwidth_bytes_per_s.into());
    parameters.insert("downtime-limit".to_owned(), limit_ms.into());
    if !is_source && settings.injection.is_some_and(|one| one.culprit == Culprit::NoAnnounce) {
        parameters.insert("announce-rounds".to_owned(), 0.into());
    }
    qemu.qmp.execute("migrate-set-parameters", parameters.into(), ANSWER)?;
    Ok(())
}

impl Move<'_> {
    /// From `migrate` on; where the guest is then.
    fn travel(&mut self, watch: &mut Watch<'_>) -> Result<Whereabouts, Error> {
        let is_through_a_file = method::is_through_a_file(self.method);
        let address = json!({ "uri": self.uri });
        if !is_through_a_file {
            self.target.qmp.execute("migrate-incoming", address.clone(), ANSWER)?;
        }
        let before = self.source.heartbeat()?;
        self.source.qmp.execute("migrate", address.clone(), ANSWER)?;
        if self.follow(watch)? != "completed" {
            return self.remains(watch);
        }
        if is_through_a_file {
            self.target.qmp.execute("migrate-incoming", address, ANSWER)?;
        }
        has_resumed(&mut self.target)?;
        account(&mut self.target, watch)?;
        let after = self.target.heartbeat()?;
        let goes_on = after.wrapping_sub(before) < u32::MAX / 2 && beats(&mut self.target, after, watch)?;
        Ok(if goes_on { Whereabouts::Target } else { Whereabouts::Nowhere })
    }

    /// Asks and listens until it is over; how it ended. One that takes too long is cancelled.
    fn follow(&mut self, watch: &mut Watch<'_>) -> Result<String, Error> {
        let began = Instant::now();
        let (mut is_cancelled, mut is_switched) = (false, false);
        loop {
            watch.check()?;
            // At each event the numbers of the pass before are whole.
            if let Some(event) = self.source.qmp.event(ASK_EVERY)? {
                // Everything has been sent once: what the guest asks for from now on is what it has written to since.
                let is_sent_once = event.data["pass"].as_u64().is_some_and(|pass| pass > 1);
                if self.method == Method::Postcopy && is_sent_once && !is_switched {
                    self.source.qmp.execute("migrate-start-postcopy", Value::Null, ANSWER)?;
                    is_switched = true;
                }
                self.inject(&event, watch)?;
            }
            let told = self.source.qmp.execute("query-migrate", Value::Null, ANSWER)?;
            let status = told["status"].as_str().unwrap_or_default();
            if ENDS.contains(&status) {
                return Ok(status.to_owned());
            }
            // What the guest does in each pass.
            self.source.heartbeat()?;
            let took = began.elapsed();
            if took > self.settings.patience && !is_cancelled {
                (watch.say)(&format!("it has not ended after {} s and is cancelled", self.settings.patience.as_secs()));
                self.source.qmp.execute("migrate_cancel", Value::Null, ANSWER)?;
                is_cancelled = true;
            }
            if took > self.settings.patience + RESUME {
                return Err(Error::TimedOut("the migration did not end when it was cancelled".to_owned()));
            }
        }
    }

    /// Does what is to go wrong when its time has come, and lets a guest go on that is held for that.
    fn inject(&mut self, event: &Event, watch: &Watch<'_>) -> Result<(), Error> {
        let Some(injection) = self.settings.injection else { return Ok(()) };
        if injection.is_due(event) && self.at_work.is_none() {
            self.at_work = injection.begin(&self.source, &self.target, self.bed)?;
        }
        if is_held(event) {
            while injection.culprit == Culprit::Dark && self.at_work.as_ref().is_some_and(|one| !one.is_over()) {
                watch.rest(Duration::from_millis(1))?;
            }
            self.source.qmp.execute("migrate-continue", json!({ "state": "pre-switchover" }), ANSWER)?;
        }
        Ok(())
    }

    /// Whether one of them has ended: its connection may be closed a little before that.
    fn has_lost_a_side(&mut self, watch: &Watch<'_>) -> Result<bool, Error> {
        let until = Instant::now() + BEAT;
        while Instant::now() < until {
            if self.source.ended().is_some() || self.target.ended().is_some() {
                return Ok(true);
            }
            watch.rest(Duration::from_millis(10))?;
        }
        Ok(false)
    }

    /// Where the guest is after a migration that did not end well.
    fn remains(&mut self, watch: &Watch<'_>) -> Result<Whereabouts, Error> {
        if self.source.ended().is_some() {
            return Ok(Whereabouts::Nowhere);
        }
        self.source.qmp.execute("query-status", Value::Null, ANSWER)?;
        let before = self.source.heartbeat()?;
        if !beats(&mut self.source, before, watch)? {
            return Ok(Whereabouts::Nowhere);
        }
        self.source.qmp.execute("query-status", Value::Null, ANSWER)?;
        Ok(Whereabouts::Source)
    }
}

/// Whether a guest beats once more than `before`. On a busy machine that takes a while.
fn beats(qemu: &mut Qemu, before: u32, watch: &Watch<'_>) -> Result<bool, Error> {
    let until = Instant::now() + BEAT;
    while Instant::now() < until {
        watch.rest(ASK_EVERY)?;
        if qemu.heartbeat()? != before {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Its own account of what came in; after post-copy it has one once all pages have come.
fn account(target: &mut Qemu, watch: &Watch<'_>) -> Result<(), Error> {
    let until = Instant::now() + RESUME;
    while Instant::now() < until {
        let told = target.qmp.execute("query-migrate", Value::Null, ANSWER)?;
        if !told["status"].as_str().is_some_and(|status| status.contains("active")) {
            break;
        }
        watch.rest(ASK_EVERY)?;
    }
    Ok(())
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
        "the guest did not run on the target after {} s; it reports: {}",
        RESUME.as_secs(),
        target.words().trim()
    )))
}
