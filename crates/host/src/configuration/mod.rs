//! How is a machine set up? What somebody chose, by names that stay the same, so that two machines can be held against each other.
//!
//! ```text
//! files that hold settings (`table`) --\
//! the first processor's flags ----------+--> Settings: (area, name) -> value, and the file that told it
//! command lines and XML of VMs (`vms`) -/
//! threads of VMs, interrupts, cgroups: CPUs that they may use (`places`)
//! ```
//! What changes by itself (counters, times, loads, what a thread was last seen on) is none of it.

mod places;
mod table;
mod vms;

pub use table::Area;

use crate::processor::Processor;
use crate::{Machine, Snapshot};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use table::{Form, SOURCES};

pub type Name = (Area, String);

/// A value, and the file that told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub value: Value,
    /// `proc/sys/vm/swappiness`.
    pub place: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Line(String),
    /// Words, each of which is there or not.
    Words(BTreeSet<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line),
            Self::Words(words) => f.write_str(&words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")),
        }
    }
}

pub type Settings = BTreeMap<Name, Setting>;

/// Those that the samples of one machine tell; of several samples the last one.
pub fn settings(samples: &[Snapshot]) -> Settings {
    let mut settings = Settings::new();
    let Some(snapshot) = samples.last() else { return settings };
    for source in SOURCES {
        let paths = snapshot.find(source.pattern);
        if source.form == Form::PerCpu {
            settings.extend(together(snapshot, source.area, &paths));
        } else {
            let known = |path: String| Some(((source.area, name_of(&path)), told(snapshot, source.form, path)?));
            settings.extend(paths.into_iter().filter_map(known));
        }
    }
    settings.extend(processor(snapshot));
    let machine = Machine::of_snapshots(samples);
    settings.extend(vms::settings(snapshot));
    settings.extend(places::settings(&machine));
    settings
}

/// `kvm_intel.ept` of `sys/module/kvm_intel/parameters/ept`, `vm.swappiness` of `proc/sys/vm/swappiness`, as `modprobe` and `sysctl` have them.
fn name_of(path: &str) -> String {
    if let Some((module, name)) = path.strip_prefix("sys/module/").and_then(|rest| rest.split_once('/')) {
        return format!("{module}.{}", name.strip_prefix("parameters/").unwrap_or(name));
    }
    match path.strip_prefix("proc/sys/") {
        Some(rest) => rest.replace('/', "."),
        None => format!("/{path}"),
    }
}

fn told(snapshot: &Snapshot, form: Form, path: String) -> Option<Setting> {
    let value = match form {
        Form::Line | Form::PerCpu => Value::Line(chosen(&snapshot.line(&path)?).to_owned()),
        Form::Words => {
            let text = snapshot.read(&path)?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
            Value::Words(lines.flat_map(str::split_whitespace).map(str::to_owned).collect())
        }
        Form::Cpus => Value::Line(cpus(&snapshot.line(&path)?)),
    };
    Some(Setting { value, place: path })
}

/// `madvise` of `always [madvise] never`.
fn chosen(line: &str) -> &str {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(line, |(word, _)| word)
}

/// A list as it is; a mask as a list.
fn cpus(line: &str) -> String {
    let is_list = line.contains('-') || line.is_empty();
    let set = if is_list { CpuSet::parse(line) } else { CpuSet::parse_mask(line) };
    match set {
        Some(set) if set.is_empty() => "none".to_owned(),
        Some(set) => set.to_string(),
        None => line.to_owned(),
    }
}

/// One value for all CPUs, or each value with the CPUs that have it: `performance on 0-3, powersave on 4-7`.
fn together(snapshot: &Snapshot, area: Area, paths: &[String]) -> Settings {
    let mut by_name: BTreeMap<String, (BTreeMap<String, CpuSet>, &str)> = BTreeMap::new();
    for path in paths {
        let Some((cpu, rest)) = path.split_once("/cpu/cpu").and_then(|(_, rest)| rest.split_once('/')) else {
            continue;
        };
        let Some((cpu, line)) = cpu.parse().ok().zip(snapshot.line(path)) else { continue };
        let name = format!("cpu*/{rest}");
        let (values, _) = by_name.entry(name).or_insert_with(|| (BTreeMap::new(), path));
        values.entry(chosen(&line).to_owned()).or_default().insert(cpu);
    }
    let setting = |(name, (values, place)): (String, (BTreeMap<String, CpuSet>, &str))| {
        let line = match values.len() {
            1 => values.into_keys().next().unwrap_or_default(),
            _ => values.iter().map(|(value, cpus)| format!("{value} on {cpus}")).collect::<Vec<_>>().join(", "),
        };
        ((area, name), Setting { value: Value::Line(line), place: place.to_owned() })
    };
    by_name.into_iter().map(setting).collect()
}

/// The processor that this level is offered.
fn processor(snapshot: &Snapshot) -> Settings {
    const PLACE: &str = "proc/cpuinfo";
    let Some(processor) = Processor::of(snapshot) else { return Settings::new() };
    let setting = |name: &str, value| ((Area::Processor, name.to_owned()), Setting { value, place: PLACE.to_owned() });
    let field = |name: &str| {
        let text = snapshot.read(PLACE)?;
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(Value::Line(line.split_once(':')?.1.trim().to_owned()))
    };
    let model = Some(processor.name).filter(|name| !name.is_empty()).map(Value::Line);
    let told = [
        ("model", model),
        ("microcode", field("microcode")),
        ("flags", Some(Value::Words(processor.flags))),
        ("vmx flags", processor.vmx_flags.map(Value::Words)),
    ];
    told.into_iter().filter_map(|(name, value)| Some(setting(name, value?))).collect()
}
