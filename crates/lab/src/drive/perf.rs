//! `perf record`, from the moment that it really records until it has written its file.
//!
//! ```text
//! start   perf -D -1 --control fifo:...   opened, off --"enable"--> on --"ack"--> we return
//! stop    SIGINT --> it writes the head of perf.data and ends
//! ```
//! Every tracepoint hit is a sample of its own; where the CPU is looked at now and then, that is an event beside them.
//! With symbols of the guest it is `perf kvm --host --guest`, which keeps guest and host addresses apart.
//! Source: perf-record(1) and perf-kvm(1), perf 6.1; the control file came with perf 5.9.

use crate::journal::{Entry, Journal, Owner, Step};
use crate::program::{Program, tie};
use crate::tracefs::{Plan, Selection, Tracefs};
use crate::{Error, Recorder};
use base::recording::{Part, PartKind, PartState};
use rustix::fs::{CWD, FileType, MemfdFlags, Mode, memfd_create, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// perf opens a counter per event and CPU before it says that it records: on large hosts that takes seconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Until it has written what was in its buffers.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Its complaints are some lines; more is not looked at.
const MOST_WORDS_BYTES: usize = 64 << 10;

/// How often its answer is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Events that the kernel refuses perf: its own interrupt ends in them (arch/x86/include/asm/trace/irq_vectors.h,
/// Linux 6.12).
const REFUSED: &[(&str, &str)] = &[("irq_vectors", "irq_work_exit")];

/// The file, and the two pipes by which perf is told to begin; in the machine's directory.
const OUTPUT: &str = "perf.data";
const CONTROL: &str = "perf.control";
const ANSWER: &str = "perf.answer";

#[derive(Debug, Clone)]
pub struct PerfOptions {
    pub program: Program,
    /// The events; those that this kernel lacks are left out unless the user asked for them.
    pub events: Vec<Selection>,
    /// Only these threads; empty: all CPUs.
    pub tids: Vec<u32>,
    /// Size of each CPU's buffer in MiB, a power of two.
    pub buffer_mib: u32,
    /// Where the CPU is looked at now and then, and whose names explain it.
    pub samples: Option<Samples>,
}

/// Looking at what the CPU runs, so many times a second.
#[derive(Debug, Clone)]
pub struct Samples {
    /// Times a second and CPU.
    pub frequency_hz: u32,
    /// The guest's `/proc/kallsyms` and `/proc/modules`, copied from it, which name what it ran.
    pub guest_symbols: Option<(PathBuf, PathBuf)>,
}

impl Default for PerfOptions {
    fn default() -> Self {
        Self {
            program: Program::new("perf", "linux-perf"),
            events: Plan::default().events,
            tids: Vec::new(),
            buffer_mib: 16,
            samples: None,
        }
    }
}

pub struct PerfRecorder {
    program: Program,
    child: Child,
    said: File,
    entry: Option<Entry>,
    proc: PathBuf,
    machine: String,
}

impl PerfRecorder {
    /// Starts perf, writing to `root/machine/perf.data`; `host` is the host's root directory. On return events are
    /// being recorded.
    ///
    /// # Errors
    /// If perf is not installed, or refuses; its own words are in the sentence.
    pub fn start(
        host: &Path,
        journal: &Journal,
        options: &PerfOptions,
        root: &Path,
        machine: &str,
    ) -> Result<Self, Error> {
        let directory = root.join(machine);
        let arguments = arguments(host, options)?;
        std::fs::create_dir_all(&directory).map_err(|error| Error::io(&directory, error))?;
        let mut pipes = Pipes::make(&directory)?;
        let mut entry = journal.begin("record")?;
        let mut command = options.program.command(&arguments);
        // The names of the pipes must not hold a comma, so they are relative.
        let (said, ours) = log()?;
        command.current_dir(&directory).stdout(Stdio::null()).stderr(said);
        // A recorder that is killed takes perf with it, which still writes the head of its file.
        tie(&mut command, Signal::INT);
        let child = match options.program.start(command) {
            Ok(child) => child,
            Err(error) => return entry.put_back_after(Err(error), journal.proc()),
        };
        // Only now has it a pid to note; as it waits to be enabled, it changes nothing before.
        let noted = Owner::of(journal.proc(), child.id()).and_then(|owner| entry.intend(Step::Process(owner)));
        let (program, proc) = (options.program.clone(), journal.proc().to_owned());
        let machine = machine.to_owned();
        let mut perf = Self { program, child, said: ours, entry: Some(entry), proc, machine };
        match noted.and_then(|()| perf.enable(&mut pipes)) {
            Ok(()) => Ok(perf),
            Err(error) => {
                let _ = perf.child.kill();
                let _ = perf.child.wait();
                perf.undone()?;
                Err(error)
            }
        }
    }

    /// What lies on disk until [`Recorder::stop`] makes it whole.
    pub fn partial(&self) -> Part {
        self.part(PartState::Partial)
    }

    fn part(&self, state: PartState) -> Part {
        Part {
            path: Path::new(&self.machine).join(OUTPUT),
            machine: self.machine.clone(),
            kind: PartKind::PerfData,
            clock: Some("mono".to_owned()),
            state,
        }
    }

    /// Tells perf to begin, and waits until it has.
    fn enable(&mut self, pipes: &mut Pipes) -> Result<(), Error> {
        let begin = Instant::now();
        pipes.control.write_all(b"enable\n").map_err(|error| Error::io(CONTROL, error))?;
        let mut answer = [0; 8];
        loop {
            match pipes.answer.read(&mut answer) {
                Ok(read) if answer[..read].starts_with(b"ack") => return Ok(()),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(Error::io(ANSWER, error)),
                _ => {}
            }
            self.poll()?;
            if begin.elapsed() > START_LIMIT {
                let seconds = START_LIMIT.as_secs();
                return Err(Error::TimedOut(format!(
                    "perf did not begin to record within {seconds} s; record fewer events"
                )));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The sentence for a perf that ended by itself.
    fn ended(&self, status: ExitStatus) -> Error {
        let mut said = vec![0; MOST_WORDS_BYTES];
        let length = self.said.read_at(&mut said, 0).unwrap_or(0);
        said.truncate(length);
        let said = String::from_utf8_lossy(&said);
        let complaint = said.lines().find(|line| line.contains("Error:") || line.contains("ermission"));
        self.program.failed(status, complaint.unwrap_or(&said))
    }

    fn undone(&mut self) -> Result<(), Error> {
        self.entry.take().map_or(Ok(()), |entry| entry.put_back(&self.proc))
    }
}

impl Recorder for PerfRecorder {
    fn name(&self) -> &str {
        "perf"
    }

    fn poll(&mut self) -> Result<(), Error> {
        match self.child.try_wait().map_err(|error| Error::io(&self.program.path, error))? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    fn stop(mut self: Box<Self>) -> Result<Vec<Part>, Error> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::INT); // it may have ended: its status tells
        }
        let status = self.program.wait(&mut self.child, STOP_LIMIT);
        self.undone()?;
        let status = status?;
        // perf ends itself by the signal that it was asked with, after its work is done.
        if !status.success() && status.signal() != Some(Signal::INT.as_raw()) {
            return Err(self.ended(status));
        }
        Ok(vec![self.part(PartState::Complete)])
    }
}

fn arguments(host: &Path, options: &PerfOptions) -> Result<Vec<String>, Error> {
    let events = Tracefs::find(host)?.path("events");
    let mut arguments = Vec::new();
    let samples = options.samples.as_ref();
    if let Some((kallsyms, modules)) = samples.and_then(|samples| samples.guest_symbols.as_ref()) {
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| Error::io(path, error));
        arguments.extend(["kvm", "--host", "--guest"].map(str::to_owned));
        arguments.push(format!("--guestkallsyms={}", absolute(kallsyms)?.display()));
        arguments.push(format!("--guestmodules={}", absolute(modules)?.display()));
    }
    arguments.extend(["record", "-k", "mono", "-m"].map(str::to_owned));
    arguments.push(format!("{}M", options.buffer_mib));
    if options.tids.is_empty() {
        arguments.push("-a".to_owned());
    } else {
        let tids: Vec<String> = options.tids.iter().map(u32::to_string).collect();
        arguments.extend(["-t".to_owned(), tids.join(",")]);
    }
    let mut any = samples.is_some();
    for selection in &options.events {
        for (system, name) in selection.names(&events)? {
            if !REFUSED.contains(&(&system, &name)) {
                arguments.extend(["-e".to_owned(), format!("{system}:{name}")]);
                any = true;
            }
        }
    }
    if !any {
        let events = events.display();
        return Err(Error::Absent(format!(
            "none of the events is in {events}: load kvm, or name others with --events"
        )));
    }
    if let Some(Samples { frequency_hz, .. }) = samples {
        // The frequency belongs to this event alone: as an option it would thin out the tracepoints as well.
        let has_counters = host.join("sys/bus/event_source/devices/cpu").exists();
        let event = if has_counters { "cycles" } else { "cpu-clock" };
        arguments.extend(["-e".to_owned(), format!("{event}/freq={frequency_hz}/")]);
    }
    let control = format!("fifo:{CONTROL},{ANSWER}");
    arguments.extend(["-D", "-1", "--control", &control, "-o", OUTPUT].map(str::to_owned));
    Ok(arguments)
}

/// Where perf complains: memory, for perf to write to and for us to read. Not a pipe, which would end perf before its
/// file is whole if we are killed.
fn log() -> Result<(Stdio, File), Error> {
    let memory = memfd_create("perf", MemfdFlags::CLOEXEC).map_err(|error| Error::io("memfd", error.into()))?;
    let ours = File::from(memory);
    let perfs = ours.try_clone().map_err(|error| Error::io("memfd", error))?;
    Ok((perfs.into(), ours))
}

/// Two pipes with names, gone when dropped.
struct Pipes {
    directory: PathBuf,
    control: File,
    answer: File,
}

impl Pipes {
    fn make(directory: &Path) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = directory.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .map_err(|error| Error::io(&path, error.into()))?;
            // Open for both, so that neither side waits for the other to come.
            let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let opened = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&path);
            opened.map_err(|error| Error::io(path, error))
        };
        Ok(Self { directory: directory.to_owned(), control: open(CONTROL)?, answer: open(ANSWER)? })
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        for name in [CONTROL, ANSWER] {
            let _ = std::fs::remove_file(self.directory.join(name)); // empty, and in our own recording
        }
    }
}
