//! Numbers that cannot be, and texts of two hosts.

use super::quiet::{fact, findings, fires, quiet, rules, set, thread};
use base::Severity;
use host::machine::{Role, Screen, TopRow};
use kvmscope_analysis::placement::{Wishes, build, section::section};

fn row(pid: i32, share: f64, cpu: u32) -> TopRow {
    TopRow {
        place: "top.txt:9".into(),
        pid,
        process: None,
        state: 'R',
        share: Some(share),
        average: false,
        wait: None,
        time_cs: None,
        command: "vhost".into(),
        last_cpu: Some(cpu),
    }
}

#[test]
fn two_threads_of_a_whole_cpu_each_are_not_on_one() {
    let seen = |rows: Vec<TopRow>| {
        let mut machine = quiet();
        machine.screens.push(Screen { place: "top.txt:1".into(), rows });
        findings(machine).into_iter().find(|finding| finding.rule == "EVD-CPU")
    };
    let found = seen(vec![row(11, 0.99, 4), row(12, 0.98, 4)]).expect("197 % of a CPU");
    assert_eq!(found.title, "2 threads last seen on CPU 4 used 197.0 % of it together");
    assert_eq!(found.severity, Severity::Medium, "both are bound to one CPU, so neither had just come");
    assert_eq!(seen(vec![row(11, 0.99, 4), row(13, 0.98, 4)]).unwrap().severity, Severity::Low);
    assert!(seen(vec![row(11, 0.99, 4), row(12, 0.98, 5)]).is_none(), "a CPU for each");
    assert!(seen(vec![row(11, 0.55, 4), row(12, 0.55, 4)]).is_none(), "one may have run elsewhere most of the time");
    assert!(seen(vec![row(11, 2.5, 4), row(12, 0.99, 4)]).is_none(), "a row above a CPU is a process");
    let average = TopRow { average: true, ..row(12, 0.99, 4) };
    assert!(seen(vec![row(11, 0.99, 4), average]).is_none(), "an average since it began is of another time");
}

#[test]
fn bound_threads_run_no_more_than_their_cpu() {
    fires("EVD-CPU", |machine| {
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.7, 0.0);
        machine.threads[1] = thread(Role::Vcpu(1), 12, "0", 0.7, 0.0);
    });
    let mut full = quiet();
    full.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.4);
    full.threads[1] = thread(Role::Vcpu(1), 12, "0", 0.5, 0.4);
    assert!(!rules(full).contains(&"EVD-CPU"), "that is what a CPU can give");
}

#[test]
fn pins_of_another_host_are_known_by_their_cpus() {
    let found = |pin: &str, pasted| {
        let mut machine = quiet();
        machine.domains[0].vcpu_pins.insert(0, fact(set(pin)));
        let model = build::model(base::Level::At(0), "L0", machine, pasted, &Wishes::default());
        section(&[model]).findings.iter().any(|finding| finding.rule == "EVD-HOSTS")
    };
    assert!(found("16", true));
    assert!(found("6-16", true), "it goes beyond the last CPU");
    assert!(!found("16", false), "of a host that was read whole the CPU is off");
    let with_a_hole = |pin: &str| {
        let mut machine = quiet();
        machine.topology.cpus.remove(&5);
        machine.topology.online = machine.topology.online.without(&set("5"));
        machine.domains[0].vcpu_pins.insert(0, fact(set(pin)));
        let model = build::model(base::Level::At(0), "L0", machine, true, &Wishes::default());
        section(&[model]).findings.iter().any(|finding| finding.rule == "EVD-HOSTS")
    };
    assert!(!with_a_hole("4-7") && with_a_hole("4-8"), "a CPU between others may be off");
}
