//! What did an honest side make of a hostile peer?

use base::channel::{Fault, RULES};
use base::number::{counted, list};
use base::{Cell, Level, Table, TableSpec, shown, table};
use facts::benches::BenchRun;

/// What was done to an honest side, and what it saw.
pub(crate) const FAULTS: TableSpec = table! {
    channel.faults version 1:
    "What a hostile peer did to one rule by script, in all launches: how often, how often the honest side counted it (missing where there \
          is nothing to count), and whether the honest side neither crashed nor hung nor handed out a wrong frame (missing where no byte of \
          the peer's can break the rule).";
    key machine, key_u64("count") rule, count injected, count seen, flag survived, text what, text why;
    shown![
        "What a hostile peer did, and what was seen of it", 12;
        rule, what: "what was done", injected: "times", seen, survived, why: "remark",
    ]
};

/// One rule on one machine.
#[derive(Debug, Clone)]
pub(crate) struct Broken<'b> {
    pub machine: &'b str,
    pub level: Level,
    pub launches: Vec<&'b Fault>,
}

impl<'b> Broken<'b> {
    /// All of them, by machine and rule.
    pub(crate) fn of(runs: &[&'b BenchRun]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for run in runs {
            let results = run.bench.results.iter().filter_map(|result| result.faults.as_deref());
            for fault in results.flat_map(|faults| &faults.rules) {
                match all.iter_mut().find(|known| known.machine == run.machine && known.rule() == fault.rule) {
                    Some(known) => known.launches.push(fault),
                    None => all.push(Self { machine: &run.machine, level: run.level, launches: vec![fault] }),
                }
            }
        }
        all
    }

    /// Its number; there is at least one launch.
    pub(crate) fn rule(&self) -> u8 {
        self.launches[0].rule
    }

    pub(crate) fn words(&self) -> &'static str {
        usize::from(self.rule()).checked_sub(1).and_then(|rule| RULES.get(rule)).copied().unwrap_or("an unknown rule")
    }

    /// The launch that a row shows: the first that was not survived, else the first.
    pub(crate) fn shown(&self) -> &'b Fault {
        self.launches.iter().find(|fault| fault.survived == Some(false)).copied().unwrap_or(self.launches[0])
    }

    /// Whether every launch was survived; `None` where nothing was done.
    pub(crate) fn survived(&self) -> Option<bool> {
        self.shown().survived
    }
}

/// Table [`FAULTS`].
pub(crate) fn table(all: &[Broken<'_>]) -> Table {
    let mut table = Table::new(&FAULTS);
    for one in all {
        let injected = one.launches.iter().fold(0_u64, |sum, fault| sum.saturating_add(fault.injected));
        let seen: Option<u64> = one.launches.iter().map(|fault| fault.seen).sum();
        let shown = one.shown();
        table.push(vec![
            one.machine.into(),
            u64::from(one.rule()).into(),
            injected.into(),
            seen.into(),
            one.survived().into(),
            shown.what.as_str().into(),
            if shown.why.is_empty() { Cell::Missing } else { shown.why.as_str().into() },
        ]);
    }
    table
}

pub(crate) fn said(own: &[&Broken<'_>]) -> Option<String> {
    let of = |survived: Option<bool>| own.iter().filter(|one| one.survived() == survived).count() as u64;
    let broken = own.len() as u64 - of(None);
    if broken == 0 {
        return None;
    }
    let by_type = match of(None) {
        0 => String::new(),
        left => format!(", and {} cannot be broken by bytes", counted(left, "rule", "rules")),
    };
    let failed: Vec<String> =
        own.iter().filter(|one| one.survived() == Some(false)).map(|one| one.rule().to_string()).collect();
    Some(match failed.len() {
        0 => format!(
            "A hostile peer broke {}, and the honest side survived all{by_type}.",
            counted(broken, "rule", "rules")
        ),
        count => format!(
            "A hostile peer broke {}, and the honest side did not survive {} of them: {}{by_type}.",
            counted(broken, "rule", "rules"),
            count,
            list(&failed)
        ),
    })
}
