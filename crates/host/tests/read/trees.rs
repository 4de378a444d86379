//! Trees that other tools have gathered: a sosreport, a must-gather.

use kvmscope_host::machine::{NicKind, Role};
use kvmscope_host::snapshot::trees_in;
use kvmscope_host::{Machine, Snapshot};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn machine(tree: &Path) -> Machine {
    Machine::of_snapshots(&[Snapshot::open(tree).unwrap()])
}

#[test]
fn a_sosreport_has_threads_without_having_their_files() {
    let machine = machine(&fixture("hosts-sosreport"));
    assert_eq!((machine.topology.cores().len(), machine.topology.nodes().len()), (4, 2));
    assert_eq!(machine.topology.isolated.as_ref().unwrap().to_string(), "1-2,5-6");
    let [domain] = &machine.domains[..] else { panic!("the domain that is off has no say: {:?}", machine.domains) };
    assert_eq!((domain.name.as_str(), domain.id, domain.pid), ("vnf", Some(3), Some(4242)));
    let threads: Vec<_> = machine
        .threads
        .iter()
        .map(|thread| {
            let cpus = thread.affinity.as_ref().map(|set| set.value.to_string()).unwrap_or_default();
            (thread.role, thread.tid.unwrap(), cpus)
        })
        .collect();
    let of = |role, tid, cpus: &str| (role, tid, cpus.to_owned());
    assert_eq!(
        threads,
        [
            of(Role::Vcpu(0), 4250, "1"),
            of(Role::Vcpu(1), 4251, "5"),
            of(Role::Emulator, 4242, "0,4"),
            of(Role::Vhost, 4300, "0-7"),
            of(Role::Pmd, 1821, "2"),
            of(Role::Pmd, 1822, "5"),
        ]
    );
    assert_eq!(machine.threads[3].affinity.as_ref().unwrap().place, "proc/4300/status", "the mask in force");
    assert_eq!(machine.threads[3].cgroup.as_deref(), Some("/"));
    let run = machine.threads[4].run_share.as_ref().unwrap();
    assert!(run.value == 0.995 && run.place.ends_with("an average since it began"), "{run:?}");
    assert!(machine.threads.iter().all(|thread| thread.wait_share.is_none()), "one report of pidstat is no interval");
    let memory = &machine.vm_memory["vnf"].value;
    assert_eq!((memory[&0], memory[&1]), ((256 << 21) + (400 << 12), (1792 << 21) + (900 << 12)));
    let switch = &machine.switch;
    assert_eq!((switch.pmd_mask.as_ref().unwrap().value.to_string(), switch.pmds.len()), ("2,5".to_owned(), 2));
    assert_eq!(switch.port("dpdk0").unwrap().backing.as_deref(), Some("0000:3b:00.0"));
    let nic = machine.nics.iter().find(|nic| nic.name == "eno1").unwrap();
    assert_eq!((nic.node.as_ref().unwrap().value, nic.coalescing["rx-usecs"].value.as_str()), (0, "250"));
    assert!(!nic.offloads["generic-receive-offload"].value);
    assert_eq!(nic.channels["combined"].1, 8);
    assert_eq!(machine.nic_of(&machine.irqs[1]).unwrap().name, "eno1");
    assert_eq!(machine.irqs[1].affinity.as_ref().unwrap().value.to_string(), "1");
    assert!(machine.unread.is_empty(), "{:?}", machine.unread);
}

#[test]
fn nodes_of_a_must_gather_are_machines() {
    let trees = trees_in(&fixture("hosts-must-gather").join("must-gather.local.1"));
    let [first, second] = &trees[..] else { panic!("{trees:?}") };
    let worker = machine(first);
    assert_eq!((worker.topology.cpus.len(), worker.topology.nodes().len()), (8, 2));
    assert_eq!(worker.topology.isolated.as_ref().unwrap().to_string(), "2-7", "out of the command line");
    let names: Vec<&str> = worker.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["virt-launcher-web-x7k2p", "process-6000"]);
    let roles: Vec<Role> = worker.threads_of(names[0]).map(|thread| thread.role).collect();
    assert_eq!(roles, [Role::Emulator, Role::Vcpu(0), Role::Vcpu(1), Role::Vhost, Role::IoThread(1)]);
    assert_eq!(worker.irqs.len(), 2, "a number without a source is no interrupt");
    assert_eq!(worker.irqs[0].affinity.as_ref().unwrap().value.to_string(), "3");
    let [nic] = &worker.nics[..] else { panic!("{:?}", worker.nics) };
    assert_eq!((nic.kind, nic.channels["combined"].1), (NicKind::Other, 8));
    let packed = machine(second);
    assert!(
        packed.threads.is_empty() && packed.unread[0].contains(" -C /") && packed.unread[0].ends_with("nodes/worker-1"),
        "{:?}",
        packed.unread
    );
}

#[test]
fn database_and_outputs_of_a_real_switch_agree() {
    use kvmscope_host::paste;
    let tree = fixture("ovs-dummy");
    let output = |name: &str| {
        let path = tree.join("sos_commands/openvswitch").join(name);
        vec![(name.to_owned(), std::fs::read_to_string(path).unwrap())]
    };
    let ports = |machine: &Machine| {
        let bridges = machine.switch.bridges.iter().map(|bridge| {
            let mut ports: Vec<_> =
                bridge.ports.iter().map(|port| (port.name.clone(), port.kind.clone(), port.rx_queues)).collect();
            ports.sort();
            (bridge.name.clone(), bridge.user_space, ports)
        });
        bridges.collect::<Vec<_>>()
    };
    let database = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(database.path().join("proc")).unwrap();
    std::fs::create_dir_all(database.path().join("etc/openvswitch")).unwrap();
    std::fs::copy(tree.join("etc/openvswitch/conf.db"), database.path().join("etc/openvswitch/conf.db")).unwrap();
    let database = machine(database.path());
    assert!(database.unread.is_empty(), "{:?}", database.unread);
    let port = |name: &str, kind: &str, queues| (name.to_owned(), kind.to_owned(), queues);
    let expected = [port("br0", "internal", None), port("p0", "dummy-pmd", Some(2)), port("p2", "dummy-pmd", Some(1))];
    assert_eq!(ports(&database), [("br0".to_owned(), true, expected.to_vec())], "p1 was removed again");
    assert_eq!(database.switch.pmd_mask.as_ref().unwrap().value.to_string(), "1-2", "a key's value was replaced");
    assert_eq!(database.switch.lcore_mask, None, "a key was removed");
    let lists = ["ovs-vsctl_-t_5_list_bridge", "ovs-vsctl_-t_5_list_port", "ovs-vsctl_-t_5_list_interface"]
        .map(output)
        .concat();
    let lists = paste::read(&lists);
    assert_eq!(ports(&lists), ports(&database));
    assert_eq!(lists.sources.iter().map(|source| source.2).sum::<u64>(), 0, "every line is understood");
    assert_eq!(ports(&paste::read(&output("ovs-vsctl_-t_5_show"))), ports(&database));
    let listed = paste::read(&output("ovs-appctl_dpif-netdev.pmd-rxq-show")).switch.pmds;
    let queues: Vec<_> = listed.iter().map(|pmd| (pmd.cpu, pmd.node, pmd.queues.len(), pmd.busy())).collect();
    assert_eq!(queues, [(1, Some(0), 2, None), (2, Some(1), 1, None)], "usage was not available");
    assert_eq!(machine(&tree).switch.pmd_cpus().to_string(), "1-2");
}
