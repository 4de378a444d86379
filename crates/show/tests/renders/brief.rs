//! The first page: ten lines at most, alike findings and explained ones in one.

use crate::sample;
use base::{Change, Finding, Section, Setting, Severity};
use kvmscope_show::text::{Page, Step, render_brief};

fn finding(rule: &'static str, subject: &str, severity: Severity, explains: &[String]) -> Finding {
    let explains = explains.to_vec();
    let title = format!("{subject} waits");
    Finding { rule, subject: subject.into(), severity, explains, title, ..sample::section().findings.swap_remove(1) }
}

fn page(findings: Vec<Finding>, width: usize) -> String {
    let section = Section { findings, ..Section::new("flow", "?") };
    let all = Step { command: "kvmscope check --all".into(), shows: "everything" };
    render_brief(&[section], &[], &[all], &Page { width, ..Page::default() })
}

#[test]
fn the_sample_looks_as_it_should() {
    let rest = [
        Step { command: "kvmscope explain FLW-SHADOW@nestv-98".into(), shows: "why" },
        Step { command: "kvmscope check --all".into(), shows: "everything" },
    ];
    for width in [60, 120] {
        let page = Page { width, ..Page::default() };
        insta::assert_snapshot!(
            format!("brief_{width}"),
            render_brief(&[sample::section()], &sample::problems(), &rest, &page)
        );
    }
}

#[test]
fn findings_that_are_alike_are_one_line_and_others_are_not() {
    let mut found: Vec<Finding> =
        (0..16).map(|vm| finding("PLC-STACKED", &format!("vm{vm}"), Severity::Medium, &[])).collect();
    found.iter_mut().for_each(|finding| finding.per = "VM");
    found.push(finding("PLC-STACKED", "other", Severity::Low, &[]));
    let text = page(found, 100);
    assert!(text.contains("vm0 waits (and 15 more VMs)\n") && text.contains("other waits\n"), "{text}");
    assert!(!text.contains("vm1 waits"), "{text}");
}

#[test]
fn the_command_on_a_line_is_the_change_and_not_what_is_looked_at_first() {
    let line = |changes: Vec<Change>| {
        let fix = ["# a remark", "grep -c avic /proc/cpuinfo", "echo 1 > /sys/module/kvm_amd/x"].map(String::from);
        let one = Finding { changes, fix: fix.into(), ..finding("NST-AVIC", "L0", Severity::Low, &[]) };
        page(vec![one], 100)
    };
    let change = Setting::SysfsWrite { path: "module/kvm_amd/x".into() }.change("1".to_owned(), Some("0".to_owned()));
    let (typed, looked) = (line(vec![change]), line(Vec::new()));
    assert!(typed.contains("echo 1 > /sys/module/kvm_amd/x") && !typed.contains("grep"), "{typed}");
    assert!(looked.contains("grep -c avic") && !looked.contains("a remark"), "{looked}");
}

#[test]
fn what_a_cause_explains_is_counted_on_its_line() {
    let ids: Vec<String> = (0..16).map(|vm| format!("PLC-STACKED@vm{vm}")).collect();
    let mut found: Vec<Finding> =
        (0..17).map(|vm| finding("PLC-STACKED", &format!("vm{vm}"), Severity::High, &[])).collect();
    found.push(finding("PLC-OVERCOMMIT", "host", Severity::Medium, &ids));
    let text = page(found, 100);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("waits")).collect();
    assert_eq!(lines, [" medium  host waits; explains 16 more findings", " high    vm16 waits"], "{text}");
}

#[test]
fn no_more_than_ten_lines_are_shown_and_the_others_counted() {
    const RULES: [&str; 13] = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M"];
    let severity = |at: usize| if at < 11 { Severity::Low } else { Severity::Info };
    let found = RULES.iter().enumerate().map(|(at, rule)| finding(rule, rule, severity(at), &[]));
    let text = page(found.collect(), 100);
    assert_eq!(text.matches(" waits").count(), 10, "{text}");
    assert!(text.contains(" + 3 more lines: 1 low and 2 info\n"), "{text}");
}
