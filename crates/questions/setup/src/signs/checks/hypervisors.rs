//! Guests that run a hypervisor of their own, by the exits that were counted.

use crate::signs::Scene;
use base::Severity;
use base::number::percent;
use base::shell::quoted;
use facts::counts::Counted;
use facts::rule::Hit;
use host::machine::Domain;

/// Share of all exits by instructions of virtualization from which a guest's own hypervisor is what KVM works for: our own threshold.
pub(in crate::signs) const MUCH: f64 = 0.25;

/// Exits that only a hypervisor in the guest makes, as perf and kvm_stat call them (arch/x86/include/uapi/asm/vmx.h, svm.h, Linux 6.12).
const OF_HYPERVISORS: &str = "VMRESUME VMREAD VMWRITE VMLAUNCH VMPTRLD VMPTRST VMCLEAR VMON VMOFF INVEPT INVVPID VMRUN VMLOAD VMSAVE STGI CLGI \
    vmresume vmread vmwrite vmlaunch vmptrld vmclear invept invvpid vmrun vmload vmsave stgi clgi";

/// Whether KVM keeps the guest's VMCS in hardware, so that reading and writing it is no exit.
const SHADOW: &str = "sys/module/kvm_intel/parameters/enable_shadow_vmcs";

pub(in crate::signs) fn nested(scene: &Scene<'_>) -> Vec<Hit> {
    scene.counts.iter().filter_map(|counted| of_counts(scene, counted)).collect()
}

fn of_counts(scene: &Scene<'_>, counted: &Counted) -> Option<Hit> {
    let own = counted.rows.iter().filter(|row| {
        let name = row.name.trim_start_matches("kvm_exit(").trim_end_matches(')');
        OF_HYPERVISORS.split(' ').any(|known| known == name)
    });
    let own: Vec<_> = own.collect();
    let count = own.iter().map(|row| row.count).fold(0, u64::saturating_add);
    let rows = counted.rows.iter().map(|row| row.count).fold(0, u64::saturating_add);
    // Of sums by tracepoint an exit is several events.
    let all = match counted.rows.iter().find(|row| row.name == "kvm_exit") {
        Some(exits) => exits.count,
        None => counted.total.map_or(rows, |total| total.count),
    };
    let share = count as f64 / all.max(1) as f64;
    if !(MUCH..=1.0).contains(&share) {
        return None;
    }
    let title = format!(
        "{} of the exits are by a hypervisor inside the guest: it runs its own guests, and each of their exits costs several here",
        percent(share)
    );
    let mut hit = Hit::new(counted.machine.as_str(), Severity::High, title);
    hit.level = Some(scene.recording.level_of(&counted.machine));
    let names: Vec<&str> = own.iter().map(|row| row.name.as_str()).collect();
    hit = hit.seen(
        format!(
            "{} together are {}",
            base::number::list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            percent(share)
        ),
        scene.named(&counted.path),
    );
    let shadow = scene.models.iter().find_map(|model| model.machine.settings.get(SHADOW));
    if let Some(shadow) = shadow.filter(|told| told.value.trim() == "N") {
        hit = hit.seen("enable_shadow_vmcs is N: each VMREAD and VMWRITE is a separate exit", &shadow.place);
    }
    let domains: Vec<&Domain> = scene.models.iter().flat_map(|model| &model.machine.domains).collect();
    if let [domain] = domains[..] {
        hit = of_domain_shown(hit, domain);
    }
    hit.fix.push("systeminfo   # inside a Windows guest: virtualization-based security, Hyper-V, WSL2 and Credential Guard are such hypervisors; inside Linux: lsmod | grep kvm".to_owned());
    Some(hit)
}

/// What the definition of the only VM says: whether it is shown the processor's virtualization.
fn of_domain_shown(mut hit: Hit, domain: &Domain) -> Hit {
    let Some(mode) = domain
        .cpu_mode
        .as_ref()
        .filter(|mode| matches!(mode.value.as_str(), "host-passthrough" | "host-model" | "maximum"))
    else {
        return hit.of_domain(&domain.name);
    };
    let what = format!("{} has the host's CPU model, including its virtualization (vmx or svm)", domain.name);
    hit = hit.of_domain(&domain.name).seen(what, &mode.place);
    match domain.proxmox {
        Some(id) => {
            let id = if id == 0 { "VMID".to_owned() } else { id.to_string() };
            let cpu = domain.options.get("cpu").map_or("host", String::as_str);
            hit.fix.push(format!("qm set {id} --cpu x86-64-v2-AES   # a model without vmx and svm (v3 where the processor has AVX2); the guest's hypervisor then stays off; stop and start it"));
            hit.undo.push(format!("qm set {id} --cpu {}", quoted(cpu)));
        }
        None => {
            let name = quoted(&domain.name);
            hit.fix.push(format!("virsh edit {name}   # <feature policy='disable' name='vmx'/> (AMD: svm) in <cpu>: the guest's hypervisor then stays off"));
            hit.undo.push(format!("virsh edit {name}   # the <cpu> element as it was"));
        }
    }
    hit
}
