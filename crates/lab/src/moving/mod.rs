//! A live migration that somebody else makes, watched while it goes.
//!
//! ```text
//! socket, or VM by name --monitor--> QMP    events as they come, query-migrate every 50 ms --session--> <machine>/qmp/watched-N.jsonl
//!                              '---> virsh  libvirt's events alone -------------libvirt-->
//! ```
//! A meter never harms a guest: it reads, sets nothing, and whenever it ends, killed or not, the migration goes on. On a source it sees passes
//! and the stop, on a target when the guest runs. A monitor that closes is an end, not an error: QEMU ends with what it had to do.

mod libvirt;
mod monitor;
mod session;

use crate::tracefs::{Vm, find_vm};
use crate::{Error, Recorder};
use base::recording::{Part, PartKind, PartState};
use monitor::Monitor;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What the thread that watches and its recorder tell each other.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// A migration was seen, and is over; or nothing more can come.
    has_ended: AtomicBool,
}

/// A thread that watches one VM, and writes down what it sees as it comes.
pub struct MigrationRecorder {
    thread: JoinHandle<Result<(), Error>>,
    shared: Arc<Shared>,
    path: PathBuf,
    machine: String,
    watched: String,
}

impl MigrationRecorder {
    /// Watches `wanted` from now on: a socket of QEMU's machine protocol, or the name or process id of a VM that runs here. `number` keeps
    /// several apart.
    ///
    /// # Errors
    /// If there is no such VM or socket, or none that is free; the sentence says what to do.
    pub fn start(wanted: &str, number: usize, root: &Path, machine: &str) -> Result<Self, Error> {
        let monitors = if wanted.contains('/') {
            vec![Monitor::Socket(PathBuf::from(wanted))]
        } else {
            let vm = find_vm(Path::new("/proc"), wanted)?;
            monitor::of(Path::new("/proc"), &vm)?
        };
        let path = Path::new(machine).join("qmp").join(format!("watched-{number}.jsonl"));
        let whole = root.join(&path);
        let file = || {
            whole.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create(&whole)
        };
        let (mut refused, shared) = (None, Arc::new(Shared::default()));
        for monitor in monitors {
            let told = Arc::clone(&shared);
            let (thread, watched) = match &monitor {
                Monitor::Socket(socket) => match session::connect(socket) {
                    Ok(qmp) => {
                        let file = file().map_err(|error| Error::io(&whole, error))?;
                        let place = whole.clone();
                        let thread = std::thread::spawn(move || session::follow(qmp, file, &place, &told));
                        (thread, socket.display().to_string())
                    }
                    Err(error) => {
                        refused = refused.or(Some(error));
                        continue;
                    }
                },
                Monitor::Libvirt(domain) => {
                    let events = libvirt::Events::of(domain)?;
                    let file = file().map_err(|error| Error::io(&whole, error))?;
                    let place = whole.clone();
                    let thread = std::thread::spawn(move || events.follow(file, &place, &told));
                    (thread, format!("libvirt's events of {domain}"))
                }
            };
            return Ok(Self { thread, shared, path, machine: machine.to_owned(), watched });
        }
        Err(refused.unwrap_or_else(|| Error::WrongUse(format!("{wanted} has no monitor. {}", monitor::ADVICE))))
    }

    pub fn watched(&self) -> &str {
        &self.watched
    }

    /// What lies on disk until [`Recorder::stop`]; it is readable as it is.
    pub fn partial(&self) -> Part {
        self.part(PartState::Partial)
    }

    /// Tells whether the migration is over, also after this was handed on.
    pub fn ended(&self) -> impl Fn() -> bool + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.has_ended.load(Ordering::Relaxed)
    }

    fn part(&self, state: PartState) -> Part {
        Part { path: self.path.clone(), machine: self.machine.clone(), kind: PartKind::Qmp, clock: None, state }
    }
}

/// Why the QEMU of a VM says that its guest cannot be migrated, if one of its monitors is free; QEMU 6.0 or later says it.
///
/// # Errors
/// If there is no such VM, or none of its monitors is free.
pub fn blocked_reasons(vm: &Vm) -> Result<Vec<String>, Error> {
    let sockets = monitor::of(Path::new("/proc"), vm)?.into_iter().filter_map(|monitor| match monitor {
        Monitor::Socket(socket) => Some(socket),
        Monitor::Libvirt(_) => None,
    });
    let mut refused = None;
    for socket in sockets {
        match session::blocked_reasons(&socket) {
            Ok(reasons) => return Ok(reasons),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| Error::Busy("libvirt alone is connected to it".to_owned())))
}

impl Recorder for MigrationRecorder {
    fn name(&self) -> &str {
        "migration"
    }

    fn stop(self: Box<Self>) -> Result<Vec<Part>, Error> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let part = self.part(PartState::Complete);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Error::Died("the thread that watched the migration ended early".to_owned())))?;
        Ok(vec![part])
    }
}

#[cfg(test)]
mod tests;
