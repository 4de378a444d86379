//! `ovs-appctl dpctl/dump-flows`: what each flow of the datapath has counted, port by port with `-m`.
//!
//! Format: `format_dpif_flow` of lib/dpctl.c and `dpif_flow_stats_format` of lib/dpif.c, Open vSwitch 3.1. The packet that made
//! a flow went up to be decided on and is in no flow's count.

use super::{MOST, number};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// Where its packets come from: a port's number, with `-m` its name.
    pub in_port: String,
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: Option<u64>,
    /// What became of them: `drop`, a port's number or name.
    pub actions: String,
}

/// Reads all flows in the order in which they stand; polling threads have flows of their own.
pub fn read(text: &str) -> Vec<Flow> {
    text.lines().filter_map(flow).take(MOST).collect()
}

fn flow(line: &str) -> Option<Flow> {
    let in_port = line.split_once("in_port(")?.1.split_once(')')?.0;
    let after = |name: &str| line.split_once(name).map(|(_, rest)| rest);
    let actions = after(" actions:")?;
    let actions = actions.split_once(", dp-extra-info:").map_or(actions, |(actions, _)| actions);
    Some(Flow {
        in_port: in_port.to_owned(),
        packets: after(" packets:").and_then(number)?,
        bytes: after(" bytes:").and_then(number),
        actions: actions.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_with_numbers_and_with_names() {
        let text = "flow-dump from pmd on cpu core: 0\n\
            recirc_id(0),in_port(3),packet_type(ns=0,id=0),eth_type(0/0xffff), packets:17136127, bytes:1028167620, used:0.000s, actions:drop\n\
            ufid:d766a384-06f9-45f2-b59e-fa30027d1249, recirc_id(0),in_port(v1),eth_type(0/0xffff), packets:7, bytes:420, used:1.019s, dp:ovs, actions:v2, dp-extra-info:miniflow_bits(4,0)\n\
            recirc_id(0),in_port(9), packets:?, actions:drop\nin_port(\n";
        let [dropped, sent] = &read(text)[..] else { panic!("{:?}", read(text)) };
        assert_eq!((dropped.in_port.as_str(), dropped.packets, dropped.actions.as_str()), ("3", 17_136_127, "drop"));
        assert_eq!((sent.in_port.as_str(), sent.bytes, sent.actions.as_str()), ("v1", Some(420), "v2"));
    }
}
