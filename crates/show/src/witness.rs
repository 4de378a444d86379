//! What the tests of drawn outputs share: flows drawn from bundled recordings, and Python with other people's readers.

use analysis::facts::ledger::build;
use analysis::facts::ledger::model::Flow;
use analysis::facts::timeline::{draw, draw_first};
use analysis::flow::section::section;
use analysis::{Case, Given, Input};
use base::recording::Recording;
use base::timeline::{Drawn, VcpuStacks};
use base::{Narrow, Section};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Recordings with and without nested guests, pre-emption and details.
pub(crate) const FIXTURES: [&str; 3] = ["nested-svm-toy", "nested-vmx-shadow-off-hog", "svm-linux"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A bundled recording, drawn.
pub(crate) fn drawn(name: &str) -> Drawn {
    answered(name).0
}

/// A bundled recording, drawn, and what its Section says.
pub(crate) fn answered(name: &str) -> (Drawn, Section) {
    with_flow(name, &Narrow::default(), |input, given, flow| {
        (draw(input, given, flow, &mut |_, _| {}), section(flow, given))
    })
}

/// The first slices of a bundled recording.
pub(crate) fn drawn_first(name: &str, narrow: &Narrow, most: u64) -> Drawn {
    with_flow(name, narrow, |input, given, flow| draw_first(input, given, flow, most, &mut |_, _| {}))
}

/// The sums of a bundled recording, with no timeline behind them.
pub(crate) fn summed(name: &str, narrow: &Narrow) -> Vec<VcpuStacks> {
    Case::new(opened(name), narrowed(narrow)).stacks().to_vec()
}

fn opened(name: &str) -> Input {
    analysis::open(Recording::open(&root().join("fixtures").join(name)).unwrap()).unwrap()
}

fn narrowed(narrow: &Narrow) -> Given {
    Given { narrow: narrow.clone(), ..Given::default() }
}

fn with_flow<T>(name: &str, narrow: &Narrow, of: impl FnOnce(&Input, &Given, &Flow) -> T) -> T {
    let (input, given) = (opened(name), narrowed(narrow));
    let flow = build::build(&input, &given, &mut |_, _| {});
    of(&input, &given, &flow)
}

/// What a Python script prints, given `arguments`; `None` where Python or a package of `needs` is missing, which is
/// said. `tools/oracles.sh` installs them below `target/oracles`.
pub(crate) fn python(script: &str, needs: &str, arguments: &[&Path]) -> Option<Vec<u8>> {
    let installed = root().join("target/oracles/bin/python3");
    let python = std::env::var_os("KVMSCOPE_PYTHON").map_or(installed, PathBuf::from);
    let python = if python.exists() { python } else { "python3".into() };
    let found = Command::new(&python).args(["-c", &format!("import {needs}")]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("skipped: python: package {needs} is missing; tools/oracles.sh installs it");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output = Command::new(&python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}
