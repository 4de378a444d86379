//! What differs in how both sides were set up? What is the same cannot be the cause.
//!
//! ```text
//! recordings before --snapshots of each machine--> settings --\
//!                                                              same name, other value --> table `configuration`
//! recordings after  --snapshots of each machine--> settings --/
//! ```
//! In: the recordings of both sides. Out: a row for each difference, a sentence, and what could not be compared. What a snapshot could not
//! read is unknown, and no difference.

use base::number::{counted, list, many};
use base::{Cell, Level, Shown, Table, TableSpec, Unknown, shown, table};
use facts::Case;
use host::configuration::{Area, Settings, Value, settings};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CONFIGURATION: TableSpec = table! {
    compare.configuration version 1:
    "One setting that differs between the sides, with what it was on either; of settings that are lists of words (the kernel's command line, flags of a \
          processor) the words that the other side does not have. Several recordings of a side may differ among themselves: `a or b`. A setting \
          that a side does not have is \
          missing there. `place` is the file that has it.";
    key machine, key area, key setting, text before, text after, text place;
    Shown {
        whole: &["setting", "before", "after"],
        ..shown!["What was set up differently", 40; machine, area: "of", setting, before, after]
    }
};

/// The command that made a recording, word by word.
pub(super) const COMMAND: &str = "command";
/// Differences that are named in the sentence; the table has all.
const NAMED: usize = 3;
/// What is written of a value in the sentence.
const SHORT: usize = 24;

/// One setting of one machine that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub machine: String,
    /// Of that machine; `None` for what is of no machine.
    pub level: Option<u8>,
    pub area: &'static str,
    pub setting: String,
    pub before: Option<String>,
    pub after: Option<String>,
    /// Both sides have it; else one of them lacks it.
    pub(crate) is_of_both: bool,
    pub place: String,
}

#[derive(Debug, Default)]
pub(super) struct Compared {
    pub differences: Vec<Difference>,
    /// Settings that both sides have, alike or not.
    common: u64,
    /// Settings that one side could not read.
    unreadable: u64,
    /// Machines with a snapshot on one side alone, and on which.
    one_sided: Vec<(String, &'static str)>,
    is_told: bool,
}

/// What differs between both sides.
pub(super) fn compared(before: &[&Case], after: &[&Case]) -> Compared {
    let mut compared = Compared::default();
    let machines = |side: &[&Case]| {
        let list = side.iter().flat_map(|case| &case.machines().list);
        list.map(|known| known.machine.clone()).collect::<BTreeSet<String>>()
    };
    let (one, two) = (machines(before), machines(after));
    compared.is_told = !one.is_empty() || !two.is_empty();
    for machine in one.union(&two) {
        match (one.contains(machine), two.contains(machine)) {
            (true, true) => compared.machine(machine, &Side::of(before, machine), &Side::of(after, machine)),
            (true, false) => compared.one_sided.push((machine.clone(), "after")),
            (false, _) => compared.one_sided.push((machine.clone(), "before")),
        }
    }
    let recorded = [(COMMAND, command as fn(&Case) -> Option<Value>), ("budget", budget)];
    for (setting, of) in recorded {
        let [one, two] = [before, after].map(|side| side.iter().filter_map(|case| of(case)).collect::<BTreeSet<_>>());
        if one != two {
            compared.differences.push(Difference {
                machine: String::new(),
                // A lab sets up the host that it emulates.
                level: Some(0),
                area: "recording",
                setting: setting.to_owned(),
                before: text(&one, &two),
                after: text(&two, &one),
                is_of_both: !one.is_empty() && !two.is_empty(),
                place: "recording.json".to_owned(),
            });
        }
    }
    compared
}

/// The settings of one machine in all recordings of a side.
struct Side {
    level: Option<u8>,
    settings: Vec<Settings>,
    unreadable: BTreeSet<String>,
}

impl Side {
    fn of(side: &[&Case], machine: &str) -> Self {
        let known = side.iter().filter_map(|case| case.machines().of_machine(machine));
        let (mut all, mut unreadable, mut level) = (Vec::new(), BTreeSet::new(), None);
        for known in known {
            level = match known.level {
                Level::At(level) => Some(level),
                Level::Below | Level::Unknown => level,
            };
            unreadable.extend(known.last().into_iter().flat_map(|last| last.unreadable().keys().cloned()));
            all.push(settings(&known.snapshots));
        }
        Self { level, settings: all, unreadable }
    }

    /// What a setting was, in any of the recordings, and the file that told it.
    fn values(&self, name: &(Area, String)) -> (BTreeSet<Value>, Option<&str>) {
        let told = || self.settings.iter().filter_map(|settings| settings.get(name));
        (told().map(|setting| setting.value.clone()).collect(), told().next().map(|setting| setting.place.as_str()))
    }
}

impl Compared {
    fn machine(&mut self, machine: &str, before_side: &Side, after_side: &Side) {
        let names: BTreeSet<&(Area, String)> =
            before_side.settings.iter().chain(&after_side.settings).flat_map(BTreeMap::keys).collect();
        for name in names {
            let ((one, told_before), (two, told_after)) = (before_side.values(name), after_side.values(name));
            let place = told_before.or(told_after).unwrap_or_default();
            let is_unread =
                |values: &BTreeSet<Value>, side: &Side| values.is_empty() && side.unreadable.contains(place);
            if is_unread(&one, before_side) || is_unread(&two, after_side) {
                self.unreadable += 1;
                continue;
            }
            let is_of_both = !one.is_empty() && !two.is_empty();
            self.common += u64::from(is_of_both);
            if one == two {
                continue;
            }
            let told = [text(&one, &two), text(&two, &one)];
            let (area, setting) = (name.0.name(), name.1.clone());
            let place = place.to_owned();
            self.differences.push(Difference {
                machine: machine.to_owned(),
                level: before_side.level,
                area,
                setting,
                before: told[0].clone(),
                after: told[1].clone(),
                is_of_both,
                place,
            });
        }
    }

    /// Whether anything can be said of how either side was set up.
    pub(super) fn has_snapshots(&self) -> bool {
        self.common > 0
    }

    /// What a person would say of it.
    pub(super) fn sentence(&self) -> Option<String> {
        if !self.is_told && self.differences.is_empty() {
            return None;
        }
        let settings = counted(self.common, "setting recorded on both sides", "settings recorded on both sides");
        if self.differences.is_empty() {
            return (self.common > 0).then(|| format!("Nothing differs in {settings}."));
        }
        let (both, alone): (Vec<&Difference>, Vec<&Difference>) =
            self.differences.iter().partition(|one| one.is_of_both);
        let mut named: Vec<String> = both.iter().chain(&alone).take(NAMED).map(|one| one.named()).collect();
        if self.differences.len() > NAMED {
            named.push(many((self.differences.len() - NAMED) as u64, "other setting"));
        }
        let mut what = match (self.common, both.len()) {
            (0, _) => "The recordings differ".to_owned(),
            (_, 0) => format!("None of {settings} differs"),
            (_, count) => format!("Of {settings}, {}", counted(count as u64, "differs", "differ")),
        };
        if self.common > 0 && !alone.is_empty() {
            what.push_str(&format!("; {} on one side alone", counted(alone.len() as u64, "more is", "more are")));
        }
        Some(format!("{what}: {}.", list(&named)))
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&CONFIGURATION);
        for one in &self.differences {
            let cell = |value: &Option<String>| value.as_deref().map_or(Cell::Missing, Cell::from);
            table.push(vec![
                one.machine.as_str().into(),
                one.area.into(),
                one.setting.as_str().into(),
                cell(&one.before),
                cell(&one.after),
                one.place.as_str().into(),
            ]);
        }
        table
    }

    pub(super) fn unknown(&self) -> Vec<Unknown> {
        let mut unknown = Vec::new();
        let mut say = |what: &str, amount: Option<f64>, text: String| {
            unknown.push(Unknown { what: what.to_owned(), amount, unit: String::new(), text });
        };
        if !self.is_told {
            let text = "How the hosts were set up: neither side has a snapshot of its host. `kvmscope record` takes one, `kvmscope snapshot` takes one alone.";
            say("configuration", None, text.to_owned());
        }
        for (machine, side) in &self.one_sided {
            say(
                "configuration",
                None,
                format!("How {machine} was set up {side} the change: there is no snapshot of it."),
            );
        }
        if self.unreadable > 0 {
            let settings = counted(self.unreadable, "setting was", "settings were");
            say("unreadable_settings", Some(self.unreadable as f64), format!("{settings} not readable on one side."));
        }
        unknown
    }
}

impl Difference {
    /// `kvm_intel.enable_shadow_vmcs of L0 (N before, Y after)`.
    pub(super) fn named(&self) -> String {
        let short = |value: &Option<String>| {
            let value = value.as_deref().filter(|value| !value.is_empty())?;
            (value.chars().count() <= SHORT).then(|| value.to_owned())
        };
        let what = if self.machine.is_empty() {
            format!("the {}", self.setting)
        } else {
            format!("{} of {}", self.setting, self.machine)
        };
        match (short(&self.before), short(&self.after)) {
            (Some(before), Some(after)) => format!("{what} ({before} before, {after} after)"),
            _ => what,
        }
    }
}

/// What the values of one side are, as far as the other side has others.
fn text(own: &BTreeSet<Value>, other: &BTreeSet<Value>) -> Option<String> {
    let lacks: BTreeSet<&String> = other
        .iter()
        .flat_map(|value| match value {
            Value::Words(words) => words.iter().collect::<Vec<_>>(),
            Value::Line(_) => Vec::new(),
        })
        .collect();
    let are_words = own.iter().chain(other).all(|value| matches!(value, Value::Words(_))) && !other.is_empty();
    if !are_words {
        return either(own.iter().map(ToString::to_string).collect());
    }
    let rest = own.iter().map(|value| match value {
        Value::Words(words) => {
            words.iter().filter(|word| !lacks.contains(word)).map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        Value::Line(line) => line.clone(),
    });
    either(rest.filter(|text| !text.is_empty()).collect())
}

fn either(values: BTreeSet<String>) -> Option<String> {
    (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(" or "))
}

/// The command that made the recording, without its version.
fn command(case: &Case) -> Option<Value> {
    let words = case.input().recording.tool.as_deref()?.split_whitespace();
    let words = words.map(|word| word.trim_end_matches([':', ',']));
    let is_of_options = |word: &&str| !word.split('.').all(|part| part.parse::<u32>().is_ok());
    Some(Value::Words(words.filter(is_of_options).map(str::to_owned).collect()))
}

fn budget(case: &Case) -> Option<Value> {
    let carried = case.input().budget.as_ref()?;
    let goals = carried.value.goals.iter().map(|goal| format!("{} {} ns", goal.id, goal.limit_ns));
    Some(Value::Line(format!("{}: {}", carried.value.name, goals.collect::<Vec<_>>().join(", "))))
}
