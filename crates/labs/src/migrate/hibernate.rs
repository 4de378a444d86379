//! Guests that are saved to files, all at once, and woken from them, all at once.
//!
//! ```text
//! boot --> stop, sum over its memory --> migrate to a file, made durable --> QEMU ends --> the page cache forgets the file
//! --> a new QEMU, migrate-incoming, cont --> its heartbeat goes on                     afterwards: loaded once more, the same sum
//! ```
//! In: [`Saved`], and who predicts it once the disk and the start of a QEMU are measured. Out: a recording with that prediction and a
//! [`Hibernation`]. Nothing else is on the machine.

use super::guest_memory::sum;
use super::qemu::{ANSWER, Extra, Qemu, Side, realtime_ns};
use super::{HOST, Settings, method};
use crate::machine::Places;
use crate::machine::scratch::Scratch;
use base::hibernation::{Disk, Guest, Hibernation, SCHEMA};
use base::prediction::Prediction;
use base::recording::{
    Draft, Emulator, HIBERNATION_FILE, Identity, Machine, Moment, PREDICTION_FILE, Part, PartKind, PartState, Recording,
};
use lab::watch::Watch;
use lab::{Error, clocks, disk};
use rustix::fs::{Advice, fadvise, statvfs};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    pub settings: Settings,
    /// How many, at once.
    pub guests: u32,
    /// What a guest's file will take, by and large: so much is written and read to measure the disk.
    pub expected_bytes: u64,
    /// The first guest's file lies where less than its memory is free: tests hold the report against it.
    pub is_disk_full: bool,
}

/// What was measured before anything was predicted.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Of the file system that holds the files.
    pub disk: Disk,
    /// What a QEMU takes from its start until it listens.
    pub start: Duration,
}

/// How often a QEMU is asked whether it has saved or loaded.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// A disk that takes longer to write or read a guest is none.
const PATIENCE: Duration = Duration::from_secs(600);
/// What is free on the disk that is full: less than the firmware alone takes.
const FREE_BYTES: u64 = 1 << 20;
/// As fast as it goes: QEMU's default of 128 MiB/s is for networks.
const NO_LIMIT: u64 = 1 << 40;

base::named! {
    /// In what form QEMU writes files.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum How {
        MappedRam = "mapped-ram",
        File = "file",
        Exec = "exec",
    }
}

impl How {
    /// Where QEMU saves to, or loads from.
    fn uri(self, file: &Path, side: Side) -> String {
        let path = file.display().to_string();
        match (self, side) {
            (Self::MappedRam | Self::File, _) => format!("file:{path}"),
            (Self::Exec, Side::Source) => format!("exec:cat > {}", base::shell::quoted(&path)),
            (Self::Exec, Side::Target) => format!("exec:cat {}", base::shell::quoted(&path)),
        }
    }
}

/// Saves and wakes. `predict` is asked once, before any guest is booted; what it says is kept. Else as [`super::run`].
///
/// # Errors
/// If something is missing or goes wrong on the way; the sentence says what. Nothing is left behind then, unless it says so.
pub fn run(
    saved: &Saved,
    predict: &dyn Fn(Measured) -> Prediction,
    places: &Places,
    created: String,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Recording, Error> {
    let settings = &saved.settings;
    if saved.is_disk_full && !rustix::process::geteuid().is_root() {
        return Err(Error::Denied("a disk that is full is a small tmpfs, which only root may mount".to_owned()));
    }
    let cache = super::ready(settings, places)?;
    let program = settings.program();
    let scratch = Scratch::new(&cache)?;
    let (abilities, _) = method::abilities(&program, scratch.path())?;
    let takes_files = abilities.accepts("migrate", &["channels", "addr", "transport"], "file");
    let how = match () {
        () if takes_files && abilities.has_capability("mapped-ram") => How::MappedRam,
        () if takes_files => How::File,
        () => How::Exec,
    };
    let draft = Draft::new(&places.output)?;
    let mut watch = Watch { say, stop };
    let begin = clocks::pair(HOST, Moment::Begin);
    (watch.say)("measuring the disk");
    let all_bytes = saved.expected_bytes.saturating_mul(saved.guests.into());
    let measured =
        Measured { disk: disk::measure(scratch.path(), all_bytes)?, start: starting(settings, scratch.path())? };
    let mut parts = Vec::new();
    let mut part = |name: &str, kind| {
        let path = Path::new(HOST).join(name);
        let whole = draft.part(&path)?;
        parts.push(Part { path, machine: HOST.to_owned(), kind, clock: None, state: PartState::Complete });
        Ok::<_, Error>(whole)
    };
    let whole = part(PREDICTION_FILE, PartKind::Prediction)?;
    predict(measured).write(&whole).map_err(|error| Error::io(&whole, error))?;
    let guests = hibernate(saved, how, scratch.path(), &mut watch)?;
    let hibernation =
        Hibernation { schema: SCHEMA.to_owned(), how: how.name().to_owned(), disk: measured.disk, guests };
    let whole = part(HIBERNATION_FILE, PartKind::Hibernation)?;
    hibernation.write(&whole).map_err(|error| Error::io(&whole, error))?;
    let guest = settings.guest();
    let tool =
        format!("kvmscope lab migrate {}: {guest} --to-file --guests {}", env!("CARGO_PKG_VERSION"), saved.guests);
    let machine = Machine { id: HOST.to_owned(), level: 0, parent: None, name: None, identity: Identity::default() };
    let recording = Recording {
        root: places.output.path.clone(),
        emulated: Some(Emulator::Tcg),
        machines: vec![machine],
        parts,
        clock_pairs: vec![begin, clocks::pair(HOST, Moment::End)],
        ..Recording::made(&tool, created)
    };
    Ok(draft.finish(recording)?)
}

/// What a QEMU takes to start, with a machine as the guests have it.
fn starting(settings: &Settings, place: &Path) -> Result<Duration, Error> {
    let begin = Instant::now();
    Qemu::start(Side::Target, settings, place)?;
    Ok(begin.elapsed())
}

/// One guest, before it is woken.
struct Sleeper {
    place: PathBuf,
    qemu: Option<Qemu>,
    beats: u32,
    guest: Guest,
}

impl Sleeper {
    fn file(&self) -> PathBuf {
        self.place.join("saved").join("memory")
    }
}

fn hibernate(saved: &Saved, how: How, place: &Path, watch: &mut Watch<'_>) -> Result<Vec<Guest>, Error> {
    let settings = &saved.settings;
    (watch.say)(&format!("booting {}", base::number::counted(saved.guests.into(), "guest", "guests")));
    let mut sleepers = Vec::new();
    for number in 0..saved.guests {
        let place = place.join(number.to_string());
        let files = place.join("saved");
        std::fs::create_dir_all(&files).map_err(|error| Error::io(&files, error))?;
        let is_small = saved.is_disk_full && number == 0;
        let small = if is_small { Extra::SmallDisk(&files, FREE_BYTES) } else { Extra::Nothing };
        let qemu = Some(Qemu::start_with(Side::Source, settings, &place, small)?);
        let guest = Guest { memory_bytes: settings.memory_bytes, ..Guest::default() };
        sleepers.push(Sleeper { place, qemu, beats: 0, guest });
    }
    for sleeper in &mut sleepers {
        let Some(qemu) = &mut sleeper.qemu else { continue };
        qemu.wait_for_guest(settings, watch)?;
        qemu.qmp.execute("stop", Value::Null, ANSWER)?;
        sleeper.beats = qemu.heartbeat()?;
        sleeper.guest.sum_before = Some(sum(qemu, settings, &sleeper.place)?);
        tell(qemu, how)?;
    }
    (watch.say)("saving");
    save(&mut sleepers, how, watch)?;
    for sleeper in &mut sleepers {
        sleeper.qemu = None;
    }
    (watch.say)("waking");
    wake(&mut sleepers, settings, how, watch)?;
    (watch.say)("comparing their memory");
    for sleeper in sleepers.iter_mut().filter(|sleeper| sleeper.guest.error.is_none()) {
        let mut qemu = Qemu::start(Side::Target, settings, &sleeper.place)?;
        load(&mut qemu, &sleeper.file(), how, watch)?;
        sleeper.guest.sum_after = Some(sum(&mut qemu, settings, &sleeper.place)?);
    }
    Ok(sleepers.into_iter().map(|sleeper| sleeper.guest).collect())
}

fn tell(qemu: &mut Qemu, how: How) -> Result<(), Error> {
    let mapped = (how == How::MappedRam).then_some("mapped-ram");
    let on: Vec<Value> =
        ["events"].into_iter().chain(mapped).map(|name| json!({ "capability": name, "state": true })).collect();
    qemu.qmp.execute("migrate-set-capabilities", json!({ "capabilities": on }), ANSWER)?;
    qemu.qmp.execute("migrate-set-parameters", json!({ "max-bandwidth": NO_LIMIT }), ANSWER)?;
    Ok(())
}

/// Saves all at once; one that cannot be saved goes on.
fn save(sleepers: &mut [Sleeper], how: How, watch: &Watch<'_>) -> Result<(), Error> {
    let mut began_ns = Vec::new();
    for sleeper in sleepers.iter_mut() {
        let uri = how.uri(&sleeper.file(), Side::Source);
        let Some(qemu) = &mut sleeper.qemu else { continue };
        began_ns.push(realtime_ns());
        // One whose file cannot even be made says so at once.
        if let Err(error) = qemu.qmp.execute("migrate", json!({ "uri": uri }), ANSWER) {
            sleeper.guest.error = Some(error.to_string());
        }
    }
    let until = Instant::now() + PATIENCE;
    let is_open = |sleeper: &Sleeper| sleeper.guest.error.is_none() && sleeper.guest.save_ns.is_none();
    while sleepers.iter().any(is_open) {
        watch.rest(ASK_EVERY)?;
        if Instant::now() > until {
            return Err(Error::TimedOut(format!("guests had not been saved after {} s", PATIENCE.as_secs())));
        }
        for (sleeper, began_ns) in sleepers.iter_mut().zip(&began_ns).filter(|(sleeper, _)| is_open(sleeper)) {
            let file = sleeper.file();
            let Some(qemu) = &mut sleeper.qemu else { continue };
            let told = qemu.qmp.execute("query-migrate", Value::Null, ANSWER)?;
            match told["status"].as_str().unwrap_or_default() {
                "completed" => {
                    sleeper.guest.zero_pages = told["ram"]["duplicate"].as_u64();
                    sleeper.guest.normal_pages = told["ram"]["normal"].as_u64();
                    // A program that writes for QEMU may still do so: once QEMU is told to end it waits for it.
                    qemu.end(PATIENCE)?;
                    kept(&file, *began_ns, &mut sleeper.guest).map_err(|error| Error::io(&file, error))?;
                }
                "failed" => {
                    let words = qemu.words();
                    let error = told["error-desc"].as_str().unwrap_or("QEMU gives no reason");
                    let lines = std::iter::once(error).chain(words.lines()).map(str::trim);
                    sleeper.guest.error = Some(lines.collect::<Vec<_>>().join("; "));
                }
                _ => {}
            }
        }
    }
    for sleeper in sleepers.iter_mut().filter(|sleeper| sleeper.guest.error.is_some()) {
        let file = sleeper.file();
        let Some(qemu) = &mut sleeper.qemu else { continue };
        // The disk as QEMU sees it.
        let seen = Path::new("/proc").join(qemu.id().to_string()).join("root");
        let folder = file.parent().and_then(|folder| folder.strip_prefix("/").ok()).map(|folder| seen.join(folder));
        let free = folder.and_then(|folder| statvfs(&folder).ok());
        sleeper.guest.free_bytes = free.map(|free| free.f_bavail.saturating_mul(free.f_frsize));
        qemu.qmp.execute("cont", Value::Null, ANSWER)?;
        sleeper.guest.goes_on = Some(beats(qemu, sleeper.beats, watch)?.is_some());
    }
    Ok(())
}

/// Makes a file durable, then measures it, and has the page cache forget it.
fn kept(path: &Path, began_ns: u64, guest: &mut Guest) -> std::io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    guest.save_ns = Some(realtime_ns().saturating_sub(began_ns));
    let about = file.metadata()?;
    // A file with a place for each page has holes, which take nothing.
    guest.saved_bytes = Some(about.len().min(about.blocks().saturating_mul(512)));
    let mut compressed = Counted(0);
    let mut encoder = zstd::Encoder::new(&mut compressed, 1)?;
    std::io::copy(&mut &file, &mut encoder)?;
    encoder.finish()?;
    guest.compressed_bytes = Some(compressed.0);
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

struct Counted(u64);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Wakes all at once, each in a thread of its own, with which its QEMU ends.
fn wake(sleepers: &mut [Sleeper], settings: &Settings, how: How, watch: &Watch<'_>) -> Result<(), Error> {
    let stop = watch.stop;
    std::thread::scope(|scope| {
        let threads: Vec<_> = sleepers
            .iter_mut()
            .filter(|sleeper| sleeper.guest.error.is_none())
            .map(|sleeper| scope.spawn(move || woken(sleeper, settings, how, &Watch { say: &mut |_| {}, stop })))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(Error::Died("the thread that wakes a guest panicked; please report it".to_owned()))
            })
        })
    })
}

fn woken(sleeper: &mut Sleeper, settings: &Settings, how: How, watch: &Watch<'_>) -> Result<(), Error> {
    let began_ns = realtime_ns();
    let mut qemu = Qemu::start(Side::Target, settings, &sleeper.place)?;
    load(&mut qemu, &sleeper.file(), how, watch)?;
    qemu.qmp.execute("cont", Value::Null, ANSWER)?;
    match beats(&mut qemu, sleeper.beats, watch)? {
        Some(at_ns) => sleeper.guest.wake_ns = Some(at_ns.saturating_sub(began_ns)),
        None => sleeper.guest.error = Some("it was loaded and does not count on".to_owned()),
    }
    Ok(())
}

/// Loads a guest, which then stands as it stood.
fn load(qemu: &mut Qemu, file: &Path, how: How, watch: &Watch<'_>) -> Result<(), Error> {
    tell(qemu, how)?;
    qemu.qmp.execute("migrate-incoming", json!({ "uri": how.uri(file, Side::Target) }), ANSWER)?;
    let until = Instant::now() + PATIENCE;
    while qemu.qmp.execute("query-status", Value::Null, ANSWER)?["status"] == "inmigrate" {
        if Instant::now() > until {
            return Err(Error::TimedOut(format!("a guest had not been loaded after {} s", PATIENCE.as_secs())));
        }
        watch.rest(ASK_EVERY)?;
    }
    Ok(())
}

/// When a guest was seen to have counted beyond `before`, and not by much: a guest that began anew would count from 0.
fn beats(qemu: &mut Qemu, before: u32, watch: &Watch<'_>) -> Result<Option<u64>, Error> {
    const BEAT: Duration = Duration::from_secs(10);
    let until = Instant::now() + BEAT;
    while Instant::now() < until {
        if (1..u32::MAX / 2).contains(&qemu.heartbeat()?.wrapping_sub(before)) {
            return Ok(Some(realtime_ns()));
        }
        watch.rest(ASK_EVERY)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_to_a_shell() {
        let file = Path::new("/tmp/it's here/memory");
        let asked = How::Exec.uri(file, Side::Source);
        let printed =
            std::process::Command::new("sh").arg("-c").arg(asked.replacen("exec:cat >", "printf %s", 1)).output();
        assert_eq!(printed.unwrap().stdout, b"/tmp/it's here/memory");
        assert_eq!(How::File.uri(file, Side::Target), "file:/tmp/it's here/memory");
    }
}
