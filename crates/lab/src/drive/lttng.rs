//! LTTng: a session of our own, from `create` to `destroy`.
//!
//! ```text
//! list -> create -> enable-channel -> enable-event -> add-context -> start     stop -> destroy
//! what       |      4 buffers of 4 MiB     what is wanted and offered,  |
//! there is   noted in the journal          tid of each event            <machine>/ctf/
//! ```
//! The user's current session stays as it is: `lttng create` notes the new one in a file below `LTTNG_HOME`, which is
//! the recording's directory here. The session daemon is used, never started. Source: lttng(1) and its commands, 2.13.

use crate::journal::{Entry, Journal, Step};
use crate::program::{Program, Ran};
use crate::{Error, Recorder};
use base::recording::{Part, PartKind, PartState};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Stopping waits for buffers to be written.
const LIMIT: Duration = Duration::from_secs(120);

/// The channel's name.
const CHANNEL: &str = "kvmscope";

/// Where the trace lies in the machine's directory.
const OUTPUT: &str = "ctf";

/// The file in which `lttng create` notes the current session.
const NOTE: &str = ".lttngrc";

/// Events that are taken where they are offered; what ends in `*` is the beginning of names. Names as LTTng's modules
/// 2.13 have them.
const WANTED: &str = "kvm_* sched_switch sched_waking sched_wakeup sched_wakeup_new sched_migrate_task sched_process_fork sched_process_exec \
    sched_process_exit irq_handler_entry irq_handler_exit irq_softirq_entry irq_softirq_exit timer_hrtimer_expire_entry timer_hrtimer_expire_exit x86_irq_vectors_*";

/// Never taken: the probe of LTTng 2.13 reads through a pointer that Linux 6.1 leaves empty, and the kernel crashes.
const NEVER: &[&str] = &["kvm_mmio"];

const NO_DAEMON: &str =
    "LTTng's session daemon does not run; start it: systemctl start lttng-sessiond, or lttng-sessiond --daemonize";

const NO_MODULES: &str = "LTTng offers no kernel events here; the Debian package lttng-modules-dkms brings its modules: \
                          install it, then modprobe lttng-tracer and restart lttng-sessiond";

#[derive(Debug, Clone)]
pub struct LttngOptions {
    pub program: Program,
    /// More events, by LTTng's names; what ends in `*` is the beginning of names.
    pub events: Vec<String>,
    pub buffer_size: String,
    /// Buffers of each CPU.
    pub buffers: u32,
}

impl Default for LttngOptions {
    fn default() -> Self {
        let program = Program::new("lttng", "lttng-tools");
        Self { program, events: Vec::new(), buffer_size: "4M".to_owned(), buffers: 4 }
    }
}

pub struct LttngRecorder {
    lttng: Lttng,
    session: String,
    events: Vec<String>,
    entry: Option<Entry>,
    proc: PathBuf,
    machine: String,
}

/// The program, and where it may write its note.
struct Lttng {
    program: Program,
    home: PathBuf,
}

impl LttngRecorder {
    /// Starts a session that writes to `root/machine/ctf/`. On return events are being recorded.
    ///
    /// # Errors
    /// If LTTng or its kernel modules are missing, or if it refuses; then no session is left behind.
    pub fn start(journal: &Journal, options: &LttngOptions, root: &Path, machine: &str) -> Result<Self, Error> {
        let absolute = |path: PathBuf| std::path::absolute(&path).map_err(|error| Error::io(path, error));
        let home = absolute(root.join(machine))?;
        std::fs::create_dir_all(&home).map_err(|error| Error::io(&home, error))?;
        let output = home.join(OUTPUT);
        let lttng = Lttng { program: options.program.clone(), home };
        let events = chosen(&lttng.run(&["list", "--kernel"])?.stdout, &options.events)?;
        let mut entry = journal.begin("record")?;
        let session = format!("kvmscope-{}", entry.id);
        let begun = entry
            .intend(Step::LttngSession { name: session.clone() })
            .and_then(|()| lttng.begin(&session, &output, &events, options));
        let (proc, machine) = (journal.proc().to_owned(), machine.to_owned());
        let mut recorder = Self { lttng, session, events, entry: Some(entry), proc, machine };
        match begun {
            Ok(()) => Ok(recorder),
            Err(error) => {
                let _ = recorder.end(); // the first thing that failed is what the user should hear
                Err(error)
            }
        }
    }

    /// What lies on disk until [`Recorder::stop`] makes it whole.
    pub fn partial(&self) -> Part {
        self.part(PartState::Partial)
    }

    pub fn events(&self) -> &[String] {
        &self.events
    }

    fn part(&self, state: PartState) -> Part {
        Part {
            path: Path::new(&self.machine).join(OUTPUT),
            machine: self.machine.clone(),
            kind: PartKind::Ctf,
            clock: Some("monotonic".to_owned()),
            state,
        }
    }

    /// Destroys the session, and with it nothing that is on disk.
    fn end(&mut self) -> Result<(), Error> {
        let destroyed = self.lttng.run(&["destroy", &self.session]);
        let _ = std::fs::remove_file(self.lttng.home.join(NOTE)); // not there if the session never was
        let destroyed = destroyed.map(drop);
        match self.entry.take() {
            Some(entry) => entry.put_back_after(destroyed, &self.proc),
            None => destroyed,
        }
    }
}

impl Recorder for LttngRecorder {
    fn name(&self) -> &str {
        "lttng"
    }

    fn stop(mut self: Box<Self>) -> Result<Vec<Part>, Error> {
        let stopped = self.lttng.run(&["stop", &self.session]);
        self.end()?;
        stopped?;
        Ok(vec![self.part(PartState::Complete)])
    }
}

impl Lttng {
    fn run(&self, arguments: &[&str]) -> Result<Ran, Error> {
        // A daemon that we started would stay behind.
        let mut command = self.program.command(&[&["--no-sessiond"], arguments].concat());
        command.env("LTTNG_HOME", &self.home);
        self.program.finish(command, LIMIT).map_err(|error| {
            // What lttng 2.13 says, and what helps.
            let helps = [("No session daemon", NO_DAEMON), ("Kernel tracer not available", NO_MODULES)];
            let found = helps.iter().find(|(words, _)| error.is_failure_saying(words));
            found.map_or(error, |(_, sentence)| Error::Absent((*sentence).to_owned()))
        })
    }

    fn begin(&self, session: &str, output: &Path, events: &[String], options: &LttngOptions) -> Result<(), Error> {
        let output = format!("--output={}", output.display());
        let (of, channel) = (format!("--session={session}"), format!("--channel={CHANNEL}"));
        let (size, count) =
            (format!("--subbuf-size={}", options.buffer_size), format!("--num-subbuf={}", options.buffers));
        self.run(&["create", session, &output])?;
        self.run(&["enable-channel", "--kernel", &of, &size, &count, CHANNEL])?;
        self.run(&["enable-event", "--kernel", &of, &channel, &events.join(",")])?;
        self.run(&["add-context", "--kernel", &of, &channel, "--type=tid"])?;
        self.run(&["start", session]).map(drop)
    }
}

/// Those of the events that `lttng list --kernel` names which are wanted.
fn chosen(list: &str, more: &[String]) -> Result<Vec<String>, Error> {
    let offered: Vec<&str> = list
        .lines()
        .filter(|line| line.contains("(type: tracepoint)"))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    if offered.is_empty() {
        return Err(Error::Absent(NO_MODULES.to_owned()));
    }
    if let Some(refused) = more.iter().find(|name| NEVER.contains(&name.as_str())) {
        return Err(Error::WrongUse(format!("LTTng's event {refused} has crashed kernels (Linux 6.1); leave it out")));
    }
    let fits = |name: &str, pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    if let Some(missing) = more.iter().find(|pattern| !offered.iter().any(|name| fits(name, pattern))) {
        return Err(Error::WrongUse(format!(
            "LTTng offers no kernel event {missing}; `lttng list --kernel` shows all"
        )));
    }
    let wanted = |name: &&str| {
        let mut patterns = WANTED.split(' ').chain(more.iter().map(String::as_str));
        !NEVER.contains(name) && patterns.any(|pattern| fits(name, pattern))
    };
    Ok(offered.into_iter().filter(wanted).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "Kernel events:\n-------------\n      \
        kvm_x86_exit (loglevel: TRACE_EMERG (0)) (type: tracepoint)\n      \
        kvm_mmio (loglevel: TRACE_EMERG (0)) (type: tracepoint)\n      \
        sched_switch (loglevel: TRACE_EMERG (0)) (type: tracepoint)\n      \
        sched_switching (loglevel: TRACE_EMERG (0)) (type: tracepoint)\n      \
        block_rq_issue (loglevel: TRACE_EMERG (0)) (type: tracepoint)\n";

    #[test]
    fn what_is_wanted_and_offered_is_taken_but_never_what_crashes() {
        assert_eq!(chosen(LIST, &[]).unwrap(), ["kvm_x86_exit", "sched_switch"]);
        assert_eq!(chosen(LIST, &["block_*".into()]).unwrap(), ["kvm_x86_exit", "sched_switch", "block_rq_issue"]);
        for (more, words) in [("kvm_mmio", "has crashed kernels"), ("net_x", "offers no kernel event net_x")] {
            assert!(chosen(LIST, &[more.into()]).unwrap_err().to_string().contains(words));
        }
        assert!(chosen("Kernel events:\nNone\n", &[]).unwrap_err().to_string().contains("lttng-modules-dkms"));
    }
}
