//! `check` and `apply` look at the same host: what one proposes the other does not call worse.

use base::{Change, CpuSet, Finding, Setting};
use generate::tree::{SPAN_NS, Tree};
use host::machine::{CpuUse, Topology};
use host::sched::{Load, Sample};
use host::{Machine, Snapshot, usage};
use kvmscope_analysis::facts::shares::{Contender, Cpus, Direction, Expected, Move};
use kvmscope_analysis::placement::{Wishes, build, section::section, solver::Goal};
use std::collections::BTreeMap;
use std::path::Path;

/// Whether a thread of that name is meant.
type Names = Box<dyn Fn(&str) -> bool>;

/// A host as `apply` sees it: every thread, as the kernel's files have it, and no VM.
struct Live {
    loads: Vec<Load>,
    usage: BTreeMap<u32, CpuUse>,
    topology: Topology,
}

impl Live {
    /// Two samples lie below `root`.
    fn of(root: &Path) -> Self {
        let sample = |number: u64| {
            let proc = root.join(number.to_string()).join("proc");
            let threads = Sample::take(&proc, &|| SPAN_NS * (number + 1)).unwrap();
            (threads, std::fs::read_to_string(proc.join("stat")).unwrap())
        };
        let ((first, before), (last, after)) = (sample(0), sample(1));
        let topology = Topology::of_snapshot(&Snapshot::open(&root.join("1")).unwrap());
        Self { loads: first.until(&last), usage: usage::between(&before, &after), topology }
    }

    fn expected(&self, changes: &[Change]) -> Expected {
        let (moves, interrupts) = moved(changes, &self.loads);
        let cpus = Cpus::of(&self.topology, &self.usage, self.loads.iter().map(|load| (load.cpu, load.run)));
        let threads: Vec<Contender> = self.loads.iter().map(Contender::from).collect();
        Expected::of(&cpus, &threads, &self.usage, &moves, &interrupts)
    }
}

/// Threads and interrupts that changes move. A tree's domain `vm2` is the process 1200.
fn moved(changes: &[Change], loads: &[Load]) -> (Vec<Move>, Vec<(CpuSet, CpuSet)>) {
    let (mut moves, mut interrupts) = (Vec::new(), Vec::new());
    for change in changes {
        let cpus = &change.to;
        let (domain, is): (&str, Names) = match &change.setting {
            Setting::VcpuPin { domain, vcpu, .. } => {
                let name = format!("CPU {vcpu}/");
                (domain, Box::new(move |thread| thread.starts_with(&name)))
            }
            Setting::EmulatorPin { domain, .. } => {
                (domain, Box::new(|thread| !thread.starts_with("CPU ") && !thread.starts_with("IO iothread")))
            }
            Setting::IothreadPin { domain, iothread, .. } => {
                let name = format!("IO iothread{iothread}");
                (domain, Box::new(move |thread| thread == name))
            }
            Setting::IrqAffinity { .. } => {
                let from = CpuSet::parse(change.from.as_deref().unwrap()).unwrap();
                interrupts.push((from, CpuSet::parse(cpus).unwrap()));
                continue;
            }
            Setting::SysfsWrite { .. } => continue,
            other => panic!("trees have nobody for {other:?}"),
        };
        let pid = 1_000 + 100 * domain.strip_prefix("vm").unwrap().parse::<u32>().unwrap();
        let threads = loads.iter().filter(|load| load.id.pid == pid && is(&load.name));
        let cpus = CpuSet::parse(cpus).unwrap();
        moves.extend(threads.map(|load| Move { tid: load.id.tid, cpus: cpus.clone() }));
    }
    (moves, interrupts)
}

#[test]
fn what_check_proposes_apply_does_not_refuse() {
    const GOALS: [Goal; 4] = [Goal::Throughput, Goal::Latency, Goal::Density, Goal::Power];
    let hosts = [(1, 2, 1, 3), (1, 2, 2, 2), (1, 4, 1, 5), (2, 2, 2, 5), (1, 1, 2, 4)];
    let root = tempfile::tempdir().unwrap();
    let (mut proposed, mut better) = (0, 0);
    for (index, (nodes, cores, siblings, vms)) in hosts.into_iter().cycle().take(20).enumerate() {
        let tree = Tree { nodes, cores, siblings, vms, irqs: 3, seed: index as u64 };
        let wishes = Wishes { goal: GOALS[index % GOALS.len()], ..Wishes::default() };
        let root = root.path().join(index.to_string());
        let snapshots = [0, 1].map(|sample| {
            let path = root.join(sample.to_string());
            tree.write(&path, sample).unwrap();
            Snapshot::open(&path).unwrap()
        });
        let model = build::model(base::Level::At(0), "L0", Machine::of_snapshots(&snapshots), false, &wishes);
        let live = Live::of(&root);
        for Finding { rule, subject, changes, .. } in
            section(&[model]).findings.iter().filter(|found| !found.changes.is_empty())
        {
            let expected = live.expected(changes);
            let direction = expected.direction();
            assert_ne!(direction, Direction::Worse, "{tree:?} {wishes:?} {rule}@{subject}: {expected:?}");
            proposed += 1;
            better += usize::from(direction == Direction::Better);
        }
    }
    assert!(proposed > 30 && better > 10, "{proposed} findings with changes, {better} better");
}
