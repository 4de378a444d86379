//! Each manager's words for what rules type, and none of libvirt's in an object of another one.

use super::*;

fn spoken(line: &str, manager: &Manager) -> String {
    let (machine, domain) = (Machine::default(), Domain { name: "db".into(), ..Domain::default() });
    Speaker { machine: &machine, domain: &domain, manager: manager.clone() }.spoken(line)
}

#[test]
fn a_definition_without_a_namespace_is_of_whoever_types() {
    let here = Manager::KubeVirt { namespace: String::new(), name: "db".into() };
    assert_eq!(spoken("virsh domblklist db", &here), "kubectl get vmi db -o yaml   # what it is set to");
    let edit = "kubectl edit vm db   # spec.template.spec: domain.memory.hugepages.pageSize: 2Mi";
    assert_eq!(spoken("virsh edit db   # <memoryBacking><hugepages/></memoryBacking>", &here), edit);
}

#[test]
fn every_manager_has_words_for_what_rules_type() {
    let proxmox = Manager::Proxmox(102);
    let kubevirt = Manager::KubeVirt { namespace: "shop".into(), name: "db".into() };
    for (line, of_proxmox, of_kubevirt) in [
        (
            "virsh schedinfo db --live --config --set vcpu_quota=-1",
            "qm set 102 --cpulimit 0",
            "kubectl edit vm db -n shop   # spec.template.spec: domain.resources.limits.cpu",
        ),
        (
            "virsh edit db   # <memoryBacking><hugepages/></memoryBacking>",
            "qm set 102 --numa 1 --hugepages 2   # huge pages need --numa; as many must be free first: grep HugePages_Free /proc/meminfo",
            "kubectl edit vm db -n shop   # spec.template.spec: domain.memory.hugepages.pageSize: 2Mi",
        ),
        (
            "virsh edit db   # remove the elements",
            "qm config 102   # remove the elements: qm set has an option for it, or --args",
            "kubectl edit vm db -n shop   # spec.template.spec: remove the elements",
        ),
        (
            "virsh domblklist db",
            "qm config 102   # what it is set to",
            "kubectl get vmi db -n shop -o yaml   # what it is set to",
        ),
    ] {
        assert_eq!((spoken(line, &proxmox).as_str(), spoken(line, &kubevirt).as_str()), (of_proxmox, of_kubevirt));
        for manager in [Manager::Incus { program: "incus" }, Manager::Qemu] {
            assert!(!spoken(line, &manager).contains("virsh"), "{line} by {manager:?}");
        }
    }
    let pins = spoken("virsh emulatorpin db 3 --live --config", &kubevirt);
    assert!(pins.contains("isolateEmulatorThread: true"), "{pins}");
    assert_eq!(spoken("virsh vcpupin db 0 3", &Manager::Libvirt), "virsh vcpupin db 0 3");
    let openstack = Manager::OpenStack { server: "shop db".into(), flavor: Some("m1.large".into()) };
    assert_eq!(spoken("virsh vcpupin db 0 3", &openstack), "virsh vcpupin db 0 3");
    assert_eq!(
        spoken("virsh edit db   # <memoryBacking><hugepages/></memoryBacking>", &openstack),
        "openstack flavor set m1.large --property hw:mem_page_size=large   # a flavor of its own; then openstack server resize --flavor THAT 'shop db'"
    );
    assert_eq!(
        spoken("virsh edit db   # <cpu mode='host-model'/>", &Manager::Qemu),
        "qemu-system-x86_64 -cpu host ...   # where db is started"
    );
}

#[test]
fn no_phrase_hides_a_narrower_one_behind_it() {
    let all: Vec<Phrase> = phrases().collect();
    for (at, phrase) in all.iter().enumerate() {
        let hides = |other: &Phrase| phrase.has.iter().all(|word| other.has.iter().any(|own| own.contains(word)));
        assert!(!all[at + 1..].iter().any(hides), "{:?}", phrase.has);
    }
}

#[test]
fn rows_have_a_cell_for_each_manager() {
    for row in include_str!("tongue.tsv").lines().filter(|line| !line.starts_with('#')) {
        assert_eq!(row.split('\t').count(), 6, "{row}");
    }
}

/// Elements that checks type into a definition of libvirt.
const ELEMENTS: [&str; 9] = [
    "<numatune><memory mode='strict' nodeset='1'/>, from the next start",
    "<numatune> as it was",
    "<cpu><topology sockets='1' cores='8' threads='1'/></cpu>",
    "within <features><hyperv>: <relaxed state='on'/> <vpindex state='on'/>",
    "<cputune><vcpusched vcpus='1-3' scheduler='fifo' priority='1'/></cputune>",
    "<memoryBacking><hugepages/><access mode='shared'/></memoryBacking>",
    "<feature policy='disable' name='invtsc'/>",
    "<numa> with a <cell> for each node, and <numatune> with a <memnode> for each",
    "<source dev='eth0' mode='bridge'/>",
];

#[test]
fn no_element_of_libvirt_is_typed_into_an_object_of_another_manager() {
    let mut lines = ELEMENTS.map(|element| format!("virsh edit db   # {element}")).to_vec();
    lines.extend(
        ["iothreadadd db 2 --live", "iothreaddel db 2 --live", "numatune db --mode strict"]
            .map(|line| format!("virsh {line}")),
    );
    let managers = [
        Manager::Proxmox(102),
        Manager::KubeVirt { namespace: "shop".into(), name: "db".into() },
        Manager::Incus { program: "incus" },
        Manager::Qemu,
    ];
    for (line, manager) in lines.iter().flat_map(|line| managers.iter().map(move |manager| (line, manager))) {
        let said = spoken(line, manager);
        assert!(
            !said.contains("virsh") && !said.contains("='") && !said.contains("/>"),
            "{line} by {manager:?}: {said}"
        );
        let typed_into = said.split_once("spec.template.spec: ").map_or("", |(_, field)| field);
        assert!(!typed_into.contains('<'), "{line} by {manager:?}: {said}");
    }
    let kubevirt = &managers[1];
    let policy =
        spoken("virsh edit db   # <numatune><memory mode='strict' nodeset='1'/>, from the next start", kubevirt);
    assert!(
        policy.contains("topologyManagerPolicy: single-numa-node") && policy.contains("memoryManagerPolicy: Static")
    );
    let cells = spoken(&format!("virsh edit db   # {}", ELEMENTS[7]), kubevirt);
    assert!(cells.contains("guestMappingPassthrough"), "{cells}");
    let unknown = spoken(&format!("virsh edit db   # {}", ELEMENTS[4]), kubevirt);
    assert_eq!(
        unknown,
        "# a VirtualMachine has no field that is known here for what libvirt calls <cputune> and <vcpusched>"
    );
    let cores = spoken(&format!("virsh edit db   # {}", ELEMENTS[2]), &managers[0]);
    assert!(cores.starts_with("qm set 102 --sockets 1 --cores 8"), "{cores}");
}

#[test]
fn a_command_line_of_qemu_is_its_managers_to_write() {
    let (machine, domain) = (Machine::default(), Domain { name: "db".into(), ..Domain::default() });
    let of = |manager: Manager| {
        Speaker { machine: &machine, domain: &domain, manager }
            .of_qemu("qemu-system-x86_64 -cpu host,hv-time ...   # QEMU says more")
    };
    let args = "qm set 102 --args '-cpu host,hv-time'   # with the args that qm config 102 has";
    assert_eq!(of(Manager::Proxmox(102)), args);
    assert!(of(Manager::Incus { program: "lxc" }).starts_with("lxc config set db raw.qemu='-cpu host,hv-time'"));
    assert!(of(Manager::Qemu).starts_with("qemu-system-x86_64 -cpu"));
}

#[test]
fn a_limit_of_time_goes_where_it_is_set_and_comes_back_as_it_was() {
    let said = |line: &str, group: &str, file: &str, command: bool| {
        let mut machine = Machine::default();
        let mut thread = host::machine::Thread::new(Role::Vcpu(0), "CPU 0/KVM");
        (thread.vm, thread.pid, thread.time_group) = (Some("db".into()), Some(7), Some(group.into()));
        machine.threads.push(thread);
        let fact = |file: &str| host::machine::Fact::new(1.5, format!("sys/fs/cgroup{group}/{file}"));
        let quota = host::machine::Quota { cpus: fact(file), since_start: None, measured: None };
        machine.quotas.insert(group.into(), quota);
        let weight = host::machine::Fact::new(50, format!("sys/fs/cgroup/cpu{group}/cpu.shares"));
        machine.weights.insert(group.into(), weight);
        let domain = Domain { name: "db".into(), by_command: command, ..Domain::default() };
        let manager = if command { Manager::Qemu } else { Manager::Proxmox(102) };
        Speaker { machine: &machine, domain: &domain, manager }.spoken(line)
    };
    let (none, back) = (
        "virsh schedinfo db --live --config --set global_quota=-1",
        "virsh schedinfo db --live --config --set global_quota=150000   # with global_period=100000",
    );
    let unit = |line: &str| said(line, "/system.slice/vm.service", "cpu.max", true);
    assert_eq!(
        (unit(none), unit(back)),
        (
            "systemctl set-property --runtime vm.service CPUQuota=".to_owned(),
            "systemctl set-property --runtime vm.service CPUQuota=150%".to_owned()
        )
    );
    let file = |line: &str| said(line, "/firecracker/a", "cpu.max", true);
    assert_eq!(
        (file(none), file(back)),
        (
            "echo max > /sys/fs/cgroup/firecracker/a/cpu.max".to_owned(),
            "echo 150000 100000 > /sys/fs/cgroup/firecracker/a/cpu.max".to_owned()
        )
    );
    let proxmox = |line: &str| said(line, "/qemu.slice/102.scope", "cpu.max", false);
    assert_eq!(
        (proxmox(none), proxmox(back)),
        ("qm set 102 --cpulimit 0".to_owned(), "qm set 102 --cpulimit 1.5".to_owned())
    );
    let shares = said("virsh schedinfo db --live --config --set cpu_shares=1024", "/a.service", "cpu.max", true);
    assert_eq!(shares, "echo 1024 > /sys/fs/cgroup/cpu/a.service/cpu.shares");
}

#[test]
fn a_translated_vm_gets_kvm_from_its_manager() {
    let line = "virsh edit db   # <domain type='kvm'/>, from the next start";
    assert_eq!(spoken(line, &Manager::Proxmox(102)), "qm set 102 --kvm 1   # from the next start");
    assert_eq!(spoken(line, &Manager::Qemu), "qemu-system-x86_64 -accel kvm ...   # where db is started");
}
