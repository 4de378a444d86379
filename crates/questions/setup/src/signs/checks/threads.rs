//! Threads of QEMU that do one thing alone, and have no CPU time left for it.

use crate::signs::Scene;
use base::Severity;
use base::number::percent;
use facts::rule::Hit;

/// Share of a CPU from which a thread is full: our own threshold.
pub(in crate::signs) const FULL: f64 = 0.9;

/// How its name begins, what it does, and what takes some of that from it.
fn helpers() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = include_str!("threads.tsv").lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let mut cells = line.split('\t');
        [(); 3].map(|()| cells.next().unwrap_or_default())
    })
}

pub(in crate::signs) fn full(scene: &Scene<'_>) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    for model in scene.models {
        let rows = model.machine.screens.iter().flat_map(|screen| &screen.rows);
        for row in rows.filter(|row| !row.average) {
            let Some(share) = row.share.filter(|share| *share >= FULL) else { continue };
            let Some([_, does, fix]) = helpers().find(|[name, ..]| row.command.starts_with(name)) else { continue };
            let subject = format!("{} {}", row.command, row.pid);
            if hits.iter().any(|known| known.subject == subject) {
                continue;
            }
            let title = format!("one thread of QEMU, {}, runs {} of a CPU: it {does}", row.command, percent(share));
            let mut hit = Hit::new(subject, Severity::High, title);
            hit.level = Some(model.level);
            hit = hit.seen(format!("thread {} ({}) ran {} of a CPU", row.pid, row.command, percent(share)), &row.place);
            let vm = model.machine.domains.first().filter(|_| model.machine.domains.len() == 1);
            hit.fix.push(vm.map_or_else(|| fix.to_owned(), |vm| fix.replace("DOMAIN", &base::shell::quoted(&vm.name))));
            hits.push(hit);
        }
    }
    hits
}
