//! What does a machine of the lab do that measures its own latency? It runs the programs that everybody uses for that.
//!
//! ```text
//! ready --(the host begins to record)--> record, one program after the other --> measured --(the host stops)--> hand over
//! ```
//! In: [`Measurement`], in the orders of the initramfs, and the words of the [`Page`] that it shares with its host. Out: the
//! results of the programs, unchanged, the machine's own trace, and what its clocks showed.

use crate::machine::inside::{BUFFER_KIB, Harvest, POLL, RECORDING, Work, details, hand_over, say};
use crate::machine::page::{Order, Page, Phase};
use base::recording::{Moment, Part, PartKind, PartState};
use lab::journal::Journal;
use lab::tracefs::{Plan, Selection, Tracefs, TracefsRecorder};
use lab::{Error, Recorder, clocks};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// What it calls itself: the guest of the host that records too.
pub(crate) const MACHINE: &str = "L1";
/// What the machine's own disturbances are told by, beside the events of every recording: the tracers of the programs
/// below have tracepoints (kernel/trace/trace_osnoise.c, Linux 6.1).
const NOISE: &str = "osnoise";
/// The trace's clock: that of the host, and a constant.
const CLOCK: &str = "x86-tsc";

/// To measure a machine's own latency.
pub(crate) const MEASURE: Work = Work { name: "measure", run: |orders| details::<Measurement>(orders)?.run() };

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub disk: String,
    pub programs: Vec<Measures>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measures {
    pub name: String,
    pub path: PathBuf,
    pub arguments: Vec<String>,
    pub leaves: Leaves,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Leaves {
    /// Something for a program after it.
    Nothing,
    /// It prints its result, which goes into the file of this name.
    Prints(String),
    /// It writes its result to a path of its own, and it goes into the file of this name.
    Writes(PathBuf, String),
}

impl Leaves {
    /// The name of its file in the recording.
    fn file(&self) -> Option<PathBuf> {
        match self {
            Leaves::Nothing => None,
            Leaves::Prints(name) | Leaves::Writes(_, name) => Some(Path::new(MACHINE).join("samples").join(name)),
        }
    }
}

impl Measurement {
    /// Measures, when the host says so, and hands over.
    fn run(&self) -> Result<(), Error> {
        let page = Page::of_this_machine()?;
        let root = Path::new(RECORDING);
        let tracefs = Tracefs::find(Path::new("/"))?;
        say("the guest is up");
        page.attend(Phase::Ready, Order::Measure);
        let mut plan = Plan { clock: Some(CLOCK.to_owned()), buffer_kib: BUFFER_KIB, ..Plan::default() };
        plan.events.extend(Selection::parse(NOISE));
        let mut clock_pairs = vec![clocks::pair(MACHINE, Moment::Begin)];
        let journal = Journal::new("/tmp/journal", "/proc");
        let mut recorder = TracefsRecorder::start(&tracefs, &journal, &plan, root, MACHINE)?;
        for program in &self.programs {
            say(&format!("{} runs in the guest", program.name));
            program.run(root, &mut recorder)?;
        }
        clock_pairs.push(clocks::pair(MACHINE, Moment::End));
        page.attend(Phase::Measured, Order::Finish);
        say("the guest packs its trace");
        let mut parts = Box::new(recorder).stop()?;
        let files = self.programs.iter().filter_map(|program| program.leaves.file());
        parts.extend(files.filter(|path| root.join(path).is_file()).map(|path| Part {
            path,
            machine: MACHINE.to_owned(),
            kind: PartKind::Samples,
            clock: None,
            state: PartState::Complete,
        }));
        hand_over(&self.disk, 0, root, &Harvest { parts, clock_pairs })
    }
}

impl Measures {
    /// Runs it to its end while the recorder does what piles up; its result goes below `root`.
    fn run(&self, root: &Path, recorder: &mut TracefsRecorder) -> Result<(), Error> {
        let made = |path: &Path| File::create(path).map_err(|error| Error::io(path, error));
        let (printed, complaints) = (Path::new("/tmp/printed"), Path::new("/tmp/complaints"));
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(made(printed)?).stderr(made(complaints)?);
        let mut child = command.spawn().map_err(|error| Error::io(&self.path, error))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| Error::io(&self.path, error))? {
                break status;
            }
            recorder.poll()?;
            std::thread::sleep(POLL);
        };
        if !status.success() {
            return Err(self.failed(status, complaints));
        }
        let Some(file) = self.leaves.file() else { return Ok(()) };
        let left = if let Leaves::Writes(path, _) = &self.leaves { path } else { printed };
        if !std::fs::metadata(left).is_ok_and(|file| file.len() > 0) {
            // jitterdebugger stores samples in a thread that a busy host may not let run before the end.
            say(&format!("{} left no result", self.name));
            return Ok(());
        }
        let to = root.join(file);
        let above = to.parent().unwrap_or(root);
        std::fs::create_dir_all(above).map_err(|error| Error::io(above, error))?;
        std::fs::copy(left, &to).map(drop).map_err(|error| Error::io(to, error))
    }

    /// The sentence for a program that failed, with its last words.
    fn failed(&self, status: ExitStatus, complaints: &Path) -> Error {
        let said = std::fs::read(complaints).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it gave no reason").to_owned();
        Error::Failed { program: self.name.clone(), status: status.to_string(), said }
    }
}
