//! How long does it take until a path carries its first frame, and in which part of that does the time go?
//!
//! In: the parts that runs timed ([`base::channel::SetupPart`]). Out: table `setups`, a row for each part of each path, and a sentence. What a
//! frame or a batch is like has no part in it, so that all runs of a path count together.

use super::measured::Channel;
use base::channel::Run;
use base::number::{duration, list};
use base::{Table, TableSpec, shown, table};
use facts::statistics::spread;

/// The part in which nothing is connected yet.
const PROCESSES: &str = "processes";
/// All others together, as a row of its own.
const WHOLE: &str = "all but processes";

/// How long setting a path up took.
pub(crate) const SETUPS: TableSpec = table! {
    channel.setups version 1:
    "One part of setting a path up, over all runs of the path: ns is their median, low_ns and high_ns their range. `processes` are started \
          until both read commands; `attach` has the receiver listen and makes the sender's port, `link` starts that until both are up, and \
          `first frame` has one arrive: `all but processes` are these three together.";
    key machine, key path, key part, ns ns, ns low_ns, ns high_ns, count runs;
    shown![
        "How long setting a path up takes", 20;
        path, part, ns: "median", low_ns: "from", high_ns: "to", runs,
    ]
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathSetup<'b> {
    machine: &'b str,
    path: &'b str,
    /// In the order in which they come, with what each run took; the whole of each run is the last.
    parts: Vec<(&'b str, Vec<f64>)>,
}

/// Those of all paths whose runs were timed.
pub(crate) fn of<'b>(channel: &Channel<'b>) -> Vec<PathSetup<'b>> {
    let mut found: Vec<PathSetup<'b>> = Vec::new();
    for one in channel.measured() {
        let (machine, path) = (one.machine, one.setup.path.as_str());
        for run in one.launches.iter().map(|(_, run)| *run).filter(|run| run.setup_ns.is_some()) {
            match found.iter_mut().find(|known| (known.machine, known.path) == (machine, path)) {
                Some(known) => known.add(run),
                None => {
                    let mut first = PathSetup { machine, path, parts: Vec::new() };
                    first.add(run);
                    found.push(first);
                }
            }
        }
    }
    found
}

impl<'b> PathSetup<'b> {
    fn add(&mut self, run: &'b Run) {
        let parts = run.setup_parts.iter().map(|part| (part.name.as_str(), part.ns));
        for (name, ns) in parts.chain(run.setup_ns.map(|ns| (WHOLE, ns))) {
            match self.parts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(ns as f64),
                None => self.parts.push((name, vec![ns as f64])),
            }
        }
    }

    fn median(&self, name: &str) -> Option<f64> {
        spread::median(&self.parts.iter().find(|(known, _)| *known == name)?.1)
    }

    /// As a person would say it.
    pub(crate) fn sentence(&self) -> Option<String> {
        let whole = self.median(WHOLE)?;
        let inner = self.parts.iter().filter(|(name, _)| ![PROCESSES, WHOLE].contains(name));
        let said: Vec<String> =
            inner.filter_map(|(name, all)| Some(format!("{name} {}", duration(spread::median(all)?)))).collect();
        let parts = if said.is_empty() { String::new() } else { format!(" ({})", list(&said)) };
        let before = self.median(PROCESSES);
        let before =
            before.map_or_else(String::new, |ns| format!(", once its processes were up after {}", duration(ns)));
        Some(format!("Setting {} up took {} until the first frame{parts}{before}.", self.path, duration(whole)))
    }
}

/// Table [`SETUPS`].
pub(crate) fn table(setups: &[PathSetup<'_>]) -> Table {
    let mut table = Table::new(&SETUPS);
    for PathSetup { machine, path, parts } in setups {
        for (name, all) in parts {
            let whole = |ns: Option<f64>| ns.map(|ns| ns as u64).into();
            let (low, high) = (all.iter().copied().reduce(f64::min), all.iter().copied().reduce(f64::max));
            let runs = (all.len() as u64).into();
            let [median, low, high] = [spread::median(all), low, high].map(whole);
            table.push(vec![(*machine).into(), (*path).into(), (*name).into(), median, low, high, runs]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches};
    use super::*;
    use facts::machines::Machines;

    #[test]
    fn parts_of_all_runs_of_a_path_are_a_row_each_and_a_sentence() {
        let made = |launch, batch, setup_ms| Made { path: "vhost-user", launch, batch, setup_ms, ..Made::default() };
        let all = [
            made(0, 32, Some([700, 40, 1_000, 20])),
            made(1, 8, Some([900, 60, 1_200, 30])),
            made(2, 8, Some([800, 50, 1_100, 25])),
            Made { launch: 0, ..Made::default() },
        ];
        let benches = benches(&all);
        let channel = Channel::of(&benches, &Machines::default());
        let setups = of(&channel);
        assert_eq!(setups.len(), 1, "the ring was not timed: {setups:?}");
        let table = table(&setups);
        let names: Vec<_> = table.rows().map(|row| row.text("part").unwrap().to_owned()).collect();
        assert_eq!(names, ["processes", "attach", "link", "first frame", "all but processes"]);
        let link = table.rows().nth(2).unwrap();
        let number = |name| link.number(name).unwrap() / 1e6;
        assert_eq!((number("ns"), number("low_ns"), number("high_ns")), (1_100.0, 1_000.0, 1_200.0));
        assert_eq!(link.number("runs"), Some(3.0));
        let said = "Setting vhost-user up took 1.2 s until the first frame (attach 50.0 ms, link 1.1 s and first frame 25.0 ms), once its processes \
                    were up after 800.0 ms.";
        assert_eq!(setups[0].sentence().unwrap(), said);
    }
}
