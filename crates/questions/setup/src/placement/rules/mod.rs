//! What can be wrong with who runs where: rules as data.
//!
//! Each row says what it is called, why it costs, what being wrong about it would cost, what to type, what that needs and
//! where the claim comes from; its `check` returns what it saw. A rule that lacks a fact stays silent.

mod devices;
mod evidence;
mod guest;
mod host;
mod proposal;
mod threads;

pub(crate) use proposal::PROPOSAL;

use super::model::Model;
use base::rule::Words;
use facts::rule::Hit;

pub type Rule = facts::rule::Rule<fn(&Model) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [threads::RULES, evidence::RULES, devices::RULES, guest::RULES, host::RULES, proposal::RULES].into_iter().flatten()
}

pub fn words() -> Vec<Words> {
    rules().map(Rule::words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::host::Machine;
    use ::host::machine::Domain;
    use base::{Level, Severity};

    #[test]
    fn no_element_of_libvirt_is_typed_into_an_object_of_another_manager() {
        let domains = [
            Domain { proxmox: Some(102), ..Domain::default() },
            Domain { kubevirt: Some(("shop".into(), "db".into())), ..Domain::default() },
            Domain { read_config: Some("run/incus/db/qemu.conf".into()), ..Domain::default() },
            Domain { by_command: true, ..Domain::default() },
        ];
        let of_libvirt = |line: &&str| line.starts_with("virsh ") && line.contains(" DOMAIN");
        let lines: Vec<String> = words()
            .iter()
            .flat_map(|rule| rule.fix.iter().chain(rule.undo).copied())
            .filter(of_libvirt)
            .map(|line| line.replace("DOMAIN", "db"))
            .collect();
        assert!(lines.len() > 10, "{lines:?}");
        for (line, domain) in lines.iter().flat_map(|line| domains.iter().map(move |domain| (line, domain))) {
            let machine =
                Machine { domains: vec![Domain { name: "db".into(), ..domain.clone() }], ..Machine::default() };
            let hit = Hit::new("db", Severity::Medium, "").seen("a fact", "a file");
            let mut finding = rules().next().unwrap().finding(hit, Level::L0);
            (finding.fix, finding.undo) = (vec![line.clone()], Vec::new());
            tongue::translated(&machine, &mut finding);
            let typed = finding.fix.join("\n");
            assert!(
                !typed.contains("virsh") && !typed.contains("='") && !typed.contains("/>"),
                "{line} by {:?}: {typed}",
                machine.manager_of(&machine.domains[0])
            );
            let field = typed.split_once("spec.template.spec: ").map_or("", |(_, field)| field);
            assert!(!field.contains('<'), "{line}: {typed}");
        }
    }

    #[test]
    fn pods_on_siblings_of_each_other_are_the_kubelets_to_part() {
        let asked = |subject: &str| {
            let named = |name: &str| Domain { name: name.into(), ..Domain::default() };
            let pod = Domain { kubevirt: Some(("telco".into(), "a".into())), ..named("telco_a") };
            let machine = Machine { domains: vec![pod, named("telco_b"), named("web")], ..Machine::default() };
            let rule = rules().find(|rule| rule.id == "PLC-CORE").unwrap();
            let hit = Hit::new(subject, Severity::Medium, "").seen("siblings", "lscpu");
            let mut finding = rule.finding(hit, Level::L0);
            tongue::translated(&machine, &mut finding);
            finding.fix.iter().any(|line| line.contains("full-pcpus-only"))
        };
        assert!(asked("telco_a+telco_b") && !asked("web+db"));
    }
}
