//! What a software switch spends on a packet, and how its polling threads share the work.

/// Cycles that a switch takes for one hop of a packet, affine in its size: polling, lookup, and the copy into the next guest.
/// What a VNF takes for a packet has the same form.
#[derive(Debug, Clone, PartialEq)]
pub struct HopCost {
    /// Of a frame without bytes.
    pub cycles: f64,
    pub cycles_per_byte: f64,
    /// By which factor each may be off, at most: 1.1 is 10 %.
    pub spread: f64,
    /// Where the numbers come from; without a source they are assumed.
    pub source: Option<String>,
}

impl HopCost {
    /// Cycles for a frame of `bytes`.
    pub fn of(&self, bytes: f64) -> f64 {
        self.cycles + self.cycles_per_byte * bytes
    }

    /// The line through `cycles` at 64 bytes that rises by `per_byte` of that for each further byte.
    #[cfg(test)]
    pub(crate) fn through_64_bytes(cycles: f64, per_byte: f64, spread: f64, source: Option<String>) -> Self {
        Self { cycles: cycles * (1.0 - 64.0 * per_byte), cycles_per_byte: cycles * per_byte, spread, source }
    }
}

/// The largest load of a polling thread, where `queues` with these loads are shared out over `threads`: the heaviest first, each to
/// the thread that has least, as `pmd-rxq-assign=cycles` does (dpif-netdev.c, Open vSwitch 3.1). 0 threads carry nothing.
pub(crate) fn heaviest(mut queues: Vec<f64>, threads: u32) -> f64 {
    if threads == 0 && !queues.is_empty() {
        return f64::INFINITY;
    }
    queues.sort_by(|a, b| b.total_cmp(a));
    let mut loads = vec![0.0_f64; (threads as usize).min(queues.len())];
    for queue in queues {
        if let Some(least) = loads.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *least += queue;
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_queues_make_a_staircase_over_threads() {
        let nine = |threads| heaviest(vec![1.0; 9], threads);
        assert_eq!((1..=10).map(nine).collect::<Vec<_>>(), [9.0, 5.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        assert_eq!((heaviest(vec![1.0; 2], 0), heaviest(Vec::new(), 0)), (f64::INFINITY, 0.0));
    }

    #[test]
    fn a_port_and_many_guests_fill_one_thread_twice() {
        let queues = |guests: u32| {
            let of_guests = (0..guests).map(move |_| 1.0 / f64::from(guests));
            std::iter::once(1.0).chain(of_guests).collect::<Vec<_>>()
        };
        assert!((heaviest(queues(8), 1) - 2.0).abs() < 1e-12);
        assert!((heaviest(queues(8), 2) - 1.0).abs() < 1e-12, "in and out are served by different threads");
    }

    #[test]
    fn the_slope_of_the_talk_makes_a_long_frame_cost_2_3_short_ones() {
        let cost = HopCost::through_64_bytes(250.0, 0.00088, 1.1, None);
        assert!((cost.of(64.0) - 250.0).abs() < 1e-9 && (cost.of(1518.0) / cost.of(64.0) - 2.28).abs() < 0.005);
    }
}
