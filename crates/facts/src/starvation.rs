//! When is a thread starved? One measure, one limit and one rule for all who look at threads that wait.
//!
//! In: what a thread ran and how long it was runnable, as shares of the time (`schedstat`, twice). Who looks: `placement` at the
//! threads of a machine's snapshots, `contention` at those of a load that is measured now.

/// Waiting over wanting, above which a thread is starved: our own limit.
pub const STARVED: f64 = 0.2;

/// Share of a CPU that a thread must want to count at all: our own limit.
pub const FLOOR: f64 = 0.05;

/// The rule's name.
pub const RULE: &str = "PLC-STARVED";

/// Unit of what it costs: what all starved threads waited, by the time in which they did.
pub const UNIT: &str = "CPUs short";

pub const WHY: &str = "The thread was runnable and got no CPU; whoever it serves lost that time. Caveat: a thread that is moved \
    starves again if its new CPU fills up; measure again after the move.";

pub const SOURCE: &str = "Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat, Linux 6.12; the limits of 0.2 and \
                          5 % are our own";

/// Whether a thread is starved that ran and waited for these shares of the time.
pub fn is_starved(run: f64, wait: f64) -> bool {
    let wish = run + wait;
    wish > FLOOR && wait > STARVED * wish
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_counts_against_what_was_wanted() {
        assert!(is_starved(0.3, 0.1) && !is_starved(0.9, 0.1) && !is_starved(0.0, 0.04));
    }
}
