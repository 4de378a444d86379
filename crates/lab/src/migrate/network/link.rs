//! How many bytes has the stream that carries the guest sent, by the kernel's own count?
//!
//! Sources: proc_pid_net(5); `tcp_established_options` of net/ipv4/tcp_output.c (Linux 6.12): each packet has 12 bytes of options, its times.
//! A veth counts what it was given, so that segments not yet cut are one packet with one header (drivers/net/veth.c).

use base::network::Link;

/// Ethernet (14), IPv4 (20), TCP (20) and its times (12).
const HEADER_BYTES: u64 = 66;

/// Of the namespace of a process, which has nothing but this connection.
pub fn sent(pid: u32, device: &str) -> Option<Link> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).ok();
    Some(Link { bytes: bytes(&read("dev")?, device)?, retransmitted: retransmitted(&read("snmp")?)? })
}

/// `move0: 9 1 0 0 0 0 0 0 8 2 0 ..`: eight counts of what came, the first of what went are bytes and packets.
fn bytes(devices: &str, device: &str) -> Option<u64> {
    let counts = devices.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    let mut counts = counts.split_whitespace().skip(8).map_while(|count| count.parse::<u64>().ok());
    let (bytes, packets) = (counts.next()?, counts.next()?);
    Some(bytes.saturating_sub(packets * HEADER_BYTES))
}

/// A line `Tcp:` of names, and one of values.
fn retransmitted(counters: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut counters = names.split_whitespace().zip(values.split_whitespace());
    counters.find(|(name, _)| *name == "RetransSegs")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_no_bytes_of_the_stream() {
        let devices = "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n move0:     999       9    0    0    0     0          0         0  2066      1    0    0    0     0       0          0\n";
        assert_eq!(
            (bytes(devices, "move0"), bytes(devices, "lo"), bytes(devices, "move")),
            (Some(2_000), Some(0), None)
        );
        let counters = "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 3 0\n";
        assert_eq!((retransmitted(counters), retransmitted("Tcp: RtoMin\nTcp: 1\n")), (Some(3), None));
    }
}
