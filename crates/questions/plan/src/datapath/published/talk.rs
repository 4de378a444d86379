//! The rows of the talk of 2017, as spoken: rounded and approximate. Its gauges count frames without their check sequence.

use super::models::{SWITCH_CHAIN_MPPS, SWITCH_NS_MPPS, against_4, first_below_10_gbps, gbps, link, switch_ns_512, vf};
use super::{BARE, Counted, EACH, GBPS, MPPS, Point, Status};
use crate::datapath::model::design::{Datapath, Pattern};

const TALK: &str = "P. Kutch, Considerations for SR-IOV and NFV Solutions, 2017-03-22, spoken";

/// Questions that the talk leaves open.
const MPS: &str = "open: the largest PCIe payload of the talk's host is not stated";
const COUNTING: &str = "open: whether north-south gauges count both directions, or several queues served the port";
const THREADS: &str = "open: how many polling threads and queues the talk's switch had is not stated";
const HAIRPIN: &str = "that a packet from VF to VF counts twice is fitted to this row";
const NO_MODEL: &str = "no constant of the talk's host is known that would give a prediction";
const MESSAGES: &str = "message sizes of a stream socket, not frames: never compared with a rate of frames";

type Path = (Datapath, Pattern);
const KERNEL_NS: Path = (Datapath::OvsKernel, Pattern::NorthSouth);
const SWITCH_NS: Path = (Datapath::OvsDpdk, Pattern::NorthSouth);
const SWITCH_CHAIN: Path = (Datapath::OvsDpdk, Pattern::Chain);
const VF_NS: Path = (Datapath::Sriov, Pattern::NorthSouth);
const VF_CHAIN: Path = (Datapath::Sriov, Pattern::Chain);

const fn row(
    id: &'static str,
    (of, bytes, vnfs): (Path, f64, u32),
    (published, unit): (f64, &'static str),
    model: fn() -> Option<f64>,
    (status, note): (Status, &'static str),
) -> Point {
    let counted = Counted::Frames(bytes);
    let vnfs = Some(vnfs);
    Point { id, of: Some(of), vnfs, counted, published, unit, model, status: Some(status), note, source: TALK }
}

const fn netperf(id: &'static str, of: Path, (bytes, published): (f64, f64)) -> Point {
    let counted = Counted::Messages(bytes);
    let model = || None;
    Point {
        id,
        of: Some(of),
        vnfs: None,
        counted,
        published,
        unit: GBPS,
        model,
        status: None,
        note: MESSAGES,
        source: TALK,
    }
}

const fn limit(
    id: &'static str,
    published: f64,
    unit: &'static str,
    model: fn() -> Option<f64>,
    status: Status,
    note: &'static str,
) -> Point {
    Point {
        id,
        of: None,
        vnfs: None,
        counted: Counted::Other,
        published,
        unit,
        model,
        status: Some(status),
        note,
        source: TALK,
    }
}

const OF_4: &str = "times the rate of 4 VNFs";

/// Its table of testpmd, in its order.
pub(super) const ROWS: &[Point] = &[
    row("kernel-ns-64", (KERNEL_NS, 64.0, 8), (0.04, MPPS), || None, (Status::Bound, NO_MODEL)),
    row(
        "ovs-ns-64-8",
        (SWITCH_NS, 64.0, 8),
        (10.6, MPPS),
        || Some(SWITCH_NS_MPPS),
        (Status::Fitted, "its own number is the level of the north-south calibration"),
    ),
    row("ovs-ns-64-5", (SWITCH_NS, 64.0, 5), (12.5, MPPS), || Some(SWITCH_NS_MPPS), (Status::Fails, COUNTING)),
    row(
        "ovs-ns-64-2",
        (SWITCH_NS, 64.0, 2),
        (10.0, MPPS),
        || Some(SWITCH_NS_MPPS),
        (Status::Validated, "read off a chart: little over 10 for 2 to 8 VMs"),
    ),
    row(
        "vf-ns-64-5-mps128",
        (VF_NS, 64.0, 5),
        (32.5, MPPS),
        || vf(128, Pattern::NorthSouth, 5, 64),
        (Status::Bound, MPS),
    ),
    row(
        "vf-ns-64-5-mps256",
        (VF_NS, 64.0, 5),
        (32.5, MPPS),
        || vf(256, Pattern::NorthSouth, 5, 64),
        (Status::Bound, MPS),
    ),
    row(
        "vf-ns-64-8-mps128",
        (VF_NS, 64.0, 8),
        (32.0, MPPS),
        || vf(128, Pattern::NorthSouth, 8, 64),
        (Status::Bound, MPS),
    ),
    row(
        "vf-ns-64-8-mps256",
        (VF_NS, 64.0, 8),
        (32.0, MPPS),
        || vf(256, Pattern::NorthSouth, 8, 64),
        (Status::Bound, MPS),
    ),
    row(
        "vf-ns-64-2",
        (VF_NS, 64.0, 2),
        (30.0, MPPS),
        || vf(128, Pattern::NorthSouth, 2, 64),
        (Status::Bound, "read off a chart: over 30 for 2 to 8 VMs"),
    ),
    row(
        "ovs-ns-512-steep-mpps",
        (SWITCH_NS, 512.0, 8),
        (31.0 / (508.0 * 8.0) * 1e3, MPPS),
        || switch_ns_512(true),
        (Status::Validated, "level of 64 bytes north-south, slope of chains; this row was used for neither"),
    ),
    row(
        "ovs-ns-512-flat-mpps",
        (SWITCH_NS, 512.0, 8),
        (31.0 / (512.0 * 8.0) * 1e3, MPPS),
        || switch_ns_512(false),
        (Status::Validated, "level of 64 bytes north-south, slope of chains; this row was used for neither"),
    ),
    row(
        "ovs-ns-512-steep",
        (SWITCH_NS, 512.0, 8),
        (31.0, BARE),
        || gbps(switch_ns_512(true), 508.0),
        (Status::Validated, "level of 64 bytes north-south, slope of chains; this row was used for neither"),
    ),
    row(
        "ovs-ns-512-flat",
        (SWITCH_NS, 512.0, 8),
        (31.0, GBPS),
        || gbps(switch_ns_512(false), 512.0),
        (Status::Validated, "level of 64 bytes north-south, slope of chains; this row was used for neither"),
    ),
    row(
        "vf-ns-512",
        (VF_NS, 512.0, 8),
        (38.0, GBPS),
        || gbps(vf(256, Pattern::NorthSouth, 8, 512), 512.0),
        (Status::Validated, "the rate of the line"),
    ),
    row(
        "vf-ns-512-without-fcs",
        (VF_NS, 512.0, 8),
        (38.0, BARE),
        || gbps(vf(256, Pattern::NorthSouth, 8, 512), 508.0),
        (Status::Validated, "the rate of the line"),
    ),
    row(
        "ovs-chain-64-each-4",
        (SWITCH_CHAIN, 64.0, 4),
        (5.25, EACH),
        || Some(SWITCH_CHAIN_MPPS),
        (Status::Fitted, "its own number is the level of the chain calibration"),
    ),
    row("ovs-chain-threads-4", (SWITCH_CHAIN, 64.0, 4), (1.0, OF_4), || against_4(9, 4), (Status::Fitted, THREADS)),
    row("ovs-chain-threads-6", (SWITCH_CHAIN, 64.0, 6), (1.0, OF_4), || against_4(9, 6), (Status::Fitted, THREADS)),
    row("ovs-chain-threads-8", (SWITCH_CHAIN, 64.0, 8), (1.0, OF_4), || against_4(9, 8), (Status::Fitted, THREADS)),
    row(
        "ovs-chain-one-pool-4",
        (SWITCH_CHAIN, 64.0, 4),
        (1.0, OF_4),
        || against_4(1, 4),
        (Status::Fitted, "the row that the others are compared with"),
    ),
    row(
        "ovs-chain-one-pool-6",
        (SWITCH_CHAIN, 64.0, 6),
        (1.0, OF_4),
        || against_4(1, 6),
        (Status::Fails, "one pool of polling CPUs is wrong for this switch: queues are assigned to threads"),
    ),
    row(
        "ovs-chain-one-pool-8",
        (SWITCH_CHAIN, 64.0, 8),
        (1.0, OF_4),
        || against_4(1, 8),
        (Status::Fails, "one pool of polling CPUs is wrong for this switch: queues are assigned to threads"),
    ),
    row(
        "ovs-chain-64-8",
        (SWITCH_CHAIN, 64.0, 8),
        (40.0, MPPS),
        || Some(SWITCH_CHAIN_MPPS * 8.0),
        (Status::Fitted, THREADS),
    ),
    row(
        "ovs-chain-1518-8",
        (SWITCH_CHAIN, 1518.0, 8),
        (18.1, MPPS),
        || Some(18.1),
        (Status::Fitted, "its own number gives the slope of a hop's cost"),
    ),
    row(
        "vf-chain-64-each-4",
        (VF_CHAIN, 64.0, 4),
        (4.0, EACH),
        || Some(vf(128, Pattern::Chain, 4, 64)? / 4.0),
        (Status::Validated, "checks that the rate falls as 1/N; spoken as about 4"),
    ),
    row("vf-chain-64", (VF_CHAIN, 64.0, 8), (18.5, MPPS), || vf(128, Pattern::Chain, 8, 64), (Status::Fitted, HAIRPIN)),
    row(
        "vf-chain-64-each-8",
        (VF_CHAIN, 64.0, 8),
        (2.4, EACH),
        || Some(vf(128, Pattern::Chain, 8, 64)? / 8.0),
        (Status::Fitted, "the same run as the row before"),
    ),
    row(
        "vf-chain-64-2",
        (VF_CHAIN, 64.0, 2),
        (18.0, MPPS),
        || vf(128, Pattern::Chain, 2, 64),
        (Status::Validated, "the same at each number of VMs; read off a chart"),
    ),
    row(
        "vf-chain-1518-mps128",
        (VF_CHAIN, 1518.0, 8),
        (44.0, GBPS),
        || gbps(vf(128, Pattern::Chain, 8, 1518), 1518.0),
        (Status::Fitted, MPS),
    ),
    row(
        "vf-chain-1518-mps256",
        (VF_CHAIN, 1518.0, 8),
        (44.0, GBPS),
        || gbps(vf(256, Pattern::Chain, 8, 1518), 1518.0),
        (Status::Bound, MPS),
    ),
    row(
        "vf-chain-1518-2",
        (VF_CHAIN, 1518.0, 2),
        (44.0, GBPS),
        || gbps(vf(128, Pattern::Chain, 2, 1518), 1518.0),
        (Status::Validated, "the same at each number of VMs, with the payload of 8 VMs"),
    ),
    row(
        "vf-chain-1518-4",
        (VF_CHAIN, 1518.0, 4),
        (44.0, GBPS),
        || gbps(vf(128, Pattern::Chain, 4, 1518), 1518.0),
        (Status::Validated, "the same at each number of VMs, with the payload of 8 VMs"),
    ),
    limit(
        "vf-chain-10g-ends",
        5.0,
        "VNFs",
        first_below_10_gbps,
        Status::Validated,
        "a chain of 10 Gb/s is out of bandwidth",
    ),
    limit(
        "pcie-gen3-x8",
        50.0,
        GBPS,
        || Some(link(128).bits_per_s() / 1e9),
        Status::Bound,
        "a spoken limit, not a constant",
    ),
    limit(
        "inside-the-card",
        45.0,
        GBPS,
        || gbps(vf(256, Pattern::Chain, 8, 1518), 1518.0),
        Status::Bound,
        "a spoken limit, not a constant",
    ),
    limit("ovs-one-port", 6.0, MPPS, || None, Status::Bound, NO_MODEL),
];

/// Its table of netperf.
pub(super) const NETPERF: &[Point] = &[
    netperf("netperf-kernel-128", KERNEL_NS, (128.0, 9.0)),
    netperf("netperf-ovs-128", SWITCH_NS, (128.0, 7.8)),
    netperf("netperf-vf-128", VF_NS, (128.0, 12.0)),
    netperf("netperf-kernel-512", KERNEL_NS, (512.0, 20.0)),
    netperf("netperf-ovs-512", SWITCH_NS, (512.0, 13.0)),
    netperf("netperf-vf-512", VF_NS, (512.0, 39.0)),
    netperf("netperf-kernel-65536", KERNEL_NS, (65536.0, 40.0)),
    netperf("netperf-ovs-65536", SWITCH_NS, (65536.0, 40.0)),
    netperf("netperf-vf-65536", VF_NS, (65536.0, 40.0)),
];
