//! Looks at the fold once a second for as long as the agent runs, and adds up what was between two looks.

use super::counters::Counters;
use super::identity::Identities;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use top::{Observer, Options};

/// From one look to the next. Rows of threads that ended are used again after one.
const EVERY: Duration = Duration::from_secs(1);

/// How soon it ends when the agent does.
const END_WITHIN: Duration = Duration::from_millis(50);

/// The look that goes on until it is dropped.
pub(crate) struct Continuous {
    counters: Arc<Mutex<Counters>>,
    is_exact: bool,
    floor: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Continuous {
    /// Begins to observe `host` by the best means that it allows.
    ///
    /// # Errors
    /// If there are none, not even /proc.
    pub(crate) fn start(host: PathBuf) -> anyhow::Result<Self> {
        let (counters, ends): (Arc<Mutex<Counters>>, Arc<AtomicBool>) = Default::default();
        let (tell, told) = channel();
        let thread = {
            let (counters, ends) = (Arc::clone(&counters), Arc::clone(&ends));
            std::thread::Builder::new().name("observe".to_owned()).spawn(move || watch(&host, &counters, &ends, &tell))
        };
        let thread = Some(thread.context("no thread to observe in")?);
        let (is_exact, floor) = told.recv().map_err(|_| anyhow!("the observer ended at once"))??;
        Ok(Self { counters, is_exact, floor, ends, thread })
    }

    pub(crate) fn counters(&self) -> Arc<Mutex<Counters>> {
        Arc::clone(&self.counters)
    }

    /// Whether every nanosecond is told.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// What its numbers stand on, in a line.
    pub(crate) fn floor(&self) -> &str {
        &self.floor
    }
}

impl Drop for Continuous {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A look that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// The observer stays in this thread: it maps what the kernel writes.
fn watch(host: &Path, counters: &Mutex<Counters>, ends: &AtomicBool, tell: &Sender<anyhow::Result<(bool, String)>>) {
    let options = Options { interrupts: true, measure: false, proc_only: false };
    let (mut observer, first) = match Observer::new(host, &options).and_then(|mut observer| {
        let first = observer.frame(None)?;
        Ok((observer, first))
    }) {
        Ok(begun) => begun,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let mut identities = Identities::new(host.to_owned());
    counters.lock().unwrap_or_else(PoisonError::into_inner).begin(observer.is_exact());
    let _ = tell.send(Ok((observer.is_exact(), floor(observer.is_exact(), &first.floor))));
    let began = Instant::now();
    let (mut last, mut complained) = (began, false);
    while !rest(last, ends) {
        let now = Instant::now();
        let since = now.duration_since(std::mem::replace(&mut last, now));
        match observer.frame(None) {
            Ok(frame) => {
                identities.meet(&frame.vcpus, now.duration_since(began));
                counters.lock().unwrap_or_else(PoisonError::into_inner).add(&frame.vcpus, since, &mut identities);
            }
            Err(error) if !complained => {
                complained = true;
                process::exit::complain(&error.context("observing failed, and is tried again"));
            }
            Err(_) => {}
        }
    }
}

/// Until the next look; true if there is none.
fn rest(last: Instant, ends: &AtomicBool) -> bool {
    while last.elapsed() < EVERY {
        if ends.load(Ordering::Relaxed) {
            return true;
        }
        std::thread::sleep(END_WITHIN.min(EVERY.saturating_sub(last.elapsed())));
    }
    ends.load(Ordering::Relaxed)
}

fn floor(is_exact: bool, lines: &[String]) -> String {
    let head = is_exact.then_some("every vCPU is observed all the time, by the fold in the kernel");
    // The last line is what looking has cost so far: nothing.
    let told = lines[..lines.len().saturating_sub(1)].iter().map(String::as_str);
    head.into_iter().chain(told).collect::<Vec<_>>().join("; ")
}
