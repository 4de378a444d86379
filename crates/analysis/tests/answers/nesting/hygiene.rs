//! Rows of how a machine is set up beyond KVM: each from its file, and unknown without it.

use super::tree::Tree;
use base::figure::Standing;

fn state(tree: &Tree, feature: &str) -> Standing {
    tree.machine().row(feature).unwrap_or_else(|| panic!("no row {feature}")).state
}

#[test]
fn each_row_is_what_its_file_says() {
    use Standing::{Off, On};
    let cpu = |file: &str| format!("sys/devices/system/cpu/{file}");
    let huge = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned();
    for (feature, file, on, off) in [
        ("smt", cpu("smt/active"), "1\n", "0\n"),
        ("governor_performance", cpu("cpu0/cpufreq/scaling_governor"), "performance\n", "powersave\n"),
        ("isolated_cpus", cpu("isolated"), "2-5\n", "\n"),
        ("nohz_full", cpu("nohz_full"), "2-5\n", "(null)\n"),
        ("rcu_nocbs", "proc/cmdline".to_owned(), "quiet rcu_nocbs=2-5\n", "quiet\n"),
        (
            "transparent_huge_pages",
            "sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            "always [madvise] never\n",
            "always madvise [never]\n",
        ),
        ("reserved_huge_pages", huge, "512\n", "0\n"),
    ] {
        let with = |text: &str| state(&Tree::of("hosts-pvm", 1).with(&file, text), feature);
        assert_eq!([with(on), with(off)], [On, Off], "{feature}");
    }
}

#[test]
fn a_governor_that_differs_on_one_cpu_is_not_on() {
    let governor = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let both = Tree::of("hosts-pvm", 1).with(&governor(0), "performance\n").with(&governor(1), "schedutil\n");
    let machine = both.machine();
    let row = machine.row("governor_performance").unwrap();
    assert_eq!((row.state, row.evidence.as_str()), (Standing::Off, "scaling_governor = schedutil"));
}

#[test]
fn a_governor_that_nobody_collected_is_unknown_and_a_guest_without_one_has_none() {
    let topology = "sys/devices/system/cpu/cpu0/topology/core_id";
    let of = |fixture: &str, level: u8| {
        let machine = Tree::of(fixture, level).with(topology, "0\n").machine();
        machine.row("governor_performance").unwrap().clone()
    };
    let guest = of("hosts-intel", 1);
    assert_eq!(
        (guest.state, guest.evidence.as_str()),
        (Standing::Absent, "no cpufreq: the hypervisor sets the frequency")
    );
    let metal = of("hosts-intel", 0);
    assert_eq!(metal.state, Standing::Unknown, "{}", metal.evidence);
}

#[test]
fn kvm_is_not_loaded_only_where_a_list_of_modules_shows_it() {
    let summary = |tree: &Tree| super::tree::answer(&[tree]).summary;
    let intel = || Tree::of("hosts-intel", 0);
    let unloaded = intel().with("proc/modules", "ext4 1 0 - Live 0x0\n");
    std::fs::remove_dir_all(unloaded.root().join("sys/module")).unwrap();
    assert!(summary(&unloaded).contains("but KVM is not loaded"), "{}", summary(&unloaded));
    let half = unloaded.with("proc/modules", "kvm 1 0 - Live 0x0\n");
    assert!(summary(&half).contains("kvm is loaded, but neither kvm_intel nor kvm_amd"), "{}", summary(&half));
    let silent = half.without("proc/modules");
    assert!(summary(&silent).contains("whether KVM is loaded is unknown"), "{}", summary(&silent));
}

#[test]
fn what_kvm_below_offers_is_read_bit_by_bit() {
    // The bundled guest has eax 0x01007efb: bits 7, 9 to 14 and 24 among others, not 8 and 15.
    let guest = Tree::of("hosts-intel", 1);
    for (feature, bit, state_of) in [
        ("kvm_pv_unhalt", 1 << 7, Standing::On),
        ("kvm_pv_sched_yield", 1 << 13, Standing::On),
        ("kvm_async_pf_int", 1 << 14, Standing::On),
        ("kvm_msi_ext_dest_id", 1 << 15, Standing::Absent),
    ] {
        assert_eq!(state(&guest, feature), state_of, "{feature}");
        let flipped = format!("{:#010x}", 0x0100_7efb ^ bit);
        let other = Tree::of("hosts-intel", 1).replacing("cpuid.json", "0x01007efb", &flipped);
        assert_ne!(state(&other, feature), state_of, "{feature}");
    }
}
