//! May AVIC be switched on at a machine, and would its guests have it?
//!
//! In: the kernel's release, and what a snapshot shows of the machine. Out: what speaks against `kvm_amd.avic=1`, in sentences;
//! only where nothing does, the change is proposed.
//!
//! Sources: arch/x86/kvm/svm/{avic,svm}.c. Erratum #1235: commits d921665e01ba and 8de4a1c8164e, in the pull request "KVM: IRQ
//! changes for 6.17"; for Hygon 9a12fa5213cf, in 7.1-rc5. Nested guests: f44509f849fe, in 5.19. x2APIC: `svm_vcpu_after_set_cpuid`
//! of 5.10 (svm.c) disables AVIC where CPUID offers it; x2AVIC and the hybrid mode came with 4d1d7942e36a and 0e311d33bfbe, in 6.0.

use base::number::list;
use host::Virtualization;
use host::parameters::Setting;
use host::release::Release;

/// `cpu family` of Zen 1 and Zen 2.
const ZEN_1_AND_2: u32 = 0x17;
/// `cpu family` of Hygon's processors, derived from Zen 1.
const HYGON: u32 = 0x18;

/// What is known of the guests that would use it.
#[derive(Debug, Clone, Copy)]
pub struct Guests {
    /// True if some are hypervisors.
    pub nested: bool,
    /// Whether they use x2APIC, where that was seen; QEMU's CPU models offer it.
    pub x2apic: Option<bool>,
}

/// What speaks against AVIC on a machine with this kernel.
pub fn against(release: Option<&Release>, host: Option<&Virtualization>, guests: Guests) -> Vec<String> {
    let before = |major, minor| release.is_none_or(|release| release.numbers < (major, minor, 0));
    let mut against: Vec<String> = erratum(release, host).into_iter().collect();
    if before(5, 19) && guests.nested {
        against.push("before Linux 5.19 KVM disables AVIC in VMs that have SVM (commit f44509f849fe)".to_owned());
    }
    let lacks_x2avic = || host.and_then(|host| host.processor.as_ref()).is_some_and(|cpu| !cpu.has("x2avic"));
    if before(6, 0) && guests.x2apic != Some(false) {
        let whose = if guests.x2apic.is_some() { "as this guest does" } else { "as QEMU's CPU models do" };
        against
            .push(format!("before Linux 6.0 KVM disables AVIC in VMs that have x2APIC, {whose} (commit 4d1d7942e36a)"));
    } else if guests.x2apic == Some(true) && lacks_x2avic() {
        against
            .push("the guest uses x2APIC, and the CPU has no x2AVIC: these accesses exit with AVIC as well".to_owned());
    }
    against
}

/// Lost IPIs: hardware may read that a vCPU still runs, and then raises no exit that would wake it.
fn erratum(release: Option<&Release>, host: Option<&Virtualization>) -> Option<String> {
    let family = host.and_then(|host| host.processor.as_ref()).map(|cpu| cpu.family).filter(|family| *family > 0);
    let fixed = match family {
        Some(ZEN_1_AND_2) => (6, 17, 0),
        Some(HYGON) | None => (7, 1, 0),
        Some(_) => return None,
    };
    // The parameter shows a backport, and N that it acts.
    let parameter = host.map(|host| host.setting("kvm_amd", "enable_ipiv"));
    let avoided = matches!(parameter, Some(Setting::Value(value)) if matches!(value.as_str(), "N" | "0"));
    if avoided || release.is_some_and(|release| release.numbers >= fixed) {
        return None;
    }
    let whose = match family {
        Some(family) => format!("CPU family {family} has"),
        None => {
            format!("the CPU family is unknown, and {} have", list(&[ZEN_1_AND_2, HYGON].map(|one| one.to_string())))
        }
    };
    Some(format!(
        "{whose} erratum #1235: with AVIC, IPIs can be lost and vCPUs hang; KVM avoids it since Linux {}.{} \
         (commit {})",
        fixed.0,
        fixed.1,
        if fixed == (6, 17, 0) { "8de4a1c8164e" } else { "9a12fa5213cf" }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Snapshot;
    use std::fs;

    fn host(family: u32, flags: &str, ipiv: Option<&str>) -> (tempfile::TempDir, Virtualization) {
        let root = tempfile::tempdir().unwrap();
        let parameters = root.path().join("sys/module/kvm_amd/parameters");
        fs::create_dir_all(&parameters).unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(parameters.join("avic"), "N\n").unwrap();
        if let Some(value) = ipiv {
            fs::write(parameters.join("enable_ipiv"), value).unwrap();
        }
        let cpuinfo = format!("vendor_id : AuthenticAMD\ncpu family : {family}\nflags : svm avic {flags}\n");
        fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        let facts = Virtualization::of(Snapshot::open(root.path()).unwrap());
        (root, facts)
    }

    const PLAIN: Guests = Guests { nested: false, x2apic: Some(false) };

    #[test]
    fn zen_1_and_2_lose_ipis_until_the_kernel_avoids_it() {
        let speaks = |family, release: &str, ipiv| {
            let (_kept, host) = host(family, "", ipiv);
            against(Release::from_text(release).as_ref(), Some(&host), PLAIN).join("; ").contains("#1235")
        };
        assert!(speaks(23, "6.12.1", None) && speaks(23, "6.16.9", None) && speaks(24, "6.17.0", None));
        assert!(!speaks(23, "6.17.0", None) && !speaks(24, "7.1.0", None) && !speaks(25, "6.12.1", None));
        assert!(!speaks(23, "6.6.9", Some("N\n")), "a backport");
        assert!(speaks(24, "6.17.0", Some("Y\n")), "the parameter is there, and Hygon is not on its list yet");
        let unknown = |release: &str| against(Release::from_text(release).as_ref(), None, PLAIN);
        assert!(unknown("6.12.1")[0].starts_with("the CPU family is unknown") && unknown("7.1.0").is_empty());
    }

    #[test]
    fn guests_that_would_not_have_it_speak_against_it() {
        let (_kept, zen_3) = host(25, "", None);
        let (_kept_too, zen_4) = host(25, "x2avic", None);
        let of = |release: &str, host: &Virtualization, nested, x2apic| {
            against(Release::from_text(release).as_ref(), Some(host), Guests { nested, x2apic })
        };
        assert!(of("5.18.0", &zen_3, true, Some(false))[0].contains("5.19"));
        assert_eq!(of("5.19.0", &zen_3, true, Some(false)), [""; 0]);
        assert!(of("5.10.0", &zen_3, false, None)[0].ends_with("as QEMU's CPU models do (commit 4d1d7942e36a)"));
        assert_eq!(of("5.10.0", &zen_3, false, Some(false)), [""; 0], "a guest with xAPIC");
        assert!(of("6.12.0", &zen_3, false, Some(true))[0].contains("no x2AVIC"));
        assert_eq!(of("6.12.0", &zen_4, true, Some(true)), [""; 0]);
    }
}
