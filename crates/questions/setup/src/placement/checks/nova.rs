//! What Nova's own commands do for a VM that waits: its server goes to another host while it runs.

use crate::placement::model::Model;
use base::shell::quoted;
use facts::rule::Hit;
use host::machine::Manager;

/// The name that Nova has for a VM; `None` where another manager has it.
pub(super) fn server(model: &Model, vm: &str) -> Option<String> {
    let domain = model.machine.domains.iter().find(|domain| domain.name == vm)?;
    match model.machine.manager_of(domain) {
        Manager::OpenStack { server, .. } => Some(server),
        _ => None,
    }
}

/// The hit with a live migration of a server, until what `until` says, and with the way back.
pub(super) fn migrates(hit: &mut Hit, server: &str, until: &str) {
    let server = quoted(server);
    hit.fix.push(format!("openstack server migrate --live-migration {server}   # {until}"));
    hit.undo.push(format!(
        "openstack server migrate --live-migration --host HOST {server}   # HOST: this one, as openstack compute service list has it"
    ));
}
