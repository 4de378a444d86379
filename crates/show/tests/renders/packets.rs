//! Ways of packets and gauges: a made-up one of each, and what long chains and hostile names do to them.

use crate::sample;
use base::Section;
use base::figure::{Ceiling, Drawing, Figure, Flow, Fullest, Gauge, GaugeGroup, Hop, Reading, Side, Stop};
use kvmscope_show::html::{MOST_BYTES, Page, render};
use kvmscope_show::json::Answered;
use kvmscope_show::text;

fn stop(label: &str, side: Side, share: Option<f64>) -> Stop {
    Stop { label: label.into(), side, share }
}

fn hop(path: &str, from: &Stop, to: &Stop, (above, below): (&str, &str), full: (&str, f64)) -> Hop {
    let by = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Hop {
        path: path.into(),
        from: from.clone(),
        to: to.clone(),
        above: by(above),
        below: by(below),
        pps: 4.31e6,
        bits_per_s: 2.21e9,
        fullest: (!full.0.is_empty()).then(|| Fullest { resource: full.0.into(), share: full.1 }),
        count: 1,
    }
}

/// Over the wire into a switch, three times from VNF to VNF, of which one is folded and one is through the card, and out.
pub(crate) fn ways() -> Figure {
    let wire = stop("wire", Side::Below, None);
    let vnfs = [1, 2, 60, 61].map(|vnf| stop(&format!("VNF {vnf}"), Side::Above, Some(0.43)));
    let folded = Hop { count: 58, ..hop("ovs-dpdk", &vnfs[1], &vnfs[2], ("switch", ""), ("pmd", 1.0)) };
    let hops = vec![
        hop("ovs-dpdk", &wire, &vnfs[0], ("switch", "card"), ("pmd", 1.0)),
        hop("ovs-dpdk", &vnfs[0], &vnfs[1], ("switch", ""), ("pmd", 1.0)),
        folded,
        hop("sriov", &vnfs[2], &vnfs[3], ("", "card"), ("nic", 0.86)),
        hop("ovs-kernel", &vnfs[3], &wire, ("switch", "card"), ("", 0.0)),
    ];
    let flow = Flow {
        title: "a mixed design: 61 VNFs at 64 bytes".into(),
        boundary: "PCIe".into(),
        above: "the host's memory and CPUs".into(),
        below: "card and wire".into(),
        most_bits_per_s: 30.5e9,
        hops,
    };
    Figure {
        id: "way".into(),
        title: "Which way a packet takes".into(),
        caption: "Modelled.".into(),
        in_terminals: true,
        drawing: Drawing::Flows(vec![flow]),
    }
}

/// One gauge whose ceiling is far away, and one whose rate is hardly seen.
pub(crate) fn gauges() -> Figure {
    let reading = |of: &str, pps: f64| Reading { of: of.into(), pps, bits_per_s: pps * 512.0 };
    let switch = Gauge {
        label: "ovs-dpdk".into(),
        all: reading("all 4 VMs", 17.23e6),
        each: Some(reading("each VM", 4.31e6)),
        ceiling: Ceiling { pps: 144.4e6, resource: "pcie".into() },
        published_pps: vec![21e6],
    };
    let kernel = Gauge {
        label: "ovs-kernel".into(),
        all: reading("the VM", 40_000.0),
        each: None,
        ceiling: Ceiling { pps: 36.1e6, resource: "pcie".into() },
        published_pps: Vec::new(),
    };
    let group = GaugeGroup { title: "4 VNFs at 64 bytes".into(), gauges: vec![switch, kernel] };
    Figure {
        id: "gauges".into(),
        title: "What all VMs send, and each (frames with their check sequence)".into(),
        caption: String::new(),
        in_terminals: true,
        drawing: Drawing::Gauges(vec![group]),
    }
}

fn page(section: Section) -> String {
    let recording = sample::recording();
    let sections = [section];
    let answered = Answered { recording: &recording, compared: &[], sections: &sections, problems: &[] };
    render(&Page { answered, drawn: None, most_bytes: MOST_BYTES }).unwrap().text
}

fn of(figure: Figure) -> Section {
    Section { figures: vec![figure], ..Section::new("datapath", "?") }
}

#[test]
fn every_crossing_is_marked_and_counted_over_folded_hops() {
    let text = page(of(ways()));
    assert!(text.contains("4 crossings of PCIe"), "in, twice by the card, out");
    for nth in 1..=4 {
        assert!(text.contains(&format!(">{nth}</text>")), "{nth}");
    }
    assert_eq!(text.matches("<circle ").count(), 4);
    let mut folded = ways();
    if let Drawing::Flows(flows) = &mut folded.drawing {
        (flows[0].hops[2].above, flows[0].hops[2].below) = (None, Some("card".into()));
    }
    let all = page(of(folded));
    assert!(all.contains("120 crossings of PCIe") && all.contains(">2</text>") && all.contains(">117</text>"), "{all}");
    assert!(text.contains(">58 x ovs-dpdk</text>") && text.contains("class=\"hop near\""), "{text}");
}

#[test]
fn a_way_fits_a_terminal_of_60_columns() {
    for width in [60, 80, 100] {
        let text = text::render(&[of(ways())], &[], &text::Page { width, colour: false, ascii: true });
        assert!(text.lines().all(|line| line.len() <= width), "{width}: {text}");
        assert!(text.contains("VNF 60 =PCIe=> card =PCIe=> VNF 61"), "{text}");
        assert!(text.contains("58 more hops alike, to VNF 60"), "{text}");
    }
}

#[test]
fn names_in_pictures_of_packets_are_text() {
    let evil = "\"><script>alert(1)</script>\x1b[2J";
    let (mut way, mut gauge) = (ways(), gauges());
    if let Drawing::Flows(flows) = &mut way.drawing {
        (flows[0].title, flows[0].boundary, flows[0].above) = (evil.into(), evil.into(), evil.into());
        (flows[0].hops[0].path, flows[0].hops[0].above) = (evil.into(), Some(evil.into()));
        (flows[0].hops[0].from.label, flows[0].hops[0].to.label) = (evil.into(), evil.into());
        flows[0].hops[0].fullest = Some(Fullest { resource: evil.into(), share: f64::NAN });
        flows[0].most_bits_per_s = 0.0;
    }
    if let Drawing::Gauges(groups) = &mut gauge.drawing {
        groups[0].title = evil.into();
        let gauge = &mut groups[0].gauges[0];
        (gauge.label, gauge.all.of, gauge.all.pps) = (evil.into(), evil.into(), f64::NAN);
        gauge.ceiling = Ceiling { pps: f64::INFINITY, resource: evil.into() };
    }
    for figure in [way, gauge] {
        let text = page(of(figure.clone()));
        let shown = text.split("<main").nth(1).unwrap().split("kvmscope-data").next().unwrap();
        assert!(!shown.contains("<script>alert"), "{shown}");
        assert!(!shown.contains("=\"NaN") && !shown.contains(" NaN"), "{shown}");
        let text = text::render(&[of(figure)], &[], &text::Page::default());
        assert!(!text.contains('\x1b'), "{text:?}");
    }
}
