//! Why KubeVirt moves a VM to no other node, by its own account.

use crate::placements::Model;
use crate::signs::Scene;
use base::Severity;
use base::shell::printable;
use facts::rule::Hit;
use host::machine::Quoted;

/// The conditions of a VMI that say so, as far as their values stand in the text: `status.conditions[1].`.
pub(in crate::signs) fn conditions(scene: &Scene<'_>) -> Vec<Hit> {
    scene.models.iter().flat_map(of_machine).collect()
}

fn of_machine(model: &Model) -> Vec<Hit> {
    let types =
        model.machine.quoted.iter().filter(|told| told.what.ends_with(".type") && told.value == "LiveMigratable");
    let hits = types.filter_map(|told| {
        let stem = told.what.strip_suffix("type")?;
        let of = |name: &str| -> Option<&Quoted> {
            model.machine.quoted.iter().find(|other| other.subject == told.subject && other.what.strip_prefix(stem) == Some(name))
        };
        let status = of("status").filter(|status| status.value == "False")?;
        // A long message goes on in the next lines.
        let message = model.machine.quoted.iter().filter(|other| other.subject == told.subject && other.what.strip_prefix(stem) == Some("message"));
        let message: Vec<&str> = message.map(|part| part.value.trim_matches(['\'', '"'])).collect();
        let (reason, message) = (of("reason").map_or("", |reason| reason.value.as_str()), message.join(" "));
        let vm = told.subject.rsplit('_').next().unwrap_or(&told.subject);
        let why = if message.is_empty() { reason } else { &message };
        let title = format!("KubeVirt cannot move {vm} to another node while it runs: {}", printable(why));
        let mut hit = Hit::new(told.subject.as_str(), Severity::High, title);
        hit.level = Some(model.level);
        hit = hit.seen(format!("LiveMigratable is {}, reason {reason}", status.value), &status.place);
        let claims = model.machine.quoted.iter().filter(|told| told.what == "volume claim");
        hit = claims.fold(hit, |hit, claim| hit.seen(format!("{}: {}", claim.subject, claim.value), &claim.place));
        let strategy = model.machine.quoted.iter().find(|other| other.subject == told.subject && other.what == "evictionStrategy");
        if let Some(strategy) = strategy.filter(|strategy| strategy.value.starts_with("LiveMigrate")) {
            let what = format!("evictionStrategy is {}: a drain waits until it has moved, which it never does", strategy.value);
            hit = hit.seen(what, &strategy.place);
        }
        if reason == "DisksNotLiveMigratable" {
            hit.fix.push(format!("kubectl get pvc -n NAMESPACE   # a claim of {} with ReadWriteMany instead: cloned by a DataVolume (block mode \
                                  of a storage class that has it)", printable(vm)));
        }
        hit.fix.push(format!("virtctl stop {}   # or stop it for the drain; evictionStrategy: LiveMigrateIfPossible lets a drain stop it \
                              automatically", printable(vm)));
        Some(hit)
    });
    hits.collect()
}
