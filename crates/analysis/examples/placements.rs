//! How long does a placement take? For generated hosts of the sizes given: reading the tree, and proposing.
//!
//! `cargo run --release --example placements -- 256:100 512:200` (CPUs:VMs).

use analysis::placement::{Wishes, build};
use generate::tree::Tree;
use host::{Machine, Snapshot};
use kvmscope_analysis as analysis;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes: Vec<String> = std::env::args().skip(1).collect();
    for size in if sizes.is_empty() { vec!["256:100".to_owned()] } else { sizes } {
        let (cpus, vms) = size.split_once(':').ok_or("write CPUS:VMS, as in 256:100")?;
        let (cpus, vms): (u32, u32) = (cpus.parse()?, vms.parse()?);
        let nodes = if cpus >= 128 { 4 } else { 2 };
        let tree = Tree { nodes, cores: (cpus / nodes / 2).max(1), siblings: 2, vms, irqs: cpus / 4, seed: 7 };
        let root = tempfile::tempdir()?;
        let samples = [0, 1].map(|sample| (sample, root.path().join(sample.to_string())));
        for (sample, path) in &samples {
            tree.write(path, *sample)?;
        }
        let began = Instant::now();
        let snapshots: Vec<Snapshot> =
            samples.iter().map(|(_, path)| Snapshot::open(path)).collect::<Result<_, _>>()?;
        let machine = Machine::of_snapshots(&snapshots);
        let read_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let model = build::model(base::Level::At(0), "L0", machine, false, &Wishes::default());
        let proposed_s = began.elapsed().as_secs_f64();
        let proposal = &model.proposal;
        println!("{} CPUs, {vms} VMs: {} units placed", tree.cpus(), proposal.subjects.len());
        println!("  reading {read_s:.2} s, proposing {proposed_s:.2} s (bar: 1 s)");
        for plan in &proposal.plans {
            println!(
                "  {:<40} {:>5} commands {:>9.2} CPUs missing {:>12.0} points",
                plan.idea,
                plan.commands,
                proposal.missing(plan),
                plan.score.total
            );
        }
    }
    Ok(())
}
