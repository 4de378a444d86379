//! Threads of this process that stay in a network namespace until they are told to end.
//!
//! A namespace belongs to a thread, not to a process (setns(2)): a socket lies in the namespace of the thread that made it.

use lab::Error;
use lab::program::start_inside;
use rustix::thread::{LinkNameSpaceType, gettid, move_into_link_name_space, set_name};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Where `ip netns add` puts namespaces (ip-netns(8)).
const NAMESPACES: &str = "/run/netns";

/// Threads, and the word that ends them.
#[derive(Debug)]
pub(super) struct WorkerThreads {
    stop: Stop,
    trouble: Arc<Mutex<Option<String>>>,
    threads: Vec<JoinHandle<()>>,
}

/// True once all is to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl WorkerThreads {
    pub(super) fn new() -> Self {
        Self { stop: Stop::default(), trouble: Arc::default(), threads: Vec::new() }
    }

    /// Starts a thread of that name. In its namespace, if it has one, it gets ready by `prepare`, and then does `work`;
    /// returns its id once it is ready.
    pub(super) fn start<T, P, W>(
        &mut self,
        name: &str,
        namespace: Option<&str>,
        prepare: P,
        work: W,
    ) -> Result<u32, Error>
    where
        P: FnOnce() -> Result<T, Error> + Send + 'static,
        W: FnOnce(T, &Stop) -> Result<(), Error> + Send + 'static,
    {
        let (tell, told) = sync_channel(1);
        let (stop, trouble) = (self.stop.clone(), Arc::clone(&self.trouble));
        let name = CString::new(name).map_err(|error| Error::Malformed(error.to_string()))?;
        let namespace = namespace.map(str::to_owned);
        self.threads.push(std::thread::spawn(move || {
            let ready = set_name(&name).map_err(|error| Error::refused("the name of a thread", error));
            let ready = ready.and_then(|()| namespace.as_deref().map_or(Ok(()), enter)).and_then(|()| prepare());
            match ready {
                Ok(prepared) => {
                    let _ = tell.send(Ok(gettid().as_raw_nonzero().get().unsigned_abs()));
                    if let Err(error) = work(prepared, &stop)
                        && !stop.asked()
                    {
                        trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
                    }
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        }));
        told.recv().map_err(|_| Error::Died("a thread of the bench ended before it was ready".to_owned()))?
    }

    /// Why a thread ended before it was told to.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all threads and waits for them.
    pub(super) fn end(self) {
        self.stop.0.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

/// The same command in a network namespace, with a `/sys` that shows it.
pub(super) fn within(namespace: &str, command: &Command) -> Command {
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", namespace]).arg(command.get_program()).args(command.get_args());
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside
}

/// Has a program start in a network namespace. With the files below `/sys` of the one that starts it: `within` gives it its own.
pub(crate) fn inside(command: &mut Command, namespace: &str) -> Result<(), Error> {
    let path = Path::new(NAMESPACES).join(namespace);
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    start_inside(command, file.into());
    Ok(())
}

/// Moves this thread into a network namespace.
pub(crate) fn enter(namespace: &str) -> Result<(), Error> {
    let path = Path::new(NAMESPACES).join(namespace);
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| Error::Denied(format!("{}: {error}; entering a namespace needs root", path.display())))
}
