//! Verdicts as JUnit XML: build servers list them as tests.
//!
//! ```text
//! <testsuites> --> <testsuite> for each recording --> <testcase> for each verdict
//!                                                        <failure>, <error> or <skipped>, with the reason
//! ```
//! Source: JUnit.xsd of Apache Ant's task junitreport, as Jenkins and GitLab read it; the elements in that order.

use crate::html::escape::Safe;
use std::io::{self, Write};

/// The verdicts on one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What was tested: dots make groups of it.
    pub class: String,
    pub name: String,
    pub outcome: Outcome,
    /// What was measured, in words.
    pub text: String,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// Not as it should: the kind, and why.
    Failed(&'static str, String),
    /// Not at all, which is not accepted: the kind, and why.
    Error(&'static str, String),
    /// Not at all: why.
    Skipped(String),
}

/// Writes them.
///
/// # Errors
/// If `out` refuses.
pub fn write(out: &mut dyn Write, suites: &[Suite]) -> io::Result<()> {
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"kvmscope\" {}>", counts(all()))?;
    for suite in suites {
        writeln!(out, "  <testsuite name=\"{}\" {}>", Safe(&suite.name), counts(suite.cases.iter()))?;
        for case in &suite.cases {
            writeln!(out, "    <testcase classname=\"{}\" name=\"{}\">", Safe(&case.class), Safe(&case.name))?;
            match &case.outcome {
                Outcome::Passed => {}
                Outcome::Failed(kind, why) => ended(out, "failure", kind, why)?,
                Outcome::Error(kind, why) => ended(out, "error", kind, why)?,
                Outcome::Skipped(why) => writeln!(out, "      <skipped message=\"{}\"/>", Safe(why))?,
            }
            if !case.text.is_empty() {
                writeln!(out, "      <system-out>{}</system-out>", Safe(&case.text))?;
            }
            writeln!(out, "    </testcase>")?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn ended(out: &mut dyn Write, element: &str, kind: &str, why: &str) -> io::Result<()> {
    writeln!(out, "      <{element} type=\"{}\" message=\"{}\"/>", Safe(kind), Safe(why))
}

/// The attributes that sum up.
fn counts<'c>(cases: impl Iterator<Item = &'c Case>) -> String {
    let (mut tests, mut failures, mut errors, mut skipped) = (0, 0, 0, 0);
    for case in cases {
        tests += 1;
        match case.outcome {
            Outcome::Passed => {}
            Outcome::Failed(..) => failures += 1,
            Outcome::Error(..) => errors += 1,
            Outcome::Skipped(_) => skipped += 1,
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_tests() {
        let case =
            |name: &str, outcome| Case { class: "b.goal".into(), name: name.into(), outcome, text: String::new() };
        let suites = [Suite {
            name: "b: web<1>".into(),
            cases: vec![
                Case { text: "8 us".into(), ..case("vCPU 0", Outcome::Passed) },
                case("vCPU 1", Outcome::Failed("FAIL", "37 us & more".into())),
                case("vCPU 2", Outcome::Error("INCONCLUSIVE", "too short".into())),
                case("\u{ffff}\u{1b}\"", Outcome::Skipped("none".into())),
            ],
        }];
        let mut out = Vec::new();
        write(&mut out, &suites).unwrap();
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuites name=\"kvmscope\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">\n  \
              <testsuite name=\"b: web&lt;1&gt;\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">\n    \
                <testcase classname=\"b.goal\" name=\"vCPU 0\">\n      \
                  <system-out>8 us</system-out>\n    \
                </testcase>\n    \
                <testcase classname=\"b.goal\" name=\"vCPU 1\">\n      \
                  <failure type=\"FAIL\" message=\"37 us &amp; more\"/>\n    \
                </testcase>\n    \
                <testcase classname=\"b.goal\" name=\"vCPU 2\">\n      \
                  <error type=\"INCONCLUSIVE\" message=\"too short\"/>\n    \
                </testcase>\n    \
                <testcase classname=\"b.goal\" name=\"\u{fffd}\u{fffd}&quot;\">\n      \
                  <skipped message=\"none\"/>\n    \
                </testcase>\n  \
              </testsuite>\n\
            </testsuites>\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
