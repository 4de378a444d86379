//! What others published of links, cards and switches.

use super::models::{link, shared};
use super::{Counted, GBPS, MPPS, Point, Status};
use crate::datapath::model::design::{Datapath, Pattern};

const CSIT: &str = "FD.io CSIT, resources/libraries/python/Constants.py: a limit that its tests set";
const CNCF: &str = "CNCF CNF testbed, cncf/cnfs, comparison/doc/cncf-cnfs-results-summary.md";
const PCIE_BENCH: &str = "R. Neugebauer et al., SIGCOMM 2018, 10.1145/3230543.3230560: NFP-6000 on Broadwell";

const ONE_PARAMETER: &str = "one parameter for the five rows of this switch";
const SMALL: &str = "small writes are limited by that device, not by its link";
const BOTH: &str = "open: devices lose 15 to 20 % while they read and write at once, which the formula does not know";

const fn row(
    (id, source): (&'static str, &'static str),
    counted: f64,
    (published, unit): (f64, &'static str),
    model: fn() -> Option<f64>,
    (status, note): (Status, &'static str),
) -> Point {
    let counted = Counted::Frames(counted);
    Point { id, of: None, vnfs: None, counted, published, unit, model, status: Some(status), note, source }
}

/// The same of a chain through a switch.
const fn chain(
    id: &'static str,
    published: f64,
    model: fn() -> Option<f64>,
    (status, note): (Status, &'static str),
) -> Point {
    let of = Some((Datapath::OvsDpdk, Pattern::Chain));
    Point { of, ..row((id, CNCF), 64.0, (published, MPPS), model, (status, note)) }
}

/// The card's bits a second of frames, in and out at once.
fn packets(mps_bytes: u32, bytes: f64) -> Option<f64> {
    Some(link(mps_bytes).packets_per_s(bytes) * bytes * 8.0 / 1e9)
}

fn written(bytes: f64) -> Option<f64> {
    Some(link(256).written_bits_per_s(bytes) / 1e9)
}

fn both(bytes: f64) -> Option<f64> {
    Some(link(256).both_bits_per_s(bytes) / 1e9)
}

/// Two ports of 24.5 Gb/s.
const XL710_BITS: f64 = 2.0 * 24.5;

/// All of them.
pub(super) const ROWS: &[Point] = &[
    row(
        ("xl710-two-ports-1024-mps256", CSIT),
        1024.0,
        (XL710_BITS, GBPS),
        || packets(256, 1024.0),
        (Status::Fitted, "consistent if the largest payload was 256 bytes"),
    ),
    row(
        ("xl710-two-ports-1518-mps256", CSIT),
        1518.0,
        (XL710_BITS, GBPS),
        || packets(256, 1518.0),
        (Status::Fitted, "consistent if the largest payload was 256 bytes"),
    ),
    row(
        ("xl710-two-ports-1024-mps128", CSIT),
        1024.0,
        (XL710_BITS, GBPS),
        || packets(128, 1024.0),
        (
            Status::Fails,
            "open: the largest payload of that host; with 128 bytes the ceiling lies below what was reached",
        ),
    ),
    row(
        ("xl710-two-ports-1518-mps128", CSIT),
        1518.0,
        (XL710_BITS, GBPS),
        || packets(128, 1518.0),
        (
            Status::Fails,
            "open: the largest payload of that host; with 128 bytes the ceiling lies below what was reached",
        ),
    ),
    chain("cncf-vsc-1", 6.1, || shared(10.9, 1), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-vsc-2", 3.5, || shared(10.9, 2), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-vsc-4", 2.3, || shared(10.9, 4), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-vsc-6", 1.5, || shared(10.9, 6), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-vsc-8", 1.1, || shared(10.9, 8), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-csc-2", 6.0, || shared(18.5, 2), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-csc-4", 3.7, || shared(18.5, 4), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-csc-6", 2.6, || shared(18.5, 6), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-csc-8", 2.1, || shared(18.5, 8), (Status::Fitted, ONE_PARAMETER)),
    chain("cncf-csc-10", 1.7, || shared(18.5, 10), (Status::Fitted, ONE_PARAMETER)),
    row(("cncf-csp-1", CNCF), 64.0, (6.3, MPPS), || Some(6.3), (Status::Fitted, "the level of the pipelines")),
    row(
        ("cncf-csp-2", CNCF),
        64.0,
        (6.3, MPPS),
        || Some(6.3),
        (
            Status::Validated,
            "a pipeline without a switch between VNFs keeps its rate: the switch is what binds, not the VNFs",
        ),
    ),
    row(
        ("cncf-csp-4", CNCF),
        64.0,
        (6.3, MPPS),
        || Some(6.3),
        (
            Status::Validated,
            "a pipeline without a switch between VNFs keeps its rate: the switch is what binds, not the VNFs",
        ),
    ),
    row(
        ("cncf-csp-6", CNCF),
        64.0,
        (6.4, MPPS),
        || Some(6.3),
        (
            Status::Validated,
            "a pipeline without a switch between VNFs keeps its rate: the switch is what binds, not the VNFs",
        ),
    ),
    row(
        ("cncf-csp-8", CNCF),
        64.0,
        (6.5, MPPS),
        || Some(6.3),
        (
            Status::Validated,
            "a pipeline without a switch between VNFs keeps its rate: the switch is what binds, not the VNFs",
        ),
    ),
    row(("pcie-write-64", PCIE_BENCH), 64.0, (24.3, GBPS), || written(64.0), (Status::Bound, SMALL)),
    row(("pcie-write-128", PCIE_BENCH), 128.0, (42.4, GBPS), || written(128.0), (Status::Bound, SMALL)),
    row(("pcie-write-256", PCIE_BENCH), 256.0, (50.5, GBPS), || written(256.0), (Status::Validated, "")),
    row(("pcie-write-512", PCIE_BENCH), 512.0, (53.0, GBPS), || written(512.0), (Status::Validated, "")),
    row(("pcie-write-1024", PCIE_BENCH), 1024.0, (53.0, GBPS), || written(1024.0), (Status::Validated, "")),
    row(("pcie-both-64", PCIE_BENCH), 64.0, (23.1, GBPS), || both(64.0), (Status::Fails, BOTH)),
    row(("pcie-both-128", PCIE_BENCH), 128.0, (33.9, GBPS), || both(128.0), (Status::Fails, BOTH)),
    row(("pcie-both-256", PCIE_BENCH), 256.0, (42.1, GBPS), || both(256.0), (Status::Fails, BOTH)),
    row(("pcie-both-512", PCIE_BENCH), 512.0, (42.7, GBPS), || both(512.0), (Status::Fails, BOTH)),
    row(("pcie-both-1024", PCIE_BENCH), 1024.0, (43.6, GBPS), || both(1024.0), (Status::Fails, BOTH)),
];
