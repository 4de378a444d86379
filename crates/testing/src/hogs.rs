//! Programs that never rest, on one CPU.

use std::process::{Child, Command, Stdio};

/// They end when this is dropped.
pub struct Hogs(Vec<Child>);

impl Hogs {
    /// So many on `cpu`, each named `hogger`, and each at work.
    ///
    /// # Panics
    /// Where `setsid` or `taskset` do not start.
    #[must_use]
    pub fn on(cpu: u32, count: usize) -> Self {
        let hog = || {
            // In a session of its own: where the kernel groups threads by session, it weighs as much as all of another.
            let script = "printf hogger > /proc/self/comm; while :; do :; done";
            let mut hog = Command::new("setsid");
            hog.args(["taskset", "-c", &cpu.to_string(), "bash", "-c", script]).stdin(Stdio::null());
            hog.spawn().expect("setsid and taskset start")
        };
        let hogs = Self((0..count).map(|_| hog()).collect());
        for hog in &hogs.0 {
            let comm = format!("/proc/{}/comm", hog.id());
            crate::wait_for("a hog at work", || std::fs::read_to_string(&comm).is_ok_and(|name| name == "hogger\n"));
        }
        hogs
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|hog| drop((hog.kill(), hog.wait())));
    }
}
