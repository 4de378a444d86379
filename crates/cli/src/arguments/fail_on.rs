//! `--fail-on`: a finding as bad as this decides the exit status.

use crate::exit::Exit;
use base::{Section, Severity};
use clap::ValueEnum;

/// The limit.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FailOn {
    Info,
    Low,
    Medium,
    High,
}

impl FailOn {
    /// How a command ends whose answers are `sections`.
    pub(crate) fn verdict<'a>(limit: Option<Self>, sections: impl IntoIterator<Item = &'a Section>) -> Exit {
        let Some(limit) = limit.map(FailOn::severity) else { return Exit::Answered };
        let mut findings = sections.into_iter().flat_map(|section| &section.findings);
        if findings.any(|finding| finding.severity >= limit) { Exit::FailOn } else { Exit::Answered }
    }

    fn severity(self) -> Severity {
        match self {
            FailOn::Info => Severity::Info,
            FailOn::Low => Severity::Low,
            FailOn::Medium => Severity::Medium,
            FailOn::High => Severity::High,
        }
    }
}
