//! Where the live side and an answer meet: `lab` records, `analysis` says what it was, and neither knows the other.

pub mod live;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod netns;
pub mod trial;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Becomes true on Ctrl-C, or when the program is asked to end.
pub fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
