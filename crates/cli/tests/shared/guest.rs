//! A guest of our own at work, in this process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A test guest that works until it is told to end.
pub struct AtWork {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl AtWork {
    /// On one CPU or any, leaving its guest so often before it begins anew; `None`, and the reason printed, where none can run.
    #[cfg(target_arch = "x86_64")]
    pub fn guest_on(cpu: Option<u32>, rounds: u32) -> Option<Self> {
        use lab::guest::{Guest, open, programs};
        let kvm = open(Path::new("/dev/kvm")).inspect_err(|error| println!("skipped: guest: {error}")).ok()?;
        let enough = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&enough);
        let thread = std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                lab::setting::thread::set_affinity(lab::setting::thread::own(), &base::CpuSet::one(cpu)).unwrap();
            }
            while !over.load(Ordering::Relaxed) {
                let program = programs::named("port-out").unwrap();
                Guest::new(&kvm).unwrap().run(program, rounds, Duration::from_secs(60)).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Some(Self { enough, thread })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn guest_on(_: Option<u32>, _: u32) -> Option<Self> {
        println!("skipped: guest: the test guests are x86 code");
        None
    }

    pub fn ends_well(self) -> bool {
        self.enough.store(true, Ordering::Relaxed);
        self.thread.join().is_ok()
    }
}
