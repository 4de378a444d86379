//! What programs that poll for packets print of them: Open vSwitch with DPDK, testpmd, and others.
//!
//! ```text
//! pmd       ovs-appctl dpif-netdev/pmd-perf-show, pmd-stats-show (3.x, 2.x)   cycles and packets of each polling thread
//! flows     ovs-appctl dpctl/dump-flows                                       packets of each flow
//! ports     ovs-ofctl dump-ports, ovs-vsctl get interface NAME statistics     counters of each port
//! traffic   lines of NFVbench, totals of TRex                                 what was sent, and what did not come back
//! testpmd   show port stats all, show fwd stats all                           packets of each port of testpmd
//! forwarders  l2fwd, Pktgen, vif --list of vRouter, show port xstats         packets of each port, and where they were lost
//! ```
//! In: text, as it was printed, saved or pasted: lines of other things in between are passed over. Out: numbers; what was not
//! printed, or printed as `?`, is missing and not 0. `pmd-rxq-show` is read where machines are ([`crate::paste`]).

pub mod flows;
pub mod forwarders;
pub mod pmd;
pub mod ports;
pub mod testpmd;
pub mod traffic;

/// Threads, flows or ports that are kept of one text: a switch has some hundred ports, and OpenFlow numbers 65,280.
const MOST: usize = 65_536;

/// The whole number that `text` begins with, behind spaces.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

/// The number with a fraction that `text` begins with, behind spaces.
fn fraction(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    text[..digits].parse().ok()
}

/// The words in the first parentheses.
fn bracket(text: &str) -> Option<&str> {
    Some(text.split_once('(')?.1.split_once(')')?.0)
}
