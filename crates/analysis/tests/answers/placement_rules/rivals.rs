//! Rivals that have a name of their own, the table of all of them, and findings that one cause has in common.

use super::culprits::{clean, evidence, first, of_vm, program, refill, second, used, waits};
use super::quiet::{fact, findings, set, thread};
use base::table::Row;
use base::{Finding, Section, Severity};
use host::Machine;
use host::machine::{CpuUse, Irq, Nic, Quota, Role, Throttled};
use kvmscope_analysis::placement::{Wishes, build, section::section};

fn answer(mut machine: Machine) -> Section {
    refill(&mut machine);
    section(&[build::model(base::Level::At(0), "L0", machine, false, &Wishes::default())])
}

fn of_rule(machine: Machine, rule: &str) -> Vec<Finding> {
    answer(machine).findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

#[test]
fn who_took_less_than_was_waited_is_not_enough() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads.push(program("pigz", 70, "0", 0.3));
    let answer = answer(machine);
    let rows = answer.table("rivals").unwrap().rows();
    let said: Vec<&str> = rows.filter_map(|row| row.text("speaks_for")).collect();
    assert!(said.iter().any(|said| said.ends_with("which explains most of a wait of 45.0 %")), "{said:?}");
}

#[test]
fn every_rival_has_a_row_with_what_speaks_for_and_against_it() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads.push(program("pigz", 70, "0-7", 0.4));
    machine.threads.push(program("make", 71, "0-7", 0.1));
    machine.threads[5].last_cpu = Some(fact(0));
    machine.cpu_use.get_mut(&0).unwrap().steal = 0.02;
    let answer = answer(machine);
    let table = answer.table("rivals").expect("a thread starves");
    for row in &table.rows {
        assert!(row.iter().zip(table.spec.columns).all(|(cell, column)| column.kind.takes(cell)), "{row:?}");
    }
    let row = |rival: &str| -> Row<'_> {
        table.rows().find(|row| row.text("rival") == Some(rival)).unwrap_or_else(|| panic!("no row of {rival}"))
    };
    let programs = row("other programs");
    assert_eq!((programs.text("thread"), programs.number("rank")), (Some("vcpu 0"), Some(1.0)));
    let speaks = programs.text("speaks_for").unwrap();
    assert!(speaks.contains("pigz (70)") && speaks.ends_with("enough to explain a wait of 45.0 %"), "{speaks}");
    assert_eq!(programs.text("speaks_against"), Some("its threads may have run on other CPUs"));
    let steal = row("steal");
    assert!(steal.text("speaks_for").unwrap().contains("took time away (steal) on CPU 0 (2.0 %"));
    assert_eq!(steal.text("speaks_against"), Some("it took less than half of the 45.0 % that were waited"));
    assert_eq!(row("interrupts and softirqs").text("speaks_against"), Some("it took nothing"));
    let pointing =
        answer.findings[0].evidence.iter().find(|seen| seen.place == "table rivals").expect("it points there");
    assert!(pointing.what.starts_with("other candidates for vcpu 0 of web (11)"), "{}", pointing.what);
    assert!(self::answer(used()).table("rivals").is_none(), "nobody starves, and there is no table");
}

/// vCPU 0 of a real-time policy on CPU 0, which ran and waited so long, under a limit of so many us a second.
fn limited(run: f64, wait: f64, limit_us: i64) -> Machine {
    let mut machine = used();
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", run, wait);
    machine.threads[0].policy = Some(1);
    machine.settings.insert("proc/sys/kernel/sched_rt_runtime_us".into(), fact(limit_us.to_string()));
    machine.settings.insert("proc/sys/kernel/sched_rt_period_us".into(), fact("1000000".into()));
    machine
}

#[test]
fn a_real_time_thread_that_ran_up_to_its_limit_was_stopped_by_it() {
    let found = first(limited(0.7, 0.3, 700_000));
    assert_eq!((found.rule, found.severity), ("PLC-STARVED", Severity::High));
    assert!(found.title.contains("reached their limit, 700000 of 1000000 us (sched_rt_runtime_us)"), "{}", found.title);
    assert!(
        found.fix.iter().any(|line| line.starts_with("cat /proc/sys/kernel/sched_rt_runtime_us")),
        "{:?}",
        found.fix
    );
    let named = |machine: Machine| first(machine).title.contains("sched_rt_runtime_us");
    assert!(!named(limited(0.5, 0.3, 700_000)), "it stopped long before the limit");
    assert!(!named(limited(0.7, 0.3, -1)), "there is no limit");
    let mut normal = limited(0.7, 0.3, 700_000);
    normal.threads[0].policy = Some(0);
    assert!(!named(normal), "the limit is for real-time threads");
}

#[test]
fn the_thread_of_an_interrupt_goes_where_its_interrupt_goes() {
    let by = |name: &str| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads.push(program(name, 70, "0", 0.5));
        // Nowhere else is room, so that the vCPU stays.
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.98, 0.0);
        machine.threads.extend((2..8).map(|cpu| program("stress", 80 + cpu, &cpu.to_string(), 1.0)));
        machine.irqs.push(Irq { number: 34, name: "eth0".into(), affinity: Some(fact(set("0-3"))), ..Irq::default() });
        machine.irqs.push(Irq { number: 60, name: "nvme0q1".into(), affinity: Some(fact(set("0"))), ..Irq::default() });
        first(machine)
    };
    let moved = by("irq/34-eth0");
    assert_eq!(moved.rule, "PLC-STARVED");
    let fix = moved.fix.join("\n");
    assert!(fix.contains("echo CPUS > /proc/irq/34/smp_affinity_list") && !fix.contains("taskset"), "{fix}");
    assert_eq!(moved.undo, ["echo 0-3 > /proc/irq/34/smp_affinity_list"]);
    let managed = by("irq/60-nvme0q1").fix.join("\n");
    assert!(managed.contains("the kernel manages this interrupt") && !managed.contains("echo"), "{managed}");
    assert!(by("irqbalance").fix.join("\n").contains("ps -o pid,ppid,args -p 70"), "a program of a similar name");
}

/// What a neighbour takes within a period is no loss to a group that has used up its quota by the end of each.
#[test]
fn a_quota_that_binds_comes_before_neighbours() {
    let ranked = |throttled: u64| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads[0].time_group = Some("/labq".into());
        machine.threads.push(program("bash", 70, "0", 0.5));
        let counted = Throttled { periods: 100, throttled, ns: 0, cpus: 0.36 };
        let quota = Quota { cpus: fact(0.3), since_start: Some(counted), measured: Some(fact(counted)) };
        machine.quotas.insert("/labq".into(), quota);
        let answer = answer(machine);
        let rows = answer.table("rivals").unwrap().rows();
        let first = rows.into_iter().find(|row| row.number("rank") == Some(1.0)).unwrap();
        (first.text("rival").unwrap().to_owned(), first.text("speaks_for").unwrap().to_owned())
    };
    let (rival, speaks) = ranked(95);
    assert_eq!(rival, "a CPU quota", "{speaks}");
    assert!(speaks.starts_with("the CPU quota of /labq, 0.30 CPUs, throttled it in 95.0 % of its periods"), "{speaks}");
    assert_eq!(ranked(40).0, "other programs");
}

#[test]
fn a_group_that_several_vms_are_in_is_one_finding() {
    let shared = |group: &str| {
        let mut machine = used();
        machine.threads[0].time_group = Some(format!("{group}/web/vcpu0"));
        let mut other = of_vm("db", thread(Role::Vcpu(0), 21, "5", 0.5, 0.0));
        other.time_group = Some("/tenant.slice/db/vcpu0".into());
        second(&mut machine, "db", vec![other]);
        let counted = Throttled { periods: 20, throttled: 10, ns: 0, cpus: 0.2 };
        for path in ["/tenant.slice", "/other.slice"] {
            let quota = Quota { cpus: fact(0.5), since_start: Some(counted), measured: Some(fact(counted)) };
            machine.quotas.insert(path.into(), quota);
        }
        of_rule(machine, "PLC-QUOTA")
    };
    let [one] = &shared("/tenant.slice")[..] else { panic!("one cause") };
    assert_eq!(one.subject, "/tenant.slice");
    assert_eq!(one.title, "the CPU quota of /tenant.slice throttles 2 threads of 2 VMs in 50.0 % of the periods");
    assert_eq!(one.fix[0].split("   #").next(), Some("systemctl show -p CPUQuotaPerSecUSec tenant.slice"));
    let apart: Vec<String> = shared("/other.slice").into_iter().map(|finding| finding.subject).collect();
    assert_eq!(apart, ["db", "web"], "each has a group of its own");
}

#[test]
fn interrupts_of_one_card_are_one_finding() {
    let storms = |second: &str| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.4);
        machine.cpu_use.insert(0, CpuUse { softirq: 0.4, irq: 0.05, ..CpuUse::default() });
        machine.span_ns = Some(2_000_000_000);
        machine.nics.push(Nic { name: "eth0".into(), node: Some(fact(1)), ..Nic::default() });
        for (number, name) in [(24, "eth0-rx-0"), (25, second)] {
            let affinity = Some(fact(set("0-7")));
            let per_s = [(0, 9_000.0)].into();
            machine.irqs.push(Irq {
                number,
                name: name.into(),
                affinity,
                per_s,
                counts: [(0, 9)].into(),
                ..Irq::default()
            });
        }
        of_rule(machine, "PLC-IRQ")
    };
    let [one] = &storms("eth0-rx-1")[..] else { panic!("one card") };
    assert!(evidence(one).contains("also: interrupt 25 (eth0-rx-1) fires 9000 times per second"), "{}", evidence(one));
    let text = one.fix.join("\n");
    assert_ne!(one.changes.len(), 1, "both are moved, or none: {text}");
    assert_eq!(storms("ahci").len(), 2, "another device");
}

#[test]
fn where_nobody_waits_no_command_is_typed() {
    let machine = |wait: f64| {
        let mut machine = used();
        machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.3, wait);
        machine.threads.extend([14, 15].map(|tid| thread(Role::Vhost, tid, "0-1", 0.2, 0.0)));
        machine
    };
    let commands = |machine: Machine| -> Vec<String> {
        of_rule(machine, "PLC-WORKERS").into_iter().flat_map(|finding| finding.fix).collect()
    };
    let quiet = commands(machine(0.0));
    assert!(quiet.iter().all(|line| line.starts_with("kvmscope check ")) && quiet.len() == 1, "{quiet:?}");
    assert!(
        findings(machine(0.4)).iter().any(|finding| finding.severity > Severity::Info && !finding.changes.is_empty())
    );
    clean(machine(0.0), "nobody waits");
    let proposal = findings(machine(0.0));
    assert!(proposal.iter().all(|finding| !finding.title.contains(" short 0.00 to 0.00")), "nothing changes there");
}
