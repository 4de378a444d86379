//! How does the machine record its own kernel?
//!
//! In an instance of tracefs of its own: it takes the pages of each CPU as `trace_pipe_raw` gives them, several times a
//! second, and at the end copies every text that describes them. The files keep tracefs' own names.
//!
//! ```text
//! cpu0.raw cpu1.raw ..         pages
//! stats/cpu0 ..                per_cpu/cpuN/stats
//! events/<group>/<event>       format texts
//! header_page header_event printk_formats saved_cmdlines trace_clock kallsyms uname
//! ```

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is recorded; a group stands for all its events.
const EVENTS: &[&str] = &["kvm", "sched/sched_switch", "sched/sched_waking", "irq", "timer/hrtimer_expire_entry"];
/// Per CPU; guests make a megabyte in a second of an emulated machine.
const BUFFER_KB: &str = "16384";
/// Often enough that no buffer fills, seldom enough not to be the busiest task.
const EVERY: Duration = Duration::from_millis(200);

/// A recording at work.
pub struct Capture {
    tracefs: PathBuf,
    instance: PathBuf,
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Result<(), Error>>,
}

/// Pages of all CPUs go here until they are taken.
const PAGES: &str = "/tmp/pages";

/// Begins to record.
pub fn start(tracefs: &Path, clock: &str) -> Result<Capture, Error> {
    let instance = tracefs.join("instances/kvmscope");
    fs::create_dir(&instance).map_err(|error| Error::io(&instance, error))?;
    put(&instance.join("tracing_on"), "0")?;
    put(&instance.join("trace_clock"), clock)?;
    put(&instance.join("buffer_size_kb"), BUFFER_KB)?;
    for event in EVENTS {
        put(&instance.join("events").join(event).join("enable"), "1")?;
    }
    fs::create_dir_all(PAGES).map_err(|error| Error::io(PAGES, error))?;
    let mut cpus = Vec::new();
    for cpu in numbered(&instance.join("per_cpu"), "cpu")? {
        let pipe = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let pipe =
            OpenOptions::new().read(true).custom_flags(nonblocking).open(&pipe).map_err(|e| Error::io(&pipe, e))?;
        let file = PathBuf::from(PAGES).join(format!("cpu{cpu}.raw"));
        cpus.push((pipe, File::create(&file).map_err(|error| Error::io(&file, error))?));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let reader = std::thread::spawn(move || {
        loop {
            // Asked first: what is read afterwards is all there is.
            let last = asked.load(Ordering::Acquire);
            for (pipe, file) in &mut cpus {
                drain(pipe, file)?;
            }
            if last {
                return Ok(());
            }
            std::thread::sleep(EVERY);
        }
    });
    put(&instance.join("tracing_on"), "1")?;
    Ok(Capture { tracefs: tracefs.to_owned(), instance, stop, reader })
}

impl Capture {
    /// Ends the recording and puts all of it into the new directory `taken`.
    pub fn stop(self, taken: &Path) -> Result<(), Error> {
        put(&self.instance.join("tracing_on"), "0")?;
        self.stop.store(true, Ordering::Release);
        self.reader.join().map_err(|_| Error::Unable("the thread that reads the trace died".to_owned()))??;
        fs::rename(PAGES, taken).map_err(|error| Error::io(taken, error))?;
        for (from, name) in [("events/header_page", "header_page"), ("events/header_event", "header_event")] {
            keep(&self.tracefs.join(from), &taken.join(name))?;
        }
        for name in ["printk_formats", "saved_cmdlines"] {
            keep(&self.tracefs.join(name), &taken.join(name))?;
        }
        keep(&self.instance.join("trace_clock"), &taken.join("trace_clock"))?;
        keep(Path::new("/proc/kallsyms"), &taken.join("kallsyms"))?;
        let uname = rustix::system::uname();
        let uname = [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
        let uname: Vec<_> = uname.iter().map(|part| part.to_string_lossy()).collect();
        put(&taken.join("uname"), &uname.join(" "))?;
        for cpu in numbered(&self.instance.join("per_cpu"), "cpu")? {
            let stats = self.instance.join(format!("per_cpu/cpu{cpu}/stats"));
            keep(&stats, &taken.join(format!("stats/cpu{cpu}")))?;
        }
        let mut groups = vec!["ftrace"];
        groups.extend(EVENTS.iter().map(|event| event.split('/').next().unwrap_or(event)));
        groups.dedup();
        for group in groups {
            formats(&self.tracefs.join("events").join(group), &taken.join("events").join(group))?;
        }
        Ok(())
    }
}

/// Keeps the format of each event of a group.
fn formats(group: &Path, taken: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(group).map_err(|error| Error::io(group, error))? {
        let event = entry.map_err(|error| Error::io(group, error))?;
        let format = event.path().join("format");
        if format.exists() {
            keep(&format, &taken.join(event.file_name()))?;
        }
    }
    Ok(())
}

/// Moves all pages that are there. A page is read whole or not at all.
fn drain(pipe: &mut File, file: &mut File) -> Result<(), Error> {
    let mut page = [0; 4096];
    loop {
        match pipe.read(&mut page) {
            Ok(0) => return Ok(()),
            Ok(bytes) => file.write_all(&page[..bytes]).map_err(|error| Error::io(PAGES, error))?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("trace_pipe_raw", error)),
        }
    }
}

/// The numbers N of entries `<prefix>N`, ascending.
fn numbered(directory: &Path, prefix: &str) -> Result<Vec<u32>, Error> {
    let entries = fs::read_dir(directory).map_err(|error| Error::io(directory, error))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<u32> = names.filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn put(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::io(path, error))
}

/// Copies a file that has no size until it is read. `header_page` and `header_event` answer one read alone, so a read
/// must be large (`show_header` in kernel/trace/trace_events.c, Linux 6.12).
fn keep(from: &Path, to: &Path) -> Result<(), Error> {
    let mut file = File::open(from).map_err(|error| Error::io(from, error))?;
    let (mut text, mut large) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut large).map_err(|error| Error::io(from, error))? {
            0 => break,
            bytes => text.extend_from_slice(&large[..bytes]),
        }
    }
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).map_err(|error| Error::io(above, error))?;
    }
    fs::write(to, text).map_err(|error| Error::io(to, error))
}
