//! Programs that never rest, on one CPU; they end with the test.

use std::process::{Child, Command, Stdio};

pub struct Hogs(Vec<Child>);

impl Hogs {
    pub fn on(cpu: u32, count: usize) -> Self {
        let hog = || {
            // In a session of its own: where the kernel groups threads by session, it weighs as much as all of another.
            let script = "echo hogger > /proc/self/comm; while :; do :; done";
            let mut hog = Command::new("setsid");
            hog.args(["taskset", "-c", &cpu.to_string(), "bash", "-c", script]).stdin(Stdio::null());
            hog.spawn().expect("setsid and taskset start")
        };
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|hog| drop((hog.kill(), hog.wait())));
    }
}
