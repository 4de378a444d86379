//! Noise by CPU, as osnoise counts it.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;

/// Periods of the tracer osnoise.
pub(super) const NOISE: TableSpec = table! {
    latency.noise version 1:
    "The periods of one CPU in one result of osnoise: for how much of its runtime the thread had the CPU, and who interfered how often.";
    key machine, key_u64("") cpu, key file, count periods, ns runtime_ns, ns noise_ns, text available,
    ns max_noise_ns, ns max_single_ns, count hardware, count nmi, count irq, count softirq, count thread;
    shown![
        "Noise that osnoise counted; interferences by who they were of", 16;
        machine, cpu: "CPU", periods, runtime_ns: "runtime", noise_ns: "noise", available: "% available",
        max_noise_ns: "max noise", max_single_ns: "max single", hardware: "HW", nmi: "NMI", irq: "IRQ", softirq, thread,
    ]
};

pub(super) fn noise(case: &Case) -> Table {
    let mut table = Table::new(&NOISE);
    for file in &case.results().list {
        for noise in &file.noise {
            let [hardware, nmi, irq, softirq, thread] = noise.interferences;
            // What was kept off was not counted.
            let told = |count: u64| if noise.is_hardware_alone { Cell::Missing } else { count.into() };
            table.push(vec![
                file.machine.as_str().into(),
                u64::from(noise.cpu).into(),
                file.path.as_str().into(),
                noise.periods.into(),
                noise.runtime_ns.into(),
                noise.noise_ns.into(),
                noise.available().map(|percent| format!("{percent:.5}")).into(),
                noise.max_noise_ns.into(),
                noise.max_single_ns.into(),
                hardware.into(),
                nmi.into(),
                told(irq),
                told(softirq),
                told(thread),
            ]);
        }
    }
    table
}
