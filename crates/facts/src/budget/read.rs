//! A budget out of its file: TOML, schema `kvmscope.budget/1`.
//!
//! Whatever a file says that would not act is an error with its place: a key that is not known, a time without a unit, a
//! window for a metric that has none, a number of samples for a goal on losses.

use super::builtin::{BUILT_IN, built_in, built_in_text};
use super::{Budget, CONFIDENCE, DEFINITIONS, Goal, Metric, Op, Require, Scope, Stat, Workload};
use crate::fields::{Error, Fields, Source, count, one_of, share, text};
use crate::losses::Definition;
use base::nearest::instead;
use base::{CpuSet, MOST_CPUS};
use std::io::{self, Read};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// What a file's key `schema` says.
pub const SCHEMA: &str = "kvmscope.budget/1";

/// A longer file is not read: a thousand goals have 300 KB.
pub const MOST_BYTES: usize = 1 << 20;

const OF_FILE: &[&str] = &["schema", "name", "goal"];
const OF_GOAL: &[&str] = &[
    "id",
    "metric",
    "definition",
    "window",
    "stat",
    "op",
    "limit",
    "future",
    "scope",
    "environment",
    "workload",
    "require",
];
const OF_SCOPE: &[&str] = &["vm", "vcpus"];
const OF_REQUIRE: &[&str] = &["trace", "unknown_share", "clock_error", "samples", "confidence"];

/// A time with its unit, in ns.
fn time(value: &DeValue<'_>) -> Result<u64, String> {
    match value {
        DeValue::String(text) => super::quantity::time(text),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => Err("write a time with its unit in quotes, such as \"20us\"".to_owned()),
    }
}

/// The budget that a user names, with its text. A built-in one goes before a file of its name, which `./NAME` means.
///
/// # Errors
/// If it is neither, or no budget, in a sentence.
pub fn named(name: &Path) -> Result<(Budget, String), String> {
    let known = name.to_str().and_then(|name| built_in(name).zip(built_in_text(name)));
    if let Some((budget, text)) = known {
        return Ok((budget, text.to_owned()));
    }
    let shown = name.display().to_string();
    let mut text = String::new();
    // One byte more than is read, so that a longer file is refused and not cut.
    let read = base::files::open(name).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_string(&mut text));
    match read {
        Ok(_) => Ok((Budget::read(&shown, &text).map_err(|error| error.to_string())?, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let instead = instead(&shown, BUILT_IN.iter().map(|(name, _)| *name));
            Err(format!("{shown} is neither a built-in budget nor a file; {instead}"))
        }
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

impl Budget {
    /// Reads a budget.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(file: &str, text: &str) -> Result<Self, Error> {
        let source = Source { file, text };
        if text.len() > MOST_BYTES {
            return Err(source.error(0, format!("a budget has at most {MOST_BYTES} bytes")));
        }
        let document = DeTable::parse(text)
            .map_err(|error| source.error(error.span().map_or(0, |span| span.start), error.message()))?;
        let fields = Fields::of(source, "a budget", 0, document.get_ref(), OF_FILE)?;
        fields.needed("schema", |value| match self::text(value)? {
            SCHEMA => Ok(()),
            _ => Err(format!("this program reads \"{SCHEMA}\"")),
        })?;
        let name = fields.needed("name", self::text)?.to_owned();
        let tables = fields.tables_of("goal", "a goal", OF_GOAL)?;
        if tables.is_empty() {
            return Err(fields.error("a budget needs goals, each under a line [[goal]]"));
        }
        let mut goals: Vec<Goal> = Vec::new();
        for fields in tables {
            let goal = goal(&fields)?;
            if goals.iter().any(|other| other.id == goal.id) {
                return Err(fields.error("another goal has the same id"));
            }
            goals.push(goal);
        }
        Ok(Self { name, goals })
    }
}

fn goal(fields: &Fields<'_, '_>) -> Result<Goal, Error> {
    let id = fields.needed("id", text)?.to_owned();
    let metric = fields.needed("metric", |value| one_of(value, &Metric::ALL, Metric::name))?;
    let stat = fields.needed("stat", |value| {
        let stat = one_of(value, &Stat::ALL, Stat::name)?;
        let known: Vec<&str> = metric.stats().iter().map(|stat| stat.name()).collect();
        let fits = || format!("{} is judged by its {}", metric.name(), known.join(" or its "));
        if metric.stats().contains(&stat) { Ok(stat) } else { Err(fits()) }
    })?;
    if !metric.is_of_losses() {
        fields.refuse("definition", &format!("{} has none: it is no loss", metric.name()))?;
    }
    if metric.is_of_migrations() {
        fields.refuse("scope", &format!("{} is of a whole guest, which no migration names", metric.name()))?;
    } else {
        fields.refuse("workload", &format!("{} has none: it is of migrations", metric.name()))?;
    }
    if !metric.has_window() {
        fields.refuse("window", &format!("{} has none", metric.name()))?;
    }
    let definition = fields.read("definition", |value| one_of(value, &DEFINITIONS, Definition::name))?;
    let some_time = |value: &DeValue<'_>| match time(value)? {
        0 => Err("it is longer than 0".to_owned()),
        ns => Ok(ns),
    };
    let window_ns = if metric.has_window() { Some(fields.needed("window", some_time)?) } else { None };
    Ok(Goal {
        id,
        metric,
        definition: definition.unwrap_or(Definition::Involuntary),
        window_ns,
        stat,
        op: fields.needed("op", |value| one_of(value, &Op::ALL, Op::name))?,
        limit_ns: fields.needed("limit", some_time)?,
        future_ns: fields.read("future", some_time)?,
        scope: scope(fields)?,
        environment: fields.read("environment", text)?.map(str::to_owned),
        workload: fields.read("workload", |value| one_of(value, &Workload::ALL, Workload::name))?,
        require: require(fields, metric)?,
    })
}

fn scope(goal: &Fields<'_, '_>) -> Result<Scope, Error> {
    let Some(fields) = goal.fields_of("scope", "a scope", OF_SCOPE)? else { return Ok(Scope::default()) };
    let vm = fields.read("vm", text)?.map_or(Scope::default().vm, str::to_owned);
    let vcpus = fields.read("vcpus", |value| match text(value)? {
        "*" => Ok(None),
        list => match CpuSet::parse(list).filter(|vcpus| !vcpus.is_empty()) {
            Some(vcpus) => Ok(Some(vcpus)),
            None => Err(format!("write a list of vCPUs below {MOST_CPUS}, such as \"0,2-3\", or \"*\"")),
        },
    })?;
    Ok(Scope { vm, vcpus: vcpus.flatten() })
}

fn require(goal: &Fields<'_, '_>, metric: Metric) -> Result<Require, Error> {
    let Some(fields) = goal.fields_of("require", "a requirement", OF_REQUIRE)? else { return Ok(Require::default()) };
    if metric.is_of_losses() {
        let because = format!("{} is judged by a trace, which has no samples", metric.name());
        ["samples", "confidence"].iter().try_for_each(|key| fields.refuse(key, &because))?;
    } else if metric.is_of_migrations() {
        let because = format!("{} is judged by one migration at a time", metric.name());
        let others = ["trace", "unknown_share", "samples", "confidence"];
        others.iter().try_for_each(|key| fields.refuse(key, &because))?;
    } else {
        let because = format!("{} is judged by samples, and not by a trace", metric.name());
        ["trace", "unknown_share"].iter().try_for_each(|key| fields.refuse(key, &because))?;
    }
    let confidence = fields.read("confidence", |value| match share(value)? {
        sure if (0.5..1.0).contains(&sure) => Ok(sure),
        _ => Err("write a number from 0.5 to below 1, such as 0.95".to_owned()),
    })?;
    Ok(Require {
        trace_ns: fields.read("trace", time)?,
        unknown_share: fields.read("unknown_share", share)?,
        clock_error_ns: fields.read("clock_error", time)?,
        samples: fields.read("samples", count)?,
        confidence: confidence.unwrap_or(CONFIDENCE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of the proposal, whole.
    const WHOLE: &str = r#"
schema = "kvmscope.budget/1"
name   = "mine"
[[goal]]
id = "preempt-window"
metric = "preempt_window"
definition = "exit-to-entry"
window = "1ms"
stat = "sup"
op = "<"
limit = "20us"
future = "4us"
scope = { vm = "web*", vcpus = "1-3" }
environment = "cpustress_idle"
require = { trace = "60s", unknown_share = 0.0001, clock_error = "1us" }
[[goal]]
id = "timer-max"
metric = "timer_latency"
stat = "max"
op = "<="
limit = "15us"
require = { samples = 2995732, confidence = 0.99 }
"#;

    #[test]
    fn every_key_is_read() {
        let budget = Budget::read("f", WHOLE).unwrap();
        let [window, timer] = budget.goals.as_slice() else { panic!("{budget:?}") };
        assert_eq!(budget.name, "mine");
        assert_eq!(
            *window,
            Goal {
                id: "preempt-window".into(),
                metric: Metric::PreemptWindow,
                definition: Definition::ExitToEntry { include_halts: false },
                window_ns: Some(1_000_000),
                stat: Stat::Sup,
                op: Op::Below,
                limit_ns: 20_000,
                future_ns: Some(4_000),
                scope: Scope { vm: "web*".into(), vcpus: CpuSet::parse("1-3") },
                environment: Some("cpustress_idle".into()),
                workload: None,
                require: Require {
                    trace_ns: Some(60_000_000_000),
                    unknown_share: Some(0.0001),
                    clock_error_ns: Some(1_000),
                    samples: None,
                    confidence: 0.95,
                },
            }
        );
        assert_eq!((timer.definition, &timer.scope), (Definition::Involuntary, &Scope::default()));
        assert_eq!((timer.require.samples, timer.require.confidence), (Some(2_995_732), 0.99));
    }

    /// The error of the whole file with one piece replaced.
    fn error(from: &str, to: &str) -> String {
        assert!(WHOLE.contains(from), "{from}");
        let text = WHOLE.replacen(from, to, 1);
        Budget::read("f.toml", &text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest_one() {
        assert_eq!(error("limit = ", "limt = "), "f.toml:11:1: a goal has no key `limt`; did you mean `limit`?");
        assert_eq!(
            error("vcpus = \"1-3\"", "vcpu = \"1\""),
            "f.toml:13:24: a scope has no key `vcpu`; did you mean `vcpus`?"
        );
        assert_eq!(error("name ", "nmae "), "f.toml:3:1: a budget has no key `nmae`; did you mean `name`?");
        assert_eq!(
            error("unknown_share", "unknown"),
            "f.toml:15:28: a requirement has no key `unknown`; there are clock_error, confidence, samples, trace and unknown_share"
        );
        assert!(error("name ", "n\u{e9}\u{202e} ").starts_with("f.toml:3:"));
    }

    #[test]
    fn what_is_wrong_has_line_and_column() {
        for (from, to, expected) in [
            (
                "limit = \"20us\"",
                "limit = 20",
                "f.toml:11:9: limit: write a time with its unit in quotes, such as \"20us\"",
            ),
            (
                "limit = \"20us\"",
                "limit = \"20\"",
                "f.toml:11:9: limit: a time without a unit; write a time with its unit, ns, us, ms or s, such as \"20us\"",
            ),
            ("limit = \"20us\"", "limit = \"0us\"", "f.toml:11:9: limit: it is longer than 0"),
            ("kvmscope.budget/1", "kvmscope.budget/2", "f.toml:2:10: schema: this program reads \"kvmscope.budget/1\""),
            (
                "metric = \"preempt_window\"",
                "metric = \"preempt_windw\"",
                "f.toml:6:10: metric: `preempt_windw` is not known; did you mean `preempt_window`?",
            ),
            ("stat = \"sup\"", "stat = \"max\"", "f.toml:9:8: stat: preempt_window is judged by its sup"),
            ("stat = \"max\"", "stat = \"sup\"", "f.toml:19:8: stat: timer_latency is judged by its mean or its max"),
            ("op = \"<\"\n", "op = \">\"\n", "f.toml:10:6: op: `>` is not known; there are < and <="),
            ("window = \"1ms\"\n", "", "f.toml:4:1: a goal needs the key `window`"),
            ("stat = \"max\"", "stat = \"max\"\nwindow = \"1ms\"", "f.toml:20:10: window: timer_latency has none"),
            ("samples = 2995732", "samples = -1", "f.toml:22:23: samples: write a whole number from 0"),
            (
                "confidence = 0.99",
                "confidence = 1",
                "f.toml:22:45: confidence: write a number from 0.5 to below 1, such as 0.95",
            ),
            (
                "unknown_share = 0.0001",
                "unknown_share = nan",
                "f.toml:15:44: unknown_share: write a number from 0 to 1, such as 0.0001",
            ),
            (
                "trace = \"60s\"",
                "samples = 5",
                "f.toml:15:23: samples: preempt_window is judged by a trace, which has no samples",
            ),
            ("id = \"timer-max\"", "id = \"preempt-window\"", "f.toml:16:1: another goal has the same id"),
            (
                "vcpus = \"1-3\"",
                "vcpus = \"3-1\"",
                "f.toml:13:32: vcpus: write a list of vCPUs below 8192, such as \"0,2-3\", or \"*\"",
            ),
        ] {
            assert_eq!(error(from, to), expected, "{to}");
        }
    }

    #[test]
    fn broken_toml_has_line_and_column() {
        let said = error("limit = \"20us\"", "limit = \"20us");
        assert!(said.starts_with("f.toml:11:"), "{said}");
        assert!(!said.contains('\n'), "{said}");
        let twice = error("stat = \"sup\"", "stat = \"sup\"\nstat = \"sup\"");
        assert!(twice.starts_with("f.toml:10:1: duplicate key"), "{twice}");
    }

    #[test]
    fn a_budget_without_goals_is_none() {
        for text in [
            "",
            "schema = \"kvmscope.budget/1\"\nname = \"x\"",
            "schema = \"kvmscope.budget/1\"\nname = \"x\"\ngoal = []",
            "schema = \"kvmscope.budget/1\"\nname = \"x\"\ngoal = [1]",
        ] {
            assert!(Budget::read("f", text).is_err(), "{text}");
        }
        let long = format!("{WHOLE}#{}", "x".repeat(MOST_BYTES));
        assert!(Budget::read("f", &long).unwrap_err().text.contains("at most"));
    }
}
