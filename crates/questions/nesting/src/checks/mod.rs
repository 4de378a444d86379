//! What the rules look at: states of features become evidence, or nothing.
//!
//! One file per subject; [`super::rules::RULES`] lists the checks. A check speaks only of what is known: a feature that is
//! unknown fires nothing.

pub(crate) mod clock;
pub(crate) mod guests;
pub(crate) mod hyperv;
pub(crate) mod identity;
pub(crate) mod kernel;
pub(crate) mod settings;
pub(crate) mod vmx;

use super::model::{Machine, Row};
use base::figure::Standing;
use base::{About, Change, Evidence, Setting, Severity};
use facts::rule::Hit;

fn hit(machine: &Machine, severity: Severity, title: String, evidence: Vec<Evidence>) -> Hit {
    Hit { level: Some(machine.level), evidence, ..Hit::new(machine.id.clone(), severity, title) }
}

/// What a feature's row shows.
fn shown_by(machine: &Machine, feature: &str) -> Vec<Evidence> {
    let row = machine.row(feature).into_iter();
    let seen = |row: &Row| {
        let place = format!("table features, {feature} of {}", machine.id);
        let seen = Evidence::new(&row.evidence, place).about([About::rows("nesting.features")]);
        seen.key("level", machine.level.to_string()).key("feature", row.feature)
    };
    row.map(seen).collect()
}

/// Loading a module with another value.
fn option(module: &str, parameter: &str, to: &str, from: &str) -> Change {
    Setting::ModuleOption { module: module.to_owned(), parameter: parameter.to_owned() }
        .change(to, Some(from.to_owned()))
}

/// True if a machine may run guest hypervisors: nested virtualization is on, or nobody knows.
fn hosts_hypervisors(machine: &Machine) -> bool {
    machine.state("nested") != Standing::Off && machine.state("nested") != Standing::Absent
}
