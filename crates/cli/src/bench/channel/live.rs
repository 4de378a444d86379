//! What a bench measures right now, beside its bar: the setup, its rate, and gaps of its sides.

use base::number::{counted, duration, packets_per_s};
use channel_bench::Plan;
use channel_bench::gauges::{Dial, Shown};
use std::sync::{Mutex, PoisonError};

/// The page that the sides write to, and what the setups are called.
pub(super) struct Live {
    dial: Mutex<Dial>,
    ticks_per_ns: f64,
    names: Vec<String>,
}

impl Live {
    /// Of a plan, which is told of the page; none where nobody looks.
    pub(super) fn of(plan: &mut Plan, ns_per_tick: f64, wanted: bool) -> Option<Live> {
        let dial = Dial::new().ok().filter(|_| super::super::status::is_seen(wanted))?;
        plan.gauges = Some(dial.path());
        let names = plan.setups.iter().map(channel_bench::name).collect();
        Some(Live { dial: Mutex::new(dial), ticks_per_ns: 1.0 / ns_per_tick, names })
    }

    /// What is measured, in a line.
    pub(super) fn said(&self) -> Option<String> {
        let shown = self.dial.lock().unwrap_or_else(PoisonError::into_inner).look(self.ticks_per_ns)?;
        Some(line(self.names.get(shown.setup)?, &shown))
    }
}

fn line(name: &str, shown: &Shown) -> String {
    let rate = shown.mpps.map_or_else(|| "begins".to_owned(), |mpps| packets_per_s(mpps * 1e6));
    let gaps = match shown.gaps {
        0 => String::new(),
        gaps => format!(", {}, {} in all", counted(gaps, "gap", "gaps"), duration(shown.gap_ns as f64)),
    };
    format!("{name}: {rate}{gaps}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_rate_and_the_gaps_if_there_are_any() {
        let shown = Shown { setup: 0, mpps: None, gaps: 0, gap_ns: 0 };
        assert_eq!(line("ring, batch 1", &shown), "ring, batch 1: begins");
        let shown = Shown { mpps: Some(41.2), gaps: 2, gap_ns: 15_000, ..shown };
        assert_eq!(line("ring, batch 1", &shown), "ring, batch 1: 41.20 Mpps, 2 gaps, 15.0 us in all");
    }
}
