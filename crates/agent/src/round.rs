//! One recording, from its beginning until it is counted.
//!
//! Recording and exporting are done by this program once more, as children: their memory is given back, what they change of the host is in the
//! journal, and a recorder that outlives a killed agent ends by itself.

use super::keep::Keep;
use analysis::facts::counted::Counted;
use analysis::{Answers, Case, Given};
use anyhow::{Context, anyhow, bail};
use base::recording::Recording;
use lab::program::tie;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// How often is looked whether a child has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Round<'a> {
    program: PathBuf,
    length_ns: u64,
    keep: &'a Keep,
    dataset: Option<&'a Path>,
    /// Recordings that may not be in the data set.
    unexported: Vec<PathBuf>,
    journal: OsString,
}

/// A finding: rule and severity.
pub(crate) type Found = (&'static str, &'static str);

pub(crate) struct Done {
    pub place: PathBuf,
    pub counted: Counted,
    pub findings: Vec<Found>,
    /// When it was made, seconds since 1970.
    pub created_s: u64,
    /// It is in the data set, where there is one.
    pub is_exported: bool,
}

impl<'a> Round<'a> {
    /// Recordings of `length_ns`, in the directory of `keep`.
    pub(crate) fn new(
        length_ns: u64,
        keep: &'a Keep,
        dataset: Option<&'a Path>,
        journal: &OsString,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        Ok(Self {
            program,
            length_ns,
            keep,
            dataset,
            unexported: keep.recordings(SystemTime::now())?,
            journal: journal.clone(),
        })
    }

    /// Records, counts, exports; `None` if a signal came before there was a recording.
    ///
    /// # Errors
    /// If nothing was recorded, or nothing of it could be counted. What was exported or not is no error: it is in the answer.
    pub(crate) fn run(&mut self, number: u32, stop: &AtomicBool) -> anyhow::Result<Option<Done>> {
        let now = SystemTime::now();
        // What an agent that was killed recorded last, or the data set could not take in the round before: once, before it is pruned.
        let mut unexported = std::mem::take(&mut self.unexported);
        unexported.retain(|place| place.exists());
        self.export(&unexported);
        self.keep.prune(self.keep.largest_bytes(now), now, None)?;
        let created_s = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let place = self.keep.place(now);
        let mut record = self.command("record");
        record.arg("--quiet").arg("--no-progress").arg("--seconds").arg(seconds(self.length_ns)).arg("-o").arg(&place);
        if number > 1 {
            // A test guest finds out what fires here; once is enough.
            record.arg("--no-self-check");
        }
        let recorded = self.end(record, Some(stop));
        if let Err(error) = recorded {
            // Half a recording is in the way of the next ones where the disk is full.
            let is_full = is_full(&self.keep.directory);
            let _ = std::fs::remove_dir_all(&place);
            if is_full && self.keep.make_room(now)? {
                return Err(error.context("the disk is full: the oldest recording was removed"));
            }
            return if stop.load(Ordering::Relaxed) { Ok(None) } else { Err(error) };
        }
        let counted = count(&place);
        let is_exported = self.export(std::slice::from_ref(&place));
        if self.dataset.is_some() && !is_exported {
            self.unexported.push(place.clone());
        }
        let (counted, findings) = counted?;
        Ok(Some(Done { place, counted, findings, created_s, is_exported }))
    }

    /// Adds to the data set, if there is one. What cannot be added is complained of. An agent that is to end may never run again, so what it
    /// has recorded is added before; Ctrl-C in a terminal does not reach the child.
    fn export(&self, places: &[PathBuf]) -> bool {
        let Some(dataset) = self.dataset.filter(|_| !places.is_empty()) else { return false };
        let mut export = self.command("export");
        export.arg("--no-progress").arg("--dataset").arg(dataset).args(places).process_group(0);
        self.end(export, None).inspect_err(process::exit::complain).is_ok()
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(name)
            .env("KVMSCOPE_JOURNAL", &self.journal)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // One that is killed takes its child with it, which then puts the host back as it was.
        tie(&mut command, Signal::INT);
        command
    }

    /// Runs it to its end, which `stop` brings sooner.
    fn end(&self, mut command: Command, stop: Option<&AtomicBool>) -> anyhow::Result<()> {
        let child = command.spawn().with_context(|| self.program.display().to_string())?;
        let (status, said) = ended(child, stop)?;
        if status.success() {
            return Ok(());
        }
        if said.is_empty() {
            let name = command.get_args().next().unwrap_or_default();
            bail!("kvmscope {}: {status}", name.display());
        }
        Err(anyhow!("{}", said.trim_end().trim_start_matches("kvmscope: ")))
    }
}

/// Its status and what it said on stderr.
fn ended(mut child: Child, stop: Option<&AtomicBool>) -> anyhow::Result<(ExitStatus, String)> {
    let heard = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut said = String::new();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut said); // what it said until then is all there is
            said
        })
    });
    let mut is_asked = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if !is_asked && stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            is_asked = true;
            // It may have ended in this moment.
            let _ = Pid::from_raw(child.id() as i32).map(|pid| kill_process(pid, Signal::INT));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let said = heard.and_then(|heard| heard.join().ok()).unwrap_or_default();
    Ok((status, said))
}

fn count(place: &Path) -> anyhow::Result<(Counted, Vec<Found>)> {
    let case = Case::new(analysis::open(Recording::open(place)?)?, Given::default());
    let Answers { sections, .. } = Answers::of(&case);
    let findings = sections.iter().flat_map(|section| &section.findings);
    let findings = findings.map(|finding| (finding.rule, finding.severity.name()));
    Ok((Counted::of(&case), findings.collect()))
}

/// `5`, `0.25`.
fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Less than a hundredth, or 16 MiB, is free there.
fn is_full(directory: &Path) -> bool {
    const LEAST_BYTES: u64 = 16 << 20;
    rustix::fs::statvfs(directory).is_ok_and(|about| {
        about.f_bavail.saturating_mul(about.f_frsize) < LEAST_BYTES || about.f_bavail < about.f_blocks / 100
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that is asked to end ends its recorder sooner, and waits for what adds the recording to a data set.
    #[test]
    fn whoever_may_be_stopped_is_and_no_other() {
        let child = |input: Stdio| {
            // Whoever started the tests in the background had them ignore this signal, and a shell leaves it so.
            let mut shell = Command::new("env");
            shell.args(["--default-signal=INT", "sh", "-c", "read line; echo told >&2"]);
            shell.stdin(input).stderr(Stdio::piped()).spawn().unwrap()
        };
        let stop = AtomicBool::new(true);
        let (status, said) = ended(child(Stdio::null()), None).unwrap();
        assert!(status.success() && said == "told\n", "{status}: {said}");
        // It reads what nobody writes, so that nothing else ends it.
        let (status, said) = ended(child(Stdio::piped()), Some(&stop)).unwrap();
        assert!(!status.success() && said.is_empty(), "{status}: {said}");
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(
            [seconds(5_000_000_000), seconds(250_000_000), seconds(1_000_000_001)],
            ["5", "0.25", "1.000000001"]
        );
    }
}
