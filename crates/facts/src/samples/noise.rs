//! What osnoise counted of a CPU's noise, period by period: sums, and who interfered how often.
//!
//! ```text
//!            runtime     noise     available  max single  HW NMI  IRQ softirq thread      the tracer's row, for each period
//!            1000000        190     99.98100           9  18   0 1007      18      1
//!   CPU  #59 53100000      8274     99.98441    277   23   0   9 53778      0    660      rtla's, for all, with the most of a period
//! ```
//! Sources: Documentation/trace/osnoise-tracer.rst and tools/tracing/rtla/src/osnoise_top.c, Linux 6.12.

use super::{Samples, Source};

/// Periods of one CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Noise {
    pub cpu: u32,
    pub periods: u64,
    /// How long the tracer's thread wanted the CPU, and for how much of that it did not have it.
    pub runtime_ns: u64,
    pub noise_ns: u64,
    /// The most noise of one period, and the longest single one.
    pub max_noise_ns: u64,
    pub max_single_ns: u64,
    /// How often the hardware, NMIs, interrupts, softirqs and threads interfered.
    pub interferences: [u64; 5],
    /// Interrupts, softirqs and threads were kept off, and nobody counted them.
    pub is_hardware_alone: bool,
}

impl Noise {
    /// The period in a row of the tracer, behind its time.
    pub(super) fn of_row(cpu: u32, event: &str) -> Option<Self> {
        let words: Vec<&str> = event.split_whitespace().collect();
        let [runtime, noise, available, single, counts @ ..] = words.as_slice() else { return None };
        let us = |word: &str| word.parse::<u64>().ok()?.checked_mul(1_000);
        available.parse::<f64>().ok().filter(|_| available.contains('.'))?;
        Some(Self {
            cpu,
            periods: 1,
            runtime_ns: us(runtime)?,
            noise_ns: us(noise)?,
            max_noise_ns: us(noise)?,
            max_single_ns: us(single)?,
            interferences: counts_of(counts)?,
            is_hardware_alone: false,
        })
    }

    /// A row of `rtla osnoise top`: CPU, periods, runtime, noise, share of the CPU, the most of a period and the longest. `rtla hwnoise` keeps
    /// interrupts off, and with them softirqs and threads, for which it has no columns.
    pub(super) fn of_rtla(row: &str, unit_ns: u64, is_hwnoise: bool) -> Option<Self> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [cpu, periods, runtime, noise, _, most, single, counts @ ..] = words.as_slice() else { return None };
        let length = |word: &str| word.parse::<u64>().ok()?.checked_mul(unit_ns);
        Some(Self {
            cpu: cpu.parse().ok()?,
            periods: periods.strip_prefix('#')?.parse().ok()?,
            runtime_ns: length(runtime)?,
            noise_ns: length(noise)?,
            max_noise_ns: length(most)?,
            max_single_ns: length(single)?,
            interferences: match counts {
                [hardware, nmi] if is_hwnoise => [hardware.parse().ok()?, nmi.parse().ok()?, 0, 0, 0],
                counts => counts_of(counts)?,
            },
            is_hardware_alone: is_hwnoise,
        })
    }

    pub(super) fn add(&mut self, next: &Self) {
        self.periods = self.periods.saturating_add(next.periods);
        self.runtime_ns = self.runtime_ns.saturating_add(next.runtime_ns);
        self.noise_ns = self.noise_ns.saturating_add(next.noise_ns);
        self.max_noise_ns = self.max_noise_ns.max(next.max_noise_ns);
        self.max_single_ns = self.max_single_ns.max(next.max_single_ns);
        for (sum, more) in self.interferences.iter_mut().zip(next.interferences) {
            *sum = sum.saturating_add(more);
        }
    }

    /// How much of the time the thread had the CPU, in percent as the programs print it.
    pub fn available(&self) -> Option<f64> {
        (self.runtime_ns > 0).then(|| 100.0 * (1.0 - self.noise_ns as f64 / self.runtime_ns as f64))
    }

    /// The interferences as samples: how many there were, and the longest.
    pub(super) fn samples(&self, unit_ns: u64) -> Samples {
        let thread = format!("CPU-{:03}", self.cpu);
        let mut samples = Samples { cpu: Some(self.cpu), unit_ns, ..Samples::new(Source::Osnoise, thread) };
        samples.between(None, Some(self.max_single_ns / unit_ns.max(1)));
        samples.only_extremes(self.interferences.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)));
        samples
    }
}

/// Hardware, NMI, interrupt, softirq, thread.
fn counts_of(words: &[&str]) -> Option<[u64; 5]> {
    let counts: Vec<u64> = words.iter().map_while(|word| word.parse().ok()).collect();
    counts.try_into().ok()
}
