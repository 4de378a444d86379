//! What is proposed for a host with interrupts, polling threads and the kernel's own work beside its VMs.

use base::{Change, CpuSet, Section, Setting};
use host::Machine;
use host::machine::{Cpu, CpuUse, Domain, Fact, Irq, Nic, Pmd, PmdQueue, Role, Switch, SwitchPort, Thread, domains_of};
use kvmscope_analysis::placement::model::Model;
use kvmscope_analysis::placement::proposal::domain_xml;
use kvmscope_analysis::placement::solver::{Goal, Kind, Plan};
use kvmscope_analysis::placement::{AskedPolling, Wishes, build, section::section};

fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

fn fact<T>(value: T) -> Fact<T> {
    Fact::new(value, "test:1")
}

fn thread(vm: Option<&str>, role: Role, tid: i32, cpus: &str, run: f64) -> Thread {
    let mut thread = Thread::new(role, role.to_string());
    (thread.vm, thread.pid, thread.tid) = (vm.map(str::to_owned), Some(10), Some(tid));
    thread.affinity = Some(fact(set(cpus)));
    thread.last_cpu = set(cpus).first().map(fact);
    (thread.run_share, thread.wait_share) = (Some(fact(run)), Some(fact(0.0)));
    thread
}

/// Eight CPUs on two nodes. A VM of two busy vCPUs; the interrupt of a NIC on the other node is on the first of them, and a
/// polling thread on the second.
fn host() -> Machine {
    let mut machine = Machine::default();
    for cpu in 0..8 {
        let about = Cpu { core: cpu, package: Some(cpu / 4), node: Some(cpu / 4), last_cache: None };
        machine.topology.cpus.insert(cpu, about);
        machine.topology.online.insert(cpu);
        machine.cpu_use.insert(cpu, CpuUse { idle: 1.0, ..CpuUse::default() });
    }
    machine.cpu_use.insert(0, CpuUse { busy: 0.7, softirq: 0.3, ..CpuUse::default() });
    machine.span_ns = Some(2_000_000_000);
    let definition = "<domain><name>web</name><vcpu>2</vcpu><iothreads>1</iothreads><cputune><vcpupin vcpu='0' cpuset='0'/>\
        <vcpupin vcpu='1' cpuset='1'/><emulatorpin cpuset='2-3'/></cputune></domain>";
    machine.domains = domains_of(definition, "web.xml", 1, "").unwrap();
    machine.threads = vec![
        thread(Some("web"), Role::Vcpu(0), 11, "0", 0.7),
        thread(Some("web"), Role::Vcpu(1), 12, "1", 0.6),
        thread(Some("web"), Role::Emulator, 10, "2-3", 0.1),
        thread(Some("web"), Role::IoThread(1), 13, "2-3", 0.1),
        thread(None, Role::Pmd, 20, "1", 1.0),
    ];
    machine.switch = Switch {
        pmd_mask: Some(fact(set("1"))),
        pmds: vec![Pmd {
            cpu: 1,
            queues: vec![PmdQueue { port: "dpdk0".into(), ..PmdQueue::default() }],
            ..Pmd::default()
        }],
        bridges: vec![host::machine::Bridge {
            name: "br0".into(),
            user_space: true,
            ports: vec![SwitchPort { name: "dpdk0".into(), node: Some(fact(1)), ..SwitchPort::default() }],
        }],
        ..Switch::default()
    };
    machine.nics = vec![Nic { name: "eth0".into(), node: Some(fact(1)), ..Nic::default() }];
    machine.irqs = vec![
        Irq {
            number: 34,
            name: "eth0-rx-0".into(),
            affinity: Some(fact(set("0-7"))),
            effective: Some(set("0")),
            per_s: [(0, 9_000.0)].into(),
            counts: [(0, 1)].into(),
            ..Irq::default()
        },
        Irq {
            number: 40,
            name: "nvme0q1".into(),
            affinity: Some(fact(set("0"))),
            per_s: [(0, 1_000.0)].into(),
            counts: [(0, 1)].into(),
            ..Irq::default()
        },
    ];
    machine.settings.insert("sys/devices/virtual/workqueue/cpumask".into(), fact("ff".to_owned()));
    machine
}

fn model(machine: Machine, wishes: &Wishes) -> Model {
    build::model(base::Level::At(0), "L0", machine, false, wishes)
}

fn wishes(goal: Goal, keep: &[&str], reserve: &str) -> Wishes {
    let keep = keep.iter().map(|name| (*name).to_owned()).collect();
    Wishes { goal, keep, reserve: set(reserve), polling: None }
}

/// The plan that scores best, whatever it takes to type.
fn best(model: &Model) -> &Plan {
    let plans = model.proposal.plans.iter();
    plans.min_by(|a, b| a.score.total.total_cmp(&b.score.total)).unwrap()
}

/// Where interrupt 34 goes, and what its mask was.
fn irq_change(changes: &[Change]) -> Option<(CpuSet, String)> {
    changes.iter().find_map(|change| match change.setting {
        Setting::IrqAffinity { irq: 34 } => Some((set(&change.to), change.from.clone().unwrap_or_default())),
        _ => None,
    })
}

#[test]
fn interrupts_and_polling_threads_leave_the_cpus_of_vcpus() {
    let model = model(host(), &Wishes::default());
    let changes = model.proposal.all_changes(best(&model));
    let (cpus, from) = irq_change(&changes).expect("the interrupt moves");
    assert_eq!((cpus.is_within(&set("4-7")), from.as_str()), (true, "0-7"), "near its NIC, and back to the whole mask");
    let mask =
        changes.iter().find(|change| matches!(change.setting, Setting::PmdMask)).expect("the polling thread moves");
    assert!(mask.command().starts_with("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x"), "{mask:?}");
    assert_eq!(mask.undo().unwrap(), "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x2");
    let cpus = &mask.to;
    assert!(set(cpus).is_within(&set("4-7")), "on the node of the port that it serves: {cpus}");
    assert!(!format!("{:?}", model.proposal.subjects).contains("nvme"), "a managed interrupt refuses every mask");
    assert!(changes.iter().all(|change| change.undo().is_some()), "each has a way back: {changes:?}");
}

/// As many polling threads as a plan asks for.
fn asked(threads: u32) -> Wishes {
    Wishes { polling: Some(AskedPolling { threads, from: "--pmd-cores".into() }), ..Wishes::default() }
}

#[test]
fn as_many_polling_threads_as_a_plan_asks_for_have_cpus_of_their_own_beside_the_vcpus() {
    for threads in [2, 3] {
        let model = model(host(), &asked(threads));
        let section = section(std::slice::from_ref(&model));
        let found = section.findings.iter().find(|finding| finding.rule == "PLC-PMDCOUNT").expect("one polls now");
        let [mask] = &found.changes[..] else { panic!("{found:?}") };
        assert_eq!((&mask.setting, set(&mask.to).len()), (&Setting::PmdMask, threads as usize));
        assert!(set(&mask.to).is_within(&set("4-7")), "on the node of the port: {mask:?}");
        assert_eq!(mask.undo().unwrap(), "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x2");
        let plan = model.proposal.advised().unwrap();
        let units = || model.proposal.task.units.iter().zip(&plan.places);
        for (_, place) in units().filter(|(unit, _)| unit.kind == Kind::Pmd) {
            let others = units().filter(|(unit, other)| unit.kind != Kind::Housekeeping && other.meets(place));
            assert_eq!((place.len(), others.count()), (1, 1), "alone on its CPU");
        }
    }
    let of_one = section(&[model(host(), &asked(1))]);
    assert!(of_one.findings.iter().all(|finding| finding.rule != "PLC-PMDCOUNT"), "as many as run");
    assert!(
        section(&[model(host(), &Wishes::default())]).findings.iter().all(|finding| finding.rule != "PLC-PMDCOUNT")
    );
}

#[test]
fn fewer_polling_threads_leave_their_cpus_and_queues_that_are_tied_there_are_tied_anew() {
    let mut machine = host();
    machine.threads.extend([thread(None, Role::Pmd, 21, "5", 1.0), thread(None, Role::Pmd, 22, "6", 1.0)]);
    machine.switch.pmd_mask = Some(fact(set("1,5-6")));
    machine.switch.bridges[0].ports[0].rx_affinity = vec![(0, 5), (1, 1)];
    let section = section(&[model(machine, &asked(2))]);
    let found = section.findings.iter().find(|finding| finding.rule == "PLC-PMDCOUNT").unwrap();
    assert_eq!(found.title, "2 polling threads are asked for, and 3 run");
    let mask = set(&found.changes[0].to);
    assert!(mask.len() == 2 && !mask.contains(1), "{mask}");
    let tied =
        found.fix.iter().find(|line| line.contains("pmd-rxq-affinity")).expect("queue 1 would be polled by nobody");
    let ties = tied.split('"').nth(1).unwrap().split(',').map(|tie| tie.split_once(':').unwrap().1.parse().unwrap());
    assert!(ties.clone().count() == 2 && ties.clone().all(|cpu| mask.contains(cpu)), "{tied}");
    let back = "ovs-vsctl set Interface dpdk0 other_config:pmd-rxq-affinity=\"0:5,1:1\"";
    assert!(found.undo.iter().any(|line| line == back), "{:?}", found.undo);
}

#[test]
fn what_is_kept_stays_and_what_is_reserved_gets_interrupts_only() {
    for keep in [&["irqs"][..], &["irq34"], &["eth0"]] {
        let model = model(host(), &wishes(Goal::Throughput, keep, ""));
        assert_eq!(irq_change(&model.proposal.all_changes(best(&model))), None, "{keep:?}");
    }
    let kept = model(host(), &wishes(Goal::Throughput, &["pmd"], ""));
    let changes = kept.proposal.all_changes(best(&kept));
    assert!(!changes.iter().any(|change| matches!(change.setting, Setting::PmdMask)), "{changes:?}");
    let kept = model(host(), &wishes(Goal::Throughput, &["web", "pmd", "irqs"], ""));
    assert!(kept.proposal.better().is_empty(), "nothing is left to move");
    let reserved = model(host(), &wishes(Goal::Throughput, &[], "0,4-7"));
    for plan in reserved.proposal.better() {
        for (unit, place) in reserved.proposal.task.units.iter().zip(&plan.places) {
            let of_host = unit.vm.is_none() && unit.demand < 1.0;
            assert!(of_host || place.is_within(&set("1-3")), "{unit:?} on {place}");
        }
    }
    let (cpus, _) = irq_change(&reserved.proposal.all_changes(best(&reserved))).expect("the interrupt moves");
    assert!(cpus.meets(&set("4-7")), "interrupts may use what is reserved: {cpus}");
}

#[test]
fn latency_moves_the_kernels_own_work_away_and_names_what_only_a_person_can_do() {
    let throughput = model(host(), &Wishes::default());
    let sysfs = |changes: &[Change]| {
        changes.iter().find(|change| matches!(change.setting, Setting::SysfsWrite { .. })).cloned()
    };
    assert_eq!(sysfs(&throughput.proposal.all_changes(best(&throughput))), None);
    let latency = model(host(), &wishes(Goal::Latency, &[], ""));
    let plan = best(&latency);
    assert_eq!((plan.score.shared, plan.score.disturbed), (0.0, 0.0));
    let Some(Change { setting: Setting::SysfsWrite { path }, to, from }) = sysfs(&latency.proposal.all_changes(plan))
    else {
        panic!("the work queues keep their CPUs")
    };
    assert_eq!((path.as_str(), from.as_deref()), ("devices/virtual/workqueue/cpumask", Some("ff")));
    let left = CpuSet::parse_mask(&to).unwrap();
    assert!(!left.is_empty() && !plan.places[..2].iter().any(|place| place.meets(&left)), "{left}");
    let section = section(&[latency]);
    let findings: Vec<_> = section.findings.iter().filter(|finding| finding.rule == "PLC-PROPOSAL").collect();
    assert!(
        findings.iter().any(|finding| finding.fix.iter().any(|line| line.contains("isolcpus=managed_irq,domain,")))
    );
    let moves =
        findings.iter().find(|finding| finding.fix.iter().any(|line| line.contains("smp_affinity_list"))).unwrap();
    assert!(!moves.fix.iter().any(|line| line.starts_with("systemctl")), "it was not seen to run: {:?}", moves.fix);
    let mut balanced = host();
    balanced.threads.push(Thread::new(Role::Other, "irqbalance"));
    let section = kvmscope_analysis::placement::section::section(&[model(balanced, &wishes(Goal::Latency, &[], ""))]);
    let stops = |line: &String| line.starts_with("systemctl stop irqbalance");
    assert!(section.findings.iter().any(|finding| finding.fix.iter().any(stops)));
}

#[test]
fn each_placement_is_a_finding_whose_changes_are_the_tables_commands() {
    let section = section(&[model(host(), &Wishes::default())]);
    let proposal = section.table("proposal").unwrap();
    let column = |name: &str| proposal.column(name).unwrap();
    for finding in section.findings.iter().filter(|finding| finding.rule == "PLC-PROPOSAL") {
        let of_rank = |row: &&Vec<base::Cell>| row[column("rank")] == base::Cell::U64(finding.subject.parse().unwrap());
        let rows: Vec<_> = proposal.rows.iter().filter(of_rank).collect();
        let texts = |name: &str| -> String { rows.iter().map(|row| format!("{:?};", row[column(name)])).collect() };
        for change in &finding.changes {
            assert!(texts("command").contains(&change.command()), "{change:?} of {}", finding.id());
            assert!(texts("undo").contains(&change.undo().unwrap()));
            assert!(finding.fix.contains(&change.command()) && finding.undo.contains(&change.undo().unwrap()));
        }
        assert!(!finding.changes.is_empty());
    }
    verdicts(&section);
}

/// Every plan says why it stands where it does.
fn verdicts(section: &Section) {
    let plans = section.table("plans").unwrap();
    let verdict = plans.column("verdict").unwrap();
    let said: Vec<String> = plans.rows.iter().map(|row| format!("{:?}", row[verdict])).collect();
    assert_eq!(said.iter().filter(|text| text.contains("current placement")).count(), 1, "{said:?}");
    assert!(said[0].contains("better than now"), "{said:?}");
}

#[test]
fn the_definition_reads_back_as_what_was_proposed() {
    let model = model(host(), &Wishes::default());
    for plan in model.proposal.better() {
        let text = domain_xml(&model.proposal, plan, &model.machine.domains[0]);
        let [Domain { name, vcpus, vcpu_pins, emulator_pins, iothreads, iothread_pins, .. }] =
            &domains_of(&text, "f", 1, "").unwrap()[..]
        else {
            panic!("one domain in {text}")
        };
        assert_eq!((name.as_str(), *vcpus, *iothreads), ("web", Some(2), 1));
        for vcpu in 0..2 {
            assert_eq!(vcpu_pins[&vcpu].value, plan.places[vcpu as usize], "{text}");
        }
        assert_eq!(emulator_pins[0].value, plan.places[2]);
        assert_eq!(iothread_pins[&1].value, plan.places[2], "an iothread without a pin would have the vCPUs' set");
        assert!(!text.contains("numatune"), "no placement moves memory: {text}");
    }
}

#[test]
fn the_figure_has_chips_for_interrupts_and_polling_threads() {
    let section = section(&[model(host(), &Wishes::default())]);
    let base::figure::Drawing::Topology(panels) = &section.figures[0].drawing else { panic!("a topology") };
    let now: Vec<_> = panels[0].nodes.iter().flat_map(|node| node.cores.iter().flatten()).collect();
    assert_eq!(now[0].chips, ["vcpu 0", "irq 34 eth0-rx-0"]);
    assert_eq!(now[1].chips, ["vcpu 1", "pmd 0"]);
    assert!(now[0].contended && now[1].contended && !now[2].contended);
    let is_irq =
        |link: &&base::figure::Link| link.text.contains("irq 34") && link.text.contains("its device on node 1");
    let link = panels[0].links.iter().find(is_irq).unwrap();
    assert!(panels[0].nodes[link.to.unwrap()].title.contains("node 1") && link.from != link.to, "{link:?}");
}

/// Whole trees of hosts that do not exist: read, proposed for, and every change typed with its way back.
#[test]
fn generated_hosts_get_placements_that_can_be_made() {
    for (nodes, cores, siblings, vms) in [(1, 1, 2, 1), (2, 4, 2, 3), (4, 16, 1, 6)] {
        let root = tempfile::tempdir().unwrap();
        let tree = generate::tree::Tree { nodes, cores, siblings, vms, irqs: 4, seed: 3 };
        let snapshots = [0, 1].map(|sample| {
            let path = root.path().join(sample.to_string());
            tree.write(&path, sample).unwrap();
            host::Snapshot::open(&path).unwrap()
        });
        let model = || model(Machine::of_snapshots(&snapshots), &Wishes::default());
        let (first, again) = (model(), model());
        assert_eq!(first.proposal.plans, again.proposal.plans, "twice the same");
        let online = &first.machine.topology.online;
        assert_eq!((online.len() as u32, first.machine.domains.len() as u32), (tree.cpus(), vms));
        // Two CPUs that a VM without pins fills can be used no better.
        assert_eq!(first.proposal.better().is_empty(), tree.cpus() == 2, "else helpers lie on vCPUs");
        for plan in first.proposal.better() {
            assert!(plan.places.iter().all(|place| !place.is_empty() && place.is_within(online)));
            let changes = first.proposal.all_changes(plan);
            assert_eq!(changes.len() as u32, plan.commands, "{changes:?}");
            assert!(changes.iter().all(|change| change.undo().is_some_and(|undo| undo != change.command())));
        }
    }
}

/// Helpers beside the first vCPU: a worker on its CPU alone, the main thread on more.
fn helpers(machine: &mut Machine) {
    machine.threads.retain(|thread| !matches!(thread.role, Role::Emulator | Role::IoThread(_) | Role::Pmd));
    let mut helpers =
        [thread(Some("web"), Role::Vhost, 14, "0", 0.6), thread(Some("web"), Role::Emulator, 10, "0-1", 0.3)];
    helpers.iter_mut().for_each(|thread| thread.start_ticks = thread.tid.map(|tid| tid as u64 * 100));
    machine.threads.extend(helpers);
    machine.switch = Switch::default();
    machine.irqs.clear();
}

#[test]
fn each_thread_that_moves_states_the_cpus_that_it_had_itself() {
    let mut machine = host();
    machine.domains = domains_of("<domain><name>web</name><vcpu>2</vcpu></domain>", "web.xml", 1, "").unwrap();
    machine.domains[0].whole = None; // not libvirt's
    helpers(&mut machine);
    let model = model(machine, &wishes(Goal::Throughput, &[], ""));
    let changes = model.proposal.all_changes(best(&model));
    let from = |wanted: i32| {
        changes.iter().find_map(|change| match &change.setting {
            Setting::TaskAffinity(thread) if thread.tid == wanted => {
                assert_eq!((thread.start_ticks, thread.comm.is_some()), (Some(wanted as u64 * 100), true));
                Some(change.from.clone().unwrap())
            }
            _ => None,
        })
    };
    assert_eq!((from(14).as_deref(), from(10).as_deref()), (Some("0"), Some("0-1")), "{changes:?}");
}

#[test]
fn a_worker_that_is_pinned_by_hand_stays_pinned_and_so_does_the_set_around_it() {
    let mut machine = host();
    helpers(&mut machine);
    machine.domains[0].emulator_pins = vec![fact(set("0-1"))];
    let inside = model(machine.clone(), &wishes(Goal::Throughput, &[], ""));
    let moves_helpers = |model: &Model| {
        let changes = model.proposal.plans.iter().flat_map(|plan| model.proposal.all_changes(plan)).collect::<Vec<_>>();
        let worker = |change: &Change| matches!(&change.setting, Setting::TaskAffinity(thread) if thread.tid == 14);
        let sets: Vec<CpuSet> = changes.iter().filter(|change| worker(change)).map(|change| set(&change.to)).collect();
        (changes.iter().any(|change| matches!(change.setting, Setting::EmulatorPin { .. })), sets)
    };
    assert_eq!(moves_helpers(&inside), (false, Vec::new()), "emulatorpin would take the worker with it");
    machine.domains[0].emulator_pins = vec![fact(set("2-3"))];
    machine.threads.iter_mut().filter(|thread| thread.role == Role::Emulator).for_each(|thread| {
        thread.affinity = Some(fact(set("2-3")));
    });
    let (_, sets) = moves_helpers(&model(machine, &wishes(Goal::Throughput, &[], "")));
    assert!(
        !sets.is_empty() && sets.iter().all(|cpus| cpus.len() == 1),
        "it leaves the vCPU's CPU for one other: {sets:?}"
    );
}

#[test]
fn an_emulator_pin_is_undone_to_the_pin_and_not_to_a_thread_s_mask() {
    let mut machine = host();
    helpers(&mut machine);
    machine.domains[0].emulator_pins = vec![fact(set("0-1"))];
    machine.threads.iter_mut().filter(|thread| thread.role == Role::Vhost).for_each(|thread| {
        thread.affinity = Some(fact(set("0-1")));
    });
    let undo = |machine: Machine| {
        let model = model(machine, &wishes(Goal::Throughput, &[], ""));
        let changes = model.proposal.all_changes(best(&model));
        let pin = changes
            .iter()
            .find(|change| matches!(change.setting, Setting::EmulatorPin { .. }))
            .expect("the helpers move");
        pin.undo_or_why()
    };
    assert_eq!(undo(machine.clone()), "virsh emulatorpin web 0-1 --live --config");
    // Nobody asked libvirt: the mask that all of them have is the way back.
    machine.domains[0].emulator_pins.clear();
    assert_eq!(undo(machine.clone()), "virsh emulatorpin web 0-1 --live --config");
    // The mask of one was not read: no list is known to be right for all of them.
    machine.threads.iter_mut().filter(|thread| thread.role == Role::Vhost).for_each(|thread| thread.affinity = None);
    let said = undo(machine);
    assert!(said.starts_with("# no undo for `virsh emulatorpin web ") && said.ends_with("was not read"), "{said}");
}

/// Commands of findings of this rule.
fn typed(section: &Section, rule: &str) -> Vec<String> {
    section.findings.iter().filter(|finding| finding.rule == rule).flat_map(|finding| finding.fix.clone()).collect()
}

/// Two CPUs, both full of other programs. A vCPU starves on the first; its emulator, beside it, hardly ran.
fn full() -> Machine {
    let mut machine = host();
    machine.topology.cpus.retain(|cpu, _| *cpu < 2);
    machine.topology.online = set("0-1");
    (machine.irqs, machine.switch, machine.nics) = (Vec::new(), Switch::default(), Vec::new());
    let definition = "<domain><name>web</name><vcpu>1</vcpu><cputune><vcpupin vcpu='0' cpuset='0'/>\
        <emulatorpin cpuset='0'/></cputune></domain>";
    machine.domains = domains_of(definition, "web.xml", 1, "").unwrap();
    let mut vcpu = thread(Some("web"), Role::Vcpu(0), 11, "0", 0.2);
    vcpu.wait_share = Some(fact(0.6));
    machine.threads = vec![
        vcpu,
        thread(Some("web"), Role::Emulator, 10, "0", 0.0),
        Thread { name: "backup".to_owned(), ..thread(None, Role::Other, 30, "0", 0.8) },
    ];
    machine.cpu_use = [0, 1].map(|cpu| (cpu, CpuUse { busy: 1.0, ..CpuUse::default() })).into();
    machine
}

#[test]
fn what_gains_nothing_is_not_proposed_and_who_takes_the_cpu_is_named() {
    let full = section(&[model(full(), &Wishes::default())]);
    assert_eq!(typed(&full, "PLC-PROPOSAL"), Vec::<String>::new(), "an idle emulator may as well stay");
    let plans = full.table("plans").unwrap();
    let verdict = plans.column("verdict").unwrap();
    let verdicts: Vec<String> = plans.rows.iter().map(|row| format!("{:?}", row[verdict])).collect();
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let starved = full.findings.iter().find(|finding| finding.rule == "PLC-STARVED").expect("the vCPU starves");
    assert_eq!(starved.title, "vcpu 0 of web starved, 0.60 CPUs short: another program, backup (30), ran on CPU 0");
    assert_eq!(
        starved.evidence[0].what,
        "vcpu 0 (11) ran 20.0 % and waited 60.0 % of the span, last on CPU 0: another program, backup (30), ran on CPU 0 \
         (80.0 % of the time)"
    );
    assert!(
        starved.fix[0].starts_with("ps -o pid,ppid,args -p 30   # no CPU without a vCPU has room"),
        "{:?}",
        starved.fix
    );
    let overlap = full.findings.iter().find(|finding| finding.rule == "PLC-OVERLAP").expect("the pins do overlap");
    assert_eq!(overlap.severity, base::Severity::Low);
    assert!(!overlap.evidence.iter().any(|seen| seen.what.contains("waited")), "{:?}", overlap.evidence);
}

#[test]
fn no_thread_of_the_kernel_is_moved_that_stays_on_its_cpu() {
    let by = |name: &str, softirq: f64| {
        let mut machine = full();
        machine.threads[2].name = name.to_owned();
        machine.cpu_use.insert(0, CpuUse { softirq, busy: 1.0 - softirq, ..CpuUse::default() });
        let section = section(&[model(machine, &Wishes::default())]);
        let starved = section.findings.iter().find(|finding| finding.rule == "PLC-STARVED").expect("the vCPU starves");
        (starved.title.clone(), starved.fix.join("\n"))
    };
    // Its time is counted as softirq, whose cause is what can be changed.
    let (title, fix) = by("ksoftirqd/0", 0.8);
    assert!(title.ends_with(": interrupts and softirqs ran on CPU 0"), "{title}");
    assert!(fix.contains("cat /proc/softirqs") && fix.contains("rps_cpus") && !fix.contains("taskset"), "{fix}");
    let (title, fix) = by("kworker/0:1", 0.0);
    assert!(title.ends_with("a worker of the kernel, kworker/0:1 (30), ran on CPU 0"), "{title}");
    assert!(!fix.contains("softirqs") && !fix.contains("taskset"), "{fix}");
    let (_, fix) = by("backup", 0.0);
    assert!(!fix.contains("softirqs") && fix.contains("args -p 30"), "{fix}");
}

#[test]
fn helpers_that_ran_while_a_vcpu_waited_are_who_kept_it_waiting() {
    let mut machine = full();
    machine.threads[1] = thread(Some("web"), Role::Emulator, 10, "0", 0.7);
    machine.threads[2].run_share = Some(fact(0.1));
    let section = section(&[model(machine, &Wishes::default())]);
    assert!(!section.findings.iter().any(|finding| finding.rule == "PLC-STARVED"), "PLC-OVERLAP has it");
    let overlap = section.findings.iter().find(|finding| finding.rule == "PLC-OVERLAP").unwrap();
    assert_eq!(overlap.severity, base::Severity::High);
    assert!(overlap.evidence.iter().any(|seen| seen.what.contains("vcpu 0 (11) ran 20.0 % and waited 60.0 %")));
}

/// A host with isolated CPUs 1-2 and 5-6, its vCPUs on 1 and 5, polling threads on 2 and 5.
#[test]
fn vcpus_and_polling_threads_with_isolated_cpus_stay_on_such_and_all_masks_of_a_report_are_one() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts-sosreport");
    let snapshots = [host::Snapshot::open(&root).unwrap()];
    for goal in [Goal::Throughput, Goal::Latency, Goal::Density, Goal::Power] {
        let model = model(Machine::of_snapshots(&snapshots), &wishes(goal, &[], ""));
        let isolated = model.machine.topology.isolated.clone().unwrap();
        assert_eq!(isolated, set("1-2,5-6"));
        let mut masks: Vec<String> = Vec::new();
        for finding in section(&[model]).findings {
            let mut pinned = [set("1"), set("5")];
            for change in &finding.changes {
                match &change.setting {
                    Setting::PmdMask => masks.push(change.to.clone()),
                    Setting::VcpuPin { vcpu, .. } => pinned[*vcpu as usize] = set(&change.to),
                    _ => {}
                }
            }
            assert!(pinned.iter().all(|cpus| cpus.is_within(&isolated)), "{goal:?}: {:?}", finding.fix);
            assert!(!pinned[0].meets(&pinned[1]), "{goal:?}: {:?}", finding.fix);
        }
        assert!(goal != Goal::Throughput || masks.len() > 1, "PLC-PMD and a placement have one: {masks:?}");
        masks.dedup();
        assert!(masks.iter().all(|mask| set(mask).is_within(&isolated)) && masks.len() <= 1, "{goal:?}: {masks:?}");
    }
}
