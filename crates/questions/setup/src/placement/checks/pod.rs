//! Fields of a definition of KubeVirt that it does not take together.

use crate::placement::model::Model;
use base::Severity;
use facts::rule::Hit;
use host::machine::{Domain, Fact};

/// What cannot be together: the fields that are there, what is wrong, and the field as it must be.
struct Refused<'a> {
    what: String,
    seen: Vec<(&'static str, &'a Fact<String>)>,
    field: String,
}

/// Definitions that the admission of KubeVirt refuses.
pub(crate) fn refused(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|domain| !domain.is_completed) {
        for refused in cpu_requests(domain).into_iter().chain(real_time(domain)) {
            let title = format!("KubeVirt refuses the definition of {}: {}", domain.name, refused.what);
            let subject = format!("{} {}", domain.name, refused.seen[0].0);
            let hit = Hit::new(subject, Severity::Medium, title).of_domain(&domain.name);
            let mut hit = refused
                .seen
                .iter()
                .fold(hit, |hit, (field, told)| hit.seen(format!("{field}: {}", told.value), &told.place));
            let (namespace, name) = domain.kubevirt.clone().unwrap_or_default();
            let of =
                if namespace.is_empty() { String::new() } else { format!(" -n {}", base::shell::quoted(&namespace)) };
            let edit = format!("kubectl edit vm {}{of}   # spec.template.spec.domain.", base::shell::quoted(&name));
            hit.fix.push(format!("{edit}{}", refused.field));
            hit.undo.push(format!("{edit}{}: as it was", refused.field.split(':').next().unwrap_or_default()));
            hits.push(hit);
        }
    }
    hits
}

const DEDICATED: &str = "cpu.dedicatedCpuPlacement";
const REQUEST: &str = "resources.requests.cpu";
const LIMIT: &str = "resources.limits.cpu";

fn on<'a>(domain: &'a Domain, field: &'static str) -> Option<(&'static str, &'a Fact<String>)> {
    Some((field, domain.fields.get(field).filter(|told| told.value == "true")?))
}

/// CPUs of its own, and a request that is not the limit: both are to be whole and equal.
fn cpu_requests(domain: &Domain) -> Option<Refused<'_>> {
    let of = |field: &'static str| Some((field, domain.fields.get(field)?));
    let (dedicated, request, limit) = (on(domain, DEDICATED)?, of(REQUEST)?, of(LIMIT)?);
    let cpus = |told: &Fact<String>| match told.value.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<f64>().ok().map(|thousandths| thousandths / 1_000.0),
        None => told.value.parse::<f64>().ok(),
    };
    let (requested, limited) = (cpus(request.1)?, cpus(limit.1)?);
    (requested != limited).then(|| Refused {
        what: format!("it asks for dedicated CPUs, and requests {requested} of them with a limit of {limited}"),
        seen: vec![dedicated, request, limit],
        field: format!("{REQUEST}: {limited}"),
    })
}

/// A real-time guest without what it needs: CPUs of its own, and the nodes of their memory.
fn real_time(domain: &Domain) -> Option<Refused<'_>> {
    let realtime = domain.fields.iter().find(|(path, _)| path.starts_with("cpu.realtime"))?.1;
    let has = |path: &str| domain.fields.keys().any(|known| known.starts_with(path));
    let missing: Vec<&str> = [
        (on(domain, DEDICATED).is_some(), "dedicatedCpuPlacement: true"),
        (has("cpu.numa.guestMappingPassthrough"), "numa: guestMappingPassthrough: {}"),
    ]
    .into_iter()
    .filter_map(|(is_there, field)| (!is_there).then_some(field))
    .collect();
    let pages = if has("memory.hugepages") { "" } else { "; memory.hugepages.pageSize: 1Gi, which that needs" };
    (!missing.is_empty()).then(|| Refused {
        what: format!("cpu.realtime needs {} within cpu", missing.join(" and ")),
        seen: vec![("cpu.realtime", realtime)],
        field: format!("cpu: {}{pages}", missing.join(", ")),
    })
}
