//! What does a snapshot of the recorded machine say of the changes that a check proposes?
//!
//! ```text
//! change --the value that holds there--> its undo
//!        --the value is set already, the CPU lacks the feature, AVIC does harm--> no change, and evidence that says why
//! ```
//! A trace alone shows no value: its changes have no undo, and the commands come with what to look at first.

use base::{Change, Evidence, Setting};
use facts::avic::{self, Guests};
use facts::ledger::measure::Measures;
use facts::rule::Hit;
use host::Virtualization;
use host::parameters;
use host::release::Release;

/// Flags of `/proc/cpuinfo` without which KVM clears a parameter at load (setup_vmcs_config in arch/x86/kvm/vmx/vmx.c and
/// svm_hardware_setup in svm/svm.c, Linux 6.12).
const FLAGS: &[(&str, &str)] = &[
    ("enable_shadow_vmcs", "shadow_vmcs"),
    ("enable_apicv", "apicv"),
    ("vls", "v_vmsave_vmload"),
    ("vgif", "vgif"),
    ("avic", "avic"),
];

/// The hit with what is known of its changes on the machine that was recorded.
pub(super) fn weighed(mut hit: Hit, measure: &Measures<'_>) -> Hit {
    if hit.changes.is_empty() {
        return hit;
    }
    let host = measure.part.snapshot.clone().map(Virtualization::of);
    for change in std::mem::take(&mut hit.changes) {
        let speaks_against = against(&change, measure, host.as_ref());
        let from = host.as_ref().and_then(|host| held(&change.setting, host));
        hit.first.extend(to_look_at(&change.setting, host.as_ref()));
        if speaks_against.is_empty() {
            hit.changes.push(Change { from: change.from.or(from), ..change });
        } else {
            let place = format!("{}, for {}", measure.part.machine, change.setting);
            hit.evidence.extend(speaks_against.into_iter().map(|what| Evidence::new(what, place.as_str())));
        }
    }
    hit
}

/// Why a change is not proposed.
fn against(change: &Change, measure: &Measures<'_>, host: Option<&Virtualization>) -> Vec<String> {
    let mut against = Vec::new();
    if let Some(held) = host.and_then(|host| held(&change.setting, host))
        && is_same(&held, &change.to)
    {
        against.push(format!("{} is {held} in the snapshot: it is set already", change.setting));
    }
    let Setting::ModuleOption { parameter, .. } = &change.setting else { return against };
    if let Some((flag, Some(false))) = offered(parameter, host) {
        against.push(format!("/proc/cpuinfo lacks {flag}: this CPU cannot"));
    }
    if parameter == "avic" {
        let kernel = || measure.part.kernel.as_deref().and_then(Release::from_text);
        let release = host.and_then(|host| host.release.clone()).or_else(kernel);
        let uses_msrs = measure.reasons.iter().any(|total| {
            total.reason.is_msr_access() && total.details.iter().any(|(detail, ..)| detail.apic_offset().is_some())
        });
        let guests = Guests { nested: measure.nested, x2apic: Some(uses_msrs) };
        against.extend(avic::against(release.as_ref(), host, guests));
    }
    against
}

/// The flag that a parameter needs, and whether the CPU has it, where that is known.
fn offered(parameter: &str, host: Option<&Virtualization>) -> Option<(&'static str, Option<bool>)> {
    let (_, flag) = FLAGS.iter().find(|(name, _)| *name == parameter)?;
    Some((flag, host.and_then(|host| host.processor.as_ref()?.offers(flag))))
}

/// What shows whether the CPU has the feature, where no snapshot does.
fn to_look_at(setting: &Setting, host: Option<&Virtualization>) -> Option<String> {
    let Setting::ModuleOption { parameter, .. } = setting else { return None };
    let (flag, None) = offered(parameter, host)? else { return None };
    Some(format!("grep -ow {flag} /proc/cpuinfo | head -1   # first: no output means that the CPU lacks it"))
}

/// The value that a setting has in a snapshot.
fn held(setting: &Setting, host: &Virtualization) -> Option<String> {
    match setting {
        Setting::ModuleOption { module, parameter } => match host.setting(module, parameter) {
            parameters::Setting::Value(value) => Some(value),
            parameters::Setting::NoParameter
            | parameters::Setting::NoModule
            | parameters::Setting::Unreadable(_)
            | parameters::Setting::Unknown => None,
        },
        Setting::SysfsWrite { path } => host.snapshot.line(&format!("sys/{path}")).map(|line| chosen(&line).to_owned()),
        Setting::Sysctl { path } => host.snapshot.line(&format!("proc/sys/{path}")),
        Setting::TaskAffinity(_)
        | Setting::TaskPolicy(_)
        | Setting::IrqAffinity { .. }
        | Setting::PmdMask
        | Setting::VcpuPin { .. }
        | Setting::EmulatorPin { .. }
        | Setting::IothreadPin { .. } => None,
    }
}

/// The word in brackets, where the kernel lists all choices: `always [madvise] never`.
fn chosen(line: &str) -> &str {
    line.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or(line)
}

/// True if the kernel shows `held` where `to` was written.
fn is_same(held: &str, to: &str) -> bool {
    held == to || matches!((held, to), ("Y", "1") | ("N", "0"))
}
