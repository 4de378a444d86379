//! All of it as one Section.

use super::checks::{Told, told};
use super::effects::Seen;
use super::host::Host;
use super::knobs::{self, Rule};
use super::ranking::{self, Lost};
use super::{needs, tables};
use crate::placements::{beside_real_time, placements};
use base::in_order;
use base::number::{counted, duration, list, many};
use base::{Cost, CostKind, Evidence, Finding, Level, Section, Severity, Unknown};
use facts::rule::Hit;
use facts::{Answer, Case, Error};
use tongue::translated;

/// The question this folder answers.
pub const QUESTION: &str = "Is this host set up for real time, and do its settings have an effect?";

/// Rules about the same settings, for hosts of other purposes.
const SAME_SETTINGS: &[&str] = &["PLC-TUNED", "PLC-PARTITION", "PLC-REALTIME"];

/// One machine with what was made of each knob.
pub(super) struct Audit<'a> {
    pub host: Host<'a>,
    level: Level,
    reasons: Vec<String>,
    pub judged: Vec<Judged>,
    /// What vCPUs lost to causes that a knob is about, where there is a trace.
    pub lost: Lost,
    /// The name of the budget for whose goals knobs are ranked.
    pub budget: Option<&'a str>,
}

/// A knob of a machine.
pub(super) struct Judged {
    pub rule: &'static Rule,
    pub told: Option<Told>,
    pub seen: Option<Seen>,
    pub state: State,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum State {
        /// As real time wants it, as far as was seen.
        AsWanted = "as wanted",
        /// Not so.
        NotSet = "not set",
        /// Set, and without the effect that it is set for.
        NoEffect = "no effect",
        /// Not read.
        Unknown = "unknown",
    }
}

/// Answers it; `None` where no machine claims to keep latencies and nobody asked.
///
/// # Errors
/// None: what was not read is unknown.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let budget = case.budget().map(|budget| budget.name.as_str());
    let mut asked: Vec<String> = budget.iter().map(|name| format!("there is a latency budget ({name})")).collect();
    asked.extend(case.given().realtime.then(|| "you asked (--realtime)".to_owned()));
    let placements = placements(case);
    let audits = placements.0.iter().filter_map(|model| {
        let samples = &case.machines().of_machine(&model.id)?.snapshots;
        let host = Host::of(&model.id, &model.machine, samples)?;
        let reasons = needs::reasons(&host, &asked);
        let wanted = !reasons.is_empty();
        wanted.then(|| Audit {
            lost: ranking::lost(case, &model.id),
            budget,
            judged: knobs::all().map(|rule| judge(rule, &host)).collect(),
            host,
            level: model.level,
            reasons,
        })
    });
    let audits: Vec<Audit<'_>> = audits.collect();
    Ok((!audits.is_empty()).then(|| Answer { section: section(&audits), problems: Vec::new() }))
}

fn judge(rule: &'static Rule, host: &Host<'_>) -> Judged {
    let told = told(host, &rule.check.place);
    let seen = rule.check.effect.as_ref().and_then(|effect| (effect.seen)(host));
    let suffices = rule.check.effect.as_ref().is_some_and(|effect| effect.suffices);
    let works = seen.as_ref().map(|seen| seen.works);
    let state = match (&told, works) {
        (Some(told), _) if told.ignored.is_some() => State::NoEffect,
        (Some(told), Some(false)) if told.fits => State::NoEffect,
        (Some(told), _) if told.fits => State::AsWanted,
        (_, Some(true)) if suffices => State::AsWanted,
        (Some(_), _) | (None, Some(false)) => State::NotSet,
        (None, _) => State::Unknown,
    };
    Judged { rule, told, seen, state }
}

fn section(audits: &[Audit<'_>]) -> Section {
    let mut section = Section::new("realtime", QUESTION);
    section.about = audits.iter().map(about).collect();
    let spoken = |audit: &Audit<'_>| {
        let mut findings = findings(audit);
        findings.iter_mut().for_each(|finding| translated(audit.host.machine, finding));
        findings
    };
    section.findings = in_order(audits.iter().flat_map(spoken).collect());
    section.summary = summary(audits);
    section.tables = vec![tables::knobs(audits)];
    let ranking = tables::ranking(audits);
    if !ranking.rows.is_empty() {
        section.tables.insert(0, ranking);
    }
    section.unknown = audits.iter().flat_map(|audit| unknown(audit).into_iter().chain(unranked(audit))).collect();
    section
}

fn about(audit: &Audit<'_>) -> String {
    let cpus = match audit.host.cpus.is_empty() {
        true => "no CPU is set apart, and no vCPU is pinned".to_owned(),
        false => format!("the CPUs of real time are {}", audit.host.cpus),
    };
    format!("{}: real time is asked for: {}; {cpus}", audit.host.id, list(&audit.reasons))
}

fn count(audits: &[Audit<'_>], wanted: State) -> u64 {
    audits.iter().flat_map(|audit| &audit.judged).filter(|judged| judged.state == wanted).count() as u64
}

fn summary(audits: &[Audit<'_>]) -> String {
    let [wanted, not_set, without] =
        [State::AsWanted, State::NotSet, State::NoEffect].map(|state| count(audits, state));
    let read = wanted + not_set + without;
    let effects = match without {
        0 => String::new(),
        without => format!(" {} set without effect.", counted(without, "is", "are")),
    };
    format!("{wanted} of {} that real time depends on are as it wants them.{effects}", many(read, "setting"))
}

fn findings(audit: &Audit<'_>) -> Vec<Finding> {
    audit.judged.iter().filter_map(|judged| finding(audit, judged)).collect()
}

fn finding(audit: &Audit<'_>, judged: &Judged) -> Option<Finding> {
    let (rule, name) = (judged.rule, judged.rule.check.name);
    let bad = judged.seen.as_ref().filter(|seen| !seen.works);
    let severity = match (judged.state, bad) {
        (State::AsWanted | State::Unknown, _) => return None,
        (State::NoEffect, _) => Severity::Medium,
        (State::NotSet, Some(_)) => Severity::Low,
        (State::NotSet, None) => Severity::Info,
    };
    let is = judged.told.as_ref().map(|told| format!("{name} is {}", told.value));
    let title = match (judged.told.as_ref(), bad) {
        (Some(Told { ignored: Some(sentence), .. }), _) => sentence.clone(),
        (Some(told), Some(bad)) if told.fits => format!("{name} is set and has no effect: {}", bad.evidence.what),
        (Some(told), Some(bad)) => format!("{name} is {}, and {}", told.value, bad.evidence.what),
        (Some(told), None) => format!("{name} is {}; real time wants {}", told.value, told.want),
        (None, Some(bad)) => format!("{name} was not read, and {}", bad.evidence.what),
        (None, None) => return None,
    };
    let mut hit = Hit::new(audit.host.id, severity, title);
    if let (Some(is), Some(told)) = (is, &judged.told) {
        hit = hit.seen(is, &told.place);
    }
    hit.evidence.extend(judged.seen.iter().map(|seen| seen.evidence.clone()));
    let row = Evidence::in_table(format!("real time is asked for: {}", list(&audit.reasons)), "realtime.knobs");
    hit = hit.with(row.key("machine", audit.host.id).key("id", rule.id));
    if let Some(lost) = audit.lost.by_knob(rule.id) {
        let in_breaches = audit.budget.map_or_else(String::new, |budget| {
            format!(", {} of it while a goal of budget {budget} was broken", duration(lost.in_breaches_ns as f64))
        });
        let total = duration(lost.total_ns as f64);
        let what = format!("vCPUs lost at most {total} to what this is about{in_breaches}: {}", lost.names());
        let row = Evidence::in_table(what, "realtime.ranking").key("machine", audit.host.id).key("id", rule.id);
        hit = hit.with(row);
        hit.cost = Cost::of(CostKind::Measured, lost.total_ns as f64, "ns that vCPUs lost to it, at most");
    }
    if let Some(told) = &judged.told {
        hit.needs = told.needs;
        (hit.changes, hit.fix, hit.undo) = (told.changes.clone(), told.fix.clone(), told.undo.clone());
        hit.explains = told.same_as.iter().flat_map(|subject| same(audit.host.id, subject)).collect();
    }
    if rule.id == "LAT-RTRUNTIME" && beside_real_time(audit.host.machine) {
        hit.changes.clear();
        hit.fix.push(
            "# not lifted: vCPUs without such a policy run on these CPUs, and get what the limit leaves".to_owned(),
        );
    }
    hit.changes.extend(bad.iter().flat_map(|seen| seen.changes.clone()));
    if let (Some(effect), true) = (&rule.check.effect, bad.is_some()) {
        let cpus = format!("CPUs {}", audit.host.cpus);
        hit.fix.push(effect.look.replace("CPUS", &cpus));
    }
    Some(rule.finding(hit, audit.level))
}

/// Ids that findings of other rules about this setting would have.
fn same(machine: &str, subject: &str) -> Vec<String> {
    let ids =
        SAME_SETTINGS.iter().flat_map(|rule| [format!("{rule}@{subject}"), format!("{rule}@{machine}:{subject}")]);
    ids.collect()
}

/// That nothing shows which knobs matter for the budget.
fn unranked(audit: &Audit<'_>) -> Option<Unknown> {
    let budget = audit.budget.filter(|_| audit.lost.ranked().is_empty())?;
    Some(Unknown {
        what: "ranking".to_owned(),
        amount: None,
        unit: String::new(),
        text: format!(
            "Which knobs of {} matter for budget {budget}: there is no trace in which its vCPUs lost time. `kvmscope record` and \
             `kvmscope report --budget` rank them, `kvmscope apply 'LAT-*' --trial` measures them.",
            audit.host.id
        ),
    })
}

fn unknown(audit: &Audit<'_>) -> Option<Unknown> {
    let unread: Vec<String> = audit
        .judged
        .iter()
        .filter(|judged| judged.state == State::Unknown)
        .map(|judged| judged.rule.id.to_owned())
        .collect();
    (!unread.is_empty()).then(|| Unknown {
        what: "knobs".to_owned(),
        amount: Some(unread.len() as f64),
        unit: "knobs".to_owned(),
        text: format!(
            "How {} of {} are set was not read: {}.",
            many(unread.len() as u64, "knob"),
            audit.host.id,
            list(&unread)
        ),
    })
}
