//! Copies what a machine says of itself into a recording: `<machine>/host/0/`.
//!
//! In: a root that holds `/proc` and `/sys`, the list [`host::snapshot::FILES`]. Out: a tree of copies that
//! [`host::Snapshot`] opens, without links, with the time at which each file was read.
//!
//! ```text
//! root/proc/<pid>/task/*/stat --find, read, redact--> into/proc/...      times.json  links.json
//! CPUID and its time, KVM, virsh (of this machine) --> into/{cpuid,timing,kvm}.json, into/libvirt/*.xml
//! dev/cpu/*/msr, the count of SMIs                 --> into/smi.json
//! /dev/kmsg, what concerns virtualization (likewise) --> into/kernel-log.txt
//! ethtool, Open vSwitch's tools (likewise)         --> into/commands/*
//! what was there and could not be read            --> into/unreadable.txt
//! ```
//! Of a process with many threads that runs no VM, idle threads are left out, and it is said how many.
//! Files that vanish while they are read belong to tasks that ended: they are passed over. Nothing waits, and nothing
//! grows without bound: see the limits below.

mod around;
mod commands;
#[cfg(target_arch = "x86_64")]
pub(crate) mod cpuid;
#[cfg(target_arch = "x86_64")]
mod kvm;
mod libvirt;
mod log;
mod redact;
mod smi;
#[cfg(target_arch = "x86_64")]
mod timing;

pub use around::Around;
pub use commands::Tools;

use crate::Error;
use crate::program::Program;
use host::Snapshot;
use host::budget::FILE_BYTES;
use host::cpuid::CPUID_FILE;
use host::kernel_log::LOG_FILE;
use host::smi::SMI_FILE;
use host::snapshot::{
    COMMANDS, DOMAINS, FILES, How, LINKS, LINKS_FILE, OTHERS, OUTPUTS, TIMES_FILE, Times, UNREADABLE_FILE, Wanted,
    is_gone,
};
use host::timing::TIMING_FILE;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What KVM says that it can do.
const KVM_FILE: &str = "kvm.json";

/// More files are not taken: a host with 256 CPUs, 100 VMs and 5,000 threads has some 60,000.
const MOST_FILES: usize = 250_000;

/// More bytes are not taken, all files together.
const MOST_BYTES_TOGETHER: u64 = 512 << 20;

/// Of a process with more threads than this, which runs no VM, only threads that have used a CPU are taken.
const MANY_THREADS: usize = 64;

/// A thread that has run for less than this in all its life is idle: in a sample 2 s later it is at most a per cent of a CPU.
const IDLE_NS: u64 = 20_000_000;

/// What is taken beyond the list of every snapshot.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// Patterns of the list that are taken on request only.
    pub on_request: BTreeSet<&'static str>,
    /// CPUID, KVM's extensions, the kernel's log, and libvirt's domains by this `virsh`: of the machine that this runs on, so
    /// only where the root is its own.
    pub here: Option<Program>,
    /// Programs that tell of this machine's cards and switch, asked where `here` is.
    pub tools: Tools,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    pub files: usize,
    pub bytes: u64,
    /// Files that were there and could not be read, or were cut; `unreadable.txt` lists them.
    pub unreadable: usize,
}

impl More {
    /// What a snapshot of `root` takes unasked: the processor and libvirt, if it is this machine's own root.
    pub fn of(root: &Path) -> Self {
        let own = root.canonicalize().is_ok_and(|root| root == Path::new("/"));
        Self { here: own.then(|| Program::new("virsh", "libvirt-clients")), ..Self::default() }
    }
}

/// CLOCK_MONOTONIC in ns, for the times of files.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Takes a snapshot of the machine at `root` into the directory `into`; `now` tells CLOCK_MONOTONIC in ns.
///
/// # Errors
/// If `root` holds no machine, or if `into` cannot be written.
pub fn take(root: &Path, into: &Path, now: &dyn Fn() -> u64) -> Result<Taken, Error> {
    take_more(root, into, &More::of(root), now)
}

/// Takes a snapshot with what `more` asks for; the directory above `into` is there.
///
/// # Errors
/// If `root` holds no machine, or if `into` cannot be written.
pub fn take_more(root: &Path, into: &Path, more: &More, now: &dyn Fn() -> u64) -> Result<Taken, Error> {
    let from = Snapshot::open(root)?;
    let mut copy = Copy::new(&from, into, now);
    copy.make(into)?;
    copy.leave_out_idle_threads();
    for wanted in FILES.iter().filter(|wanted| wanted.how != How::OnRequest || more.on_request.contains(wanted.pattern))
    {
        copy.take(wanted)?;
    }
    copy.system_management_interrupts()?;
    copy.links()?;
    match &more.here {
        Some(virsh) => copy.this_machine(virsh, &more.tools)?,
        None => copy.what_another_snapshot_has()?,
    }
    copy.finish()
}

/// A snapshot being taken.
struct Copy<'a> {
    from: &'a Snapshot,
    into: &'a Path,
    now: &'a dyn Fn() -> u64,
    times: BTreeMap<String, u64>,
    unreadable: BTreeMap<String, String>,
    made: BTreeSet<PathBuf>,
    /// Directories of threads that are left out, such as `proc/7/task/8/`.
    idle: BTreeSet<String>,
    taken: Taken,
}

impl<'a> Copy<'a> {
    fn new(from: &'a Snapshot, into: &'a Path, now: &'a dyn Fn() -> u64) -> Self {
        let (times, unreadable, made) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { from, into, now, times, unreadable, made, idle: BTreeSet::new(), taken: Taken::default() }
    }

    /// Notes which threads are left out, and says of which process and how many.
    fn leave_out_idle_threads(&mut self) {
        let mut processes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in self.from.find("proc/<pid>/task/*/schedstat") {
            if let Some((process, _)) = path.split_once("/task/") {
                processes.entry(process.to_owned()).or_default().push(path);
            }
        }
        let of_vm = self.from.find("proc/<vm>/cmdline");
        let runs_vm = |process: &str| of_vm.iter().any(|path| path.strip_suffix("/cmdline") == Some(process));
        for (process, threads) in processes {
            if threads.len() <= MANY_THREADS || runs_vm(&process) {
                continue;
            }
            // The first number is the time it ran (Documentation/scheduler/sched-stats.rst).
            let ran_ns = |path: &String| self.from.read(path)?.split_whitespace().next()?.parse::<u64>().ok();
            let idle: Vec<String> = threads
                .iter()
                .filter(|path| ran_ns(path).is_some_and(|ran_ns| ran_ns < IDLE_NS))
                .filter_map(|path| Some(path.strip_suffix("schedstat")?.to_owned()))
                .collect();
            if !idle.is_empty() {
                let why = format!("left out: {} of its {} threads, which were never busy", idle.len(), threads.len());
                self.unreadable.insert(format!("{process}/task"), why);
                self.idle.extend(idle);
            }
        }
    }

    fn is_left_out(&self, path: &str) -> bool {
        let thread = path.match_indices('/').nth(3).map(|(end, _)| &path[..=end]);
        thread.is_some_and(|thread| self.idle.contains(thread))
    }

    /// Copies the files of one row of the list.
    fn take(&mut self, wanted: &Wanted) -> Result<(), Error> {
        let unreadable = &mut self.unreadable;
        let paths = self.from.find_and_tell(wanted.pattern, &mut |path, error| {
            unreadable.insert(path.to_owned(), error.to_string());
        });
        for path in paths {
            if self.taken.files >= MOST_FILES || self.taken.bytes >= MOST_BYTES_TOGETHER {
                let (files, bytes) = (self.taken.files, self.taken.bytes);
                let full = format!("left out: the snapshot is full ({files} files, {bytes} bytes)");
                self.unreadable.insert(wanted.pattern.to_owned(), full);
                break;
            }
            if !self.times.contains_key(&path) && !self.is_left_out(&path) {
                self.file(&path, wanted.how)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str, how: How) -> Result<(), Error> {
        let at_ns = (self.now)();
        let mut bytes = match self.from.bytes(path, FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                if !is_gone(&error) && self.is_meant_to_be_read(path) {
                    self.unreadable.insert(path.to_owned(), error.to_string());
                }
                return Ok(());
            }
        };
        if bytes.len() as u64 == FILE_BYTES {
            self.unreadable.insert(path.to_owned(), format!("truncated after {FILE_BYTES} bytes"));
        }
        if how == How::Redact {
            let text = String::from_utf8_lossy(&bytes);
            let of_kernel = path == "proc/cmdline";
            bytes = if of_kernel { redact::words(&text) } else { redact::arguments(&text) }.into_bytes();
        }
        self.write(path, &bytes)?;
        self.taken.files += 1;
        self.taken.bytes += bytes.len() as u64;
        self.times.insert(path.to_owned(), self.from.read_at_ns(path).unwrap_or(at_ns));
        Ok(())
    }

    /// False for switches that can only be written, such as `microcode/reload`.
    fn is_meant_to_be_read(&self, path: &str) -> bool {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(self.from.root().join(path)).map_or(true, |about| about.permissions().mode() & 0o444 != 0)
    }

    fn system_management_interrupts(&mut self) -> Result<(), Error> {
        let counts = smi::counts(self.from);
        if counts.is_empty() {
            return Ok(());
        }
        self.times.insert(SMI_FILE.to_owned(), (self.now)());
        self.write(SMI_FILE, json(&counts).as_bytes())
    }

    fn links(&mut self) -> Result<(), Error> {
        let mut links: BTreeMap<String, String> = self
            .from
            .links_below("sys")
            .chain(self.from.links_below("proc"))
            .map(|(a, b)| (a.into(), b.into()))
            .collect();
        for (pattern, _) in LINKS.iter() {
            let found = self.from.find(pattern).into_iter().take(MOST_FILES);
            links.extend(found.filter_map(|path| Some((path.clone(), self.from.link(&path)?))));
        }
        self.write(LINKS_FILE, json(&links).as_bytes())
    }

    fn this_machine(&mut self, virsh: &Program, tools: &Tools) -> Result<(), Error> {
        #[cfg(target_arch = "x86_64")]
        self.this_processor()?;
        match log::lines(self.from.root()) {
            Ok(text) => self.write(LOG_FILE, text.as_bytes())?,
            Err(why) => {
                self.unreadable.insert(LOG_FILE.to_owned(), why);
            }
        }
        let domains = libvirt::domains(virsh).into_iter().map(|(name, answer)| (format!("libvirt/{name}"), answer));
        let printed = tools.told(self.from).into_iter().map(|(name, answer)| (format!("{COMMANDS}/{name}"), answer));
        for (path, answer) in domains.chain(printed) {
            match answer {
                Ok(text) => self.write(&path, text.as_bytes())?,
                Err(error) => {
                    self.unreadable.insert(path, error);
                }
            }
        }
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn this_processor(&mut self) -> Result<(), Error> {
        self.write(CPUID_FILE, cpuid::here().to_json().as_bytes())?;
        self.write(TIMING_FILE, json(&timing::here()).as_bytes())?;
        match kvm::extensions(Path::new("/dev/kvm")) {
            Ok(answers) => self.write(KVM_FILE, json(&answers).as_bytes()),
            Err(why) => {
                self.unreadable.insert(KVM_FILE.to_owned(), why);
                Ok(())
            }
        }
    }

    /// A snapshot of a tree keeps what only those could know who made it.
    fn what_another_snapshot_has(&mut self) -> Result<(), Error> {
        let redacted = redact::xml as fn(&str) -> String;
        let mut taken: Vec<_> =
            [CPUID_FILE, TIMING_FILE, KVM_FILE, LOG_FILE, SMI_FILE].map(|name| (name.to_owned(), redacted)).into();
        for (patterns, redact) in [(DOMAINS, redacted), (OUTPUTS, redact::words), (OTHERS, redact::words)] {
            let found = patterns.iter().flat_map(|pattern| self.from.find(pattern));
            taken.extend(found.map(|path| (path, redact)));
        }
        for (path, redact) in taken {
            if let Ok(bytes) = self.from.bytes(&path, FILE_BYTES) {
                self.write(&path, redact(&String::from_utf8_lossy(&bytes)).as_bytes())?;
            }
        }
        let known = self.from.unreadable().iter();
        let missing = known.filter(|(path, _)| !self.times.contains_key(*path));
        self.unreadable.extend(missing.map(|(path, reason)| (path.clone(), reason.clone())));
        Ok(())
    }

    fn finish(mut self) -> Result<Taken, Error> {
        let times = Times { clock: "monotonic".to_owned(), files: std::mem::take(&mut self.times) };
        self.write(TIMES_FILE, json(&times).as_bytes())?;
        let line = |(path, reason): (&String, &String)| format!("{path}: {}\n", reason.replace('\n', " "));
        let unreadable: String = self.unreadable.iter().map(line).collect();
        self.write(UNREADABLE_FILE, unreadable.as_bytes())?;
        Ok(Taken { unreadable: self.unreadable.len(), ..self.taken })
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let whole = self.into.join(path);
        if let Some(above) = whole.parent() {
            self.make(above)?;
        }
        fs::write(&whole, bytes).map_err(|error| Error::io(whole, error))
    }

    /// Makes a directory of the copy. One that somebody has removed meanwhile is not made again: they want it gone.
    fn make(&mut self, directory: &Path) -> Result<(), Error> {
        if !self.made.insert(directory.to_owned()) {
            return Ok(());
        }
        if let Some(above) = directory.parent().filter(|_| directory != self.into) {
            self.make(above)?;
        }
        match fs::create_dir(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::io(directory, error)),
            _ => Ok(()),
        }
    }
}

fn json(what: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(what).unwrap_or_default()
}
