//! Runs other people's programs: with a time limit, their output kept, and a sentence when they are missing or fail.
//!
//! What they print is parsed, so they print it in English: [`untranslated`] is the one place that says so.

use crate::Error;
use rustix::io::FdFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::{CString, OsStr};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a program that runs is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// More output than this is cut; domain descriptions are the longest we ask for.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Program {
    /// Its name, looked for in `PATH`, or a path.
    pub path: PathBuf,
    pub package: &'static str,
}

/// What a program left.
#[derive(Debug, Clone)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// A program of that name or path.
    pub fn new(path: impl Into<PathBuf>, package: &'static str) -> Self {
        Self { path: path.into(), package }
    }

    /// The program with these arguments, in a process group of its own: Ctrl-C is for us, and we end it as it wants.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(&self.path);
        untranslated(&mut command).args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end; it must say that all went well.
    ///
    /// # Errors
    /// If it is not there, ends with another status than 0, or takes longer than `limit`; the sentence says which.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A], limit: Duration) -> Result<Ran, Error> {
        self.finish(self.command(arguments), limit)
    }

    /// What it prints and how it ends, whichever way; for programs that are quick.
    ///
    /// # Errors
    /// If it could not be run: the operating system's reason, by which a missing program can be told.
    pub fn output<A: AsRef<OsStr>>(&self, arguments: &[A]) -> std::io::Result<Output> {
        self.command(arguments).output()
    }

    /// The same for a [`Program::command`] that was changed.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn finish(&self, command: Command, limit: Duration) -> Result<Ran, Error> {
        let mut child = self.start(command)?;
        let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let status = self.wait(&mut child, limit)?;
        let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
        let ran = Ran { status, stdout: text(stdout), stderr: text(stderr) };
        if ran.status.success() { Ok(ran) } else { Err(self.failed(ran.status, &ran.stderr)) }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it is not there or cannot be run.
    pub fn start(&self, mut command: Command) -> Result<Child, Error> {
        command.spawn().map_err(|error| Error::not_started(self.path.display(), self.package, &error))
    }

    /// Waits for its end, and kills it after `limit`.
    ///
    /// # Errors
    /// If it took longer.
    pub fn wait(&self, child: &mut Child, limit: Duration) -> Result<ExitStatus, Error> {
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|error| Error::io(&self.path, error))? {
                return Ok(status);
            }
            if begin.elapsed() >= limit {
                let _ = child.kill();
                let _ = child.wait();
                let (path, seconds) = (self.path.display(), limit.as_secs_f64());
                return Err(Error::TimedOut(format!("{path} had not ended after {seconds} s and was killed")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The sentence for a program that failed; its own last words are part of it.
    pub fn failed(&self, status: ExitStatus, stderr: &str) -> Error {
        let words = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gave no reason");
        Error::Failed { program: self.path.display().to_string(), status: status.to_string(), said: words.to_owned() }
    }
}

/// Fails with the package that brings it where no directory of `PATH` has a program: for those that are started by others.
///
/// # Errors
/// [`Error::Missing`].
pub fn installed(name: &str, package: &str) -> Result<(), Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    is_there.then_some(()).ok_or_else(|| Error::Missing { program: name.to_owned(), package: package.to_owned() })
}

/// Has a program print in English, numbers with a point, whatever the user's language: `LC_ALL` goes before all other
/// variables of the locale (locale(7)), and `C` also overrides `LANGUAGE` (gettext's manual, 2.3.3).
pub fn untranslated(command: &mut Command) -> &mut Command {
    command.env("LC_ALL", "C")
}

/// CPU time of a process and of its children that it waited for, by its file `stat`.
///
/// Source: proc(5), fields utime, stime, cutime and cstime of `stat`, in ticks of sysconf(_SC_CLK_TCK).
///
/// # Errors
/// If the file cannot be read, or is of another kind.
pub fn cpu_time(stat: &Path) -> Result<Duration, Error> {
    let text = std::fs::read_to_string(stat).map_err(|error| Error::io(stat, error))?;
    let ticks = ticks(&text).ok_or_else(|| Error::io(stat, ErrorKind::InvalidData.into()))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

fn ticks(stat: &str) -> Option<u64> {
    // The name, in brackets, may hold blanks and brackets.
    let (_, behind) = stat.rsplit_once(") ")?;
    // utime is field 14, and the first one behind the name is field 3.
    let fields: Vec<u64> = behind.split(' ').skip(11).take(4).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (fields.len() == 4).then(|| fields.iter().sum())
}

/// Has the kernel send `signal` to the program once the thread that starts it ends, in whatever way.
pub fn tie(command: &mut Command, signal: Signal) {
    // SAFETY: between fork and exec only one system call is made, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || Ok(set_parent_process_death_signal(Some(signal))?));
    }
}

/// Leaves the file of that number open in the program, which finds it under the same number; it must stay open until then.
pub fn lend(command: &mut Command, file: RawFd) {
    // SAFETY: as in `tie`; the file is open until the program has started.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(file), FdFlags::empty())?));
    }
}

/// Starts the program in the network namespace that `namespace` is the file of. Only root may.
pub fn start_inside(command: &mut Command, namespace: OwnedFd) {
    // SAFETY: as in `tie`; the file is open for as long as the closure is there.
    unsafe {
        command.pre_exec(move || Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?));
    }
}

/// Gives the program a file system of its own at `place`, of so many bytes, in memory: nobody else sees it, and it is gone with the program
/// (mount_namespaces(7)). Only root may.
///
/// # Errors
/// If `place` cannot be a path of the kernel's.
pub fn confine(command: &mut Command, place: &Path, bytes: u64) -> Result<(), Error> {
    let place = CString::new(place.as_os_str().as_bytes());
    let place = place.map_err(|error| Error::Malformed(format!("a path with a zero in it: {error}")))?;
    let size = CString::new(format!("size={bytes}")).unwrap_or_default();
    let done = |result: libc::c_int| if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) };
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: between fork and exec only system calls are made, which allocate nothing and take no lock; strings end in a zero and live in
    // the closure; what the calls change is the program's own.
    unsafe {
        command.pre_exec(move || {
            done(libc::unshare(libc::CLONE_NEWNS))?;
            done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
            done(libc::mount(c"none".as_ptr(), place.as_ptr(), c"tmpfs".as_ptr(), 0, size.as_ptr().cast()))
        });
    }
    Ok(())
}

/// Reads what a program prints, so that it never waits for us.
fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let mut stream = stream.take(MOST_OUTPUT_BYTES);
            let _ = stream.read_to_end(&mut bytes); // what came before an error is kept
            let _ = std::io::copy(&mut stream.into_inner(), &mut std::io::sink());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn output_is_kept_and_failure_is_a_sentence() {
        let shell = Program::new("sh", "dash");
        assert_eq!(shell.run(&["-c", "echo yes; echo no >&2"], LIMIT).unwrap().stdout, "yes\n");
        let error = shell.run(&["-c", "echo why >&2; exit 3"], LIMIT).unwrap_err().to_string();
        assert_eq!(error, "sh failed (exit status: 3): why");
    }

    #[test]
    fn what_is_parsed_is_printed_in_english() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("virsh");
        std::fs::write(&path, "#!/bin/sh\nenv\n").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let program = Program::new(&path, "none");
        let mut germans = program.command::<&str>(&[]);
        germans.env("LANG", "de_DE.UTF-8").env("LC_MESSAGES", "de_DE.UTF-8");
        let english = |printed: &str| printed.lines().any(|line| line == "LC_ALL=C");
        assert!(english(&program.finish(germans, LIMIT).unwrap().stdout));
        assert!(english(&program.run::<&str>(&[], LIMIT).unwrap().stdout));
        assert!(english(&String::from_utf8_lossy(&program.output::<&str>(&[]).unwrap().stdout)));
    }

    #[test]
    fn cpu_times_stand_behind_a_name_that_may_hold_anything() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 200 0 0 7 5 30 8 20 0 1 0 100 1000 10 18446744073709551615";
        assert_eq!(ticks(stat), Some(50));
        assert_eq!((ticks("42 (a) S 1"), ticks("")), (None, None));
        assert!(cpu_time(Path::new("/proc/self/cmdline")).is_err() && cpu_time(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let error = Program::new("sleep", "coreutils").run(&["60"], Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("had not ended after 0.02 s"), "{error}");
    }

    #[test]
    fn a_tied_program_ends_with_the_thread_that_started_it() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            tie(command.arg("60"), Signal::TERM);
            command.spawn().unwrap()
        });
        let mut child = started.join().unwrap();
        let status = Program::new("sleep", "coreutils").wait(&mut child, LIMIT).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::TERM.as_raw()));
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = Program::new("/nonexistent/lttng", "lttng-tools").run(&[""], LIMIT).unwrap_err().to_string();
        assert_eq!(error, "/nonexistent/lttng is not installed; it is in the Debian package lttng-tools");
    }
}
