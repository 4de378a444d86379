//! Table `clocks`: what it costs to read each clock, whether the vDSO serves it, and why not.
//!
//! ```text
//! clock_gettime costs about as much as the system call  -->  the vDSO hands over to the kernel
//! ```
//! Sources of the causes: vdso(7); arch/x86/kernel/{tsc,hpet,kvmclock}.c, drivers/clocksource/{acpi_pm,hyperv_timer}.c and
//! kernel/time/posix-cpu-timers.c (Linux 6.12).

use base::number::{duration, thousands};
use base::{Cell, Table, TableSpec, shown, table};
use facts::benches::{BenchRun, Benches};
use facts::statistics::{launches, spread};

/// A clock that costs less than this share of a system call is read in the process itself.
const SERVED: f64 = 0.5;

/// Clocks that no clocksource can bring into the vDSO.
const KERNEL_ONLY: &[&str] = &["PROCESS_CPUTIME_ID", "THREAD_CPUTIME_ID"];

/// Why a clocksource is slow, by its name.
const CAUSES: &[(&str, &str)] = &[
    ("hpet", "HPET is a device: in a guest each read exits, mostly to the VMM; use tsc"),
    ("acpi_pm", "the ACPI timer is a port: in a guest each read exits, mostly to the VMM; use tsc"),
    ("hyperv_clocksource_msr", "each read exits to Hyper-V; the TSC page (hyperv_clocksource_tsc_page) needs no exit"),
    ("refined-jiffies", "the kernel found no reliable clock and counts timer ticks"),
    ("jiffies", "the kernel found no reliable clock and counts timer ticks"),
    (
        "kvm-clock",
        "KVM does not mark its clock as stable (CPUID 0x40000001, bit 24): at the level below, the clocksource must \
         be tsc, or Hyper-V's TSC page",
    ),
    ("tsc", "the clocksource allows it: the vDSO is disabled, or something intercepts system calls"),
];

/// One clock over all launches.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub machine: String,
    pub clock: String,
    /// The clocksource behind it.
    pub source: Option<String>,
    /// Whether it is read without a system call; unknown for what is no clock of the kernel.
    pub vdso: Option<bool>,
    /// Cycles by the C library, a median for each launch.
    pub library: Vec<f64>,
    /// Cycles by system call, the same.
    pub kernel: Vec<f64>,
    /// Nanoseconds of a tick of the counter.
    pub ns_per_tick: Option<f64>,
    /// Why it is slow.
    pub cause: Option<&'static str>,
}

impl Row {
    /// Median cycles of a read.
    pub(crate) fn p50(&self) -> Option<f64> {
        spread::median(&self.library)
    }

    pub(crate) fn p50_ns(&self) -> Option<f64> {
        Some(self.p50()? * self.ns_per_tick?)
    }
}

pub(crate) fn rows(benches: &Benches) -> Vec<Row> {
    benches.runs.iter().filter(|run| run.bench.bench == "clock").flat_map(rows_of).collect()
}

fn rows_of(run: &BenchRun) -> Vec<Row> {
    let ns_per_tick = super::ns_per_tick(&run.bench);
    let mut rows: Vec<Row> = Vec::new();
    for measured in &run.bench.results {
        let Some(cycles) = launches::median(measured) else { continue };
        let counter = measured.name.starts_with("rdtsc");
        let clock = if counter { Some(&measured.name) } else { measured.params.clock.as_ref() };
        let Some(clock) = clock else { continue };
        let source = &measured.params.source;
        let at = rows.iter().position(|row| row.clock == *clock && row.source == *source).unwrap_or_else(|| {
            rows.push(Row {
                machine: run.machine.clone(),
                clock: clock.clone(),
                source: measured.params.source.clone(),
                vdso: None,
                library: Vec::new(),
                kernel: Vec::new(),
                ns_per_tick,
                cause: None,
            });
            rows.len() - 1
        });
        let by_kernel = measured.name == "syscall";
        if by_kernel { &mut rows[at].kernel } else { &mut rows[at].library }.push(cycles);
    }
    for row in &mut rows {
        row.vdso = row.p50().zip(spread::median(&row.kernel)).map(|(library, kernel)| library < SERVED * kernel);
        if row.vdso == Some(false) {
            row.cause = if KERNEL_ONLY.contains(&row.clock.as_str()) {
                Some("the kernel accounts for it; no clocksource makes it cheaper")
            } else {
                let source = row.source.as_deref().unwrap_or_default();
                CAUSES.iter().find(|(name, _)| *name == source).map(|(_, cause)| *cause)
            };
        }
    }
    rows
}

/// The costs of clock reads.
pub(crate) const CLOCKS: TableSpec = table! {
    nesting.clocks version 2: "What a read of one clock costs under one clocksource, and whether the vDSO serves it.";
    key machine, key clock, key source, flag vdso, f64("cycles") p50_cycles, f64("ns") p50_ns, count launches,
    f64("cycles") p50_low_cycles, f64("cycles") p50_high_cycles, f64("cycles") syscall_p50_cycles, text cause;
    shown![
        "Cost of a clock read, in TSC cycles", 40;
        clock, source: "clocksource", vdso: "vDSO", p50_cycles: "median", p50_low_cycles: "from",
        p50_high_cycles: "to", p50_ns: "is", syscall_p50_cycles: "system call",
    ]
};

/// Table [`CLOCKS`].
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&CLOCKS);
    let rounded = |value: Option<f64>| Cell::from(value.map(|value| (value * 100.0).round() / 100.0));
    for row in rows {
        let (low, high) = spread::interval(&row.library).unzip();
        table.push(vec![
            row.machine.as_str().into(),
            row.clock.as_str().into(),
            row.source.clone().into(),
            row.vdso.into(),
            rounded(row.p50()),
            rounded(row.p50_ns()),
            (row.library.len() as u64).into(),
            rounded(low),
            rounded(high),
            rounded(spread::median(&row.kernel)),
            row.cause.into(),
        ]);
    }
    table
}

/// The answer in sentences.
pub(crate) fn summary(rows: &[Row]) -> Vec<String> {
    let find = |clock: &str| rows.iter().find(|row| row.clock == clock);
    let mut sentences = Vec::new();
    if let Some((row, cycles)) = find("REALTIME").and_then(|row| Some((row, row.p50()?))) {
        let time = row.p50_ns().map_or(String::new(), |ns| format!(", {}", duration(ns.round())));
        let source = row.source.as_deref().unwrap_or("an unknown clocksource");
        let how = match row.vdso {
            Some(true) => format!("; the vDSO reads {source} without a system call"),
            Some(false) => format!("; the vDSO does not serve {source}, each read is a system call"),
            None => String::new(),
        };
        sentences
            .push(format!("A read of CLOCK_REALTIME takes {} cycles{time}{how}.", thousands(cycles.round() as u64)));
        if let Some(cause) = row.cause {
            sentences.push(format!("Why: {cause}."));
        }
    }
    sentences
}
