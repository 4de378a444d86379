//! Is SIGHUP ignored here, as below nohup? Then it is in the programs that a test starts, which leave it so.

/// True if it is, and the test says what it leaves out.
pub fn is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signal 1 is the lowest bit.
    let ignored = ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1));
    if ignored {
        println!("skipped: SIGHUP: it is ignored here");
    }
    ignored
}
