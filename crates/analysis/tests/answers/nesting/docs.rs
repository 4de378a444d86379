//! The page of the manual names every feature, every rule and every kernel change, features in the words of the answers.

use kvmscope_analysis::nesting::{features, kernels, known, rules};

#[test]
fn the_page_has_everything_that_the_program_knows() {
    let page = std::fs::read_to_string(super::tree::bundled("../docs/use/check.md")).unwrap();
    let names = features::PROBES.iter().map(|probe| probe.feature.to_owned());
    let parameters = known::KNOWN.iter().map(|known| format!("{}.{}", known.module, known.name));
    let mitigations = features::MITIGATIONS.iter().map(|known| known.feature.to_owned());
    let rules = rules::RULES.iter().map(|rule| rule.id.to_owned());
    let commits = kernels::CHEAPER.iter().chain(kernels::FAULTS.iter()).map(|change| change.commit.to_owned());
    let missing: Vec<String> = names
        .chain(parameters)
        .chain(mitigations)
        .chain(rules)
        .chain(commits)
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("| {name} ")))
        .collect();
    assert!(missing.is_empty(), "docs/use/check.md lacks {missing:?}");
}

#[test]
fn the_page_says_of_features_what_the_program_says() {
    let page = std::fs::read_to_string(super::tree::bundled("../docs/use/check.md")).unwrap();
    let probes = features::PROBES.iter().map(|probe| (probe.feature.to_owned(), format!("| {}", probe.meaning)));
    let mitigations = features::MITIGATIONS.iter();
    let mitigations = mitigations.map(|known| (known.feature.to_owned(), format!("| {} |", known.meaning)));
    let parameters = known::KNOWN.iter().map(|known| {
        let words = [known.default, known.meaning, known.without].join(" | ");
        (format!("{}.{}", known.module, known.name), format!("| {words} |"))
    });
    let said = |name: &str, words: &str| {
        page.lines().any(|line| line.starts_with(&format!("| `{name}` |")) && line.contains(words))
    };
    let all = probes.chain(mitigations).chain(parameters);
    let missing: Vec<String> =
        all.filter(|(name, words)| !said(name, words)).map(|(name, words)| format!("{name} {words}")).collect();
    assert!(missing.is_empty(), "docs/use/check.md says otherwise, or does not say:\n{}", missing.join("\n"));
}
