//! The levels at a glance, a waterfall and a matrix: a nested VM beside others, one of which did not record exits.

use base::figure::{
    Column, Drawing, Figure, Ground, Levels, Matrix, MatrixRow, Removed, Standing, Step, Storey, TimePart, Waterfall,
};

pub(crate) fn figures() -> Vec<Figure> {
    vec![levels(), waterfall(), matrix()]
}

fn matrix() -> Figure {
    let row = |label: &str, about: &str, cells: [Option<Standing>; 2], findings: &[&str]| MatrixRow {
        label: label.into(),
        about: about.into(),
        cells: cells.into(),
        findings: findings.iter().map(|id| (*id).to_owned()).collect(),
    };
    let rows = vec![
        row(
            "vmcs_shadowing",
            "VMREAD of <L1> needs no exit",
            [Some(Standing::On), Some(Standing::Off)],
            &["NST-SHADOW@L1"],
        ),
        row("hyperv_evmcs", "an enlightened VMCS", [Some(Standing::Absent), Some(Standing::Unknown)], &[]),
        row("avic", "", [None, Some(Standing::Absent)], &[]),
    ];
    Figure {
        id: "features".into(),
        title: "Which features does each level have?".into(),
        caption: "3 features with a known state; 1 off somewhere.".into(),
        in_terminals: true,
        drawing: Drawing::Matrix(Matrix { columns: vec!["L0".into(), "L1".into()], rows }),
    }
}

fn levels() -> Figure {
    let storey = |level: &str, hue: &str, share, exits_per_s| Storey {
        level: level.into(),
        hue: hue.into(),
        share,
        exits_per_s,
        reflected_per_s: None,
        for_each: None,
    };
    let nested = vec![
        Storey { reflected_per_s: Some(300.25), ..storey("L2", "guest_l2", 0.044, Some(367.0)) },
        Storey { for_each: Some(4.04), ..storey("L1", "guest_l1", 0.108, Some(1_480.4)) },
    ];
    let column = |title: &str, about: &str, storeys| Column { title: title.into(), about: about.into(), storeys };
    let part = |label: &str, hue: &str, share| TimePart { label: label.into(), hue: hue.into(), share };
    Figure {
        id: "levels".into(),
        title: "The levels at a glance".into(),
        caption:
            "L2 of <web> exits 367 times per second; L1 handles 300 of these exits, with 4.04 of its own to L0 for each."
                .into(),
        in_terminals: true,
        drawing: Drawing::Levels(Levels {
            columns: vec![
                column("<web>", "1 vCPU", nested),
                column("db", "2 vCPUs", vec![storey("L1", "guest_l1", 0.8, Some(1.0))]),
                column("14 more VMs", "28 vCPUs", vec![storey("L1", "guest_l1", 0.5, None)]),
            ],
            ground: Ground { level: "L0".into(), kvm_share: 0.248, vmm_share: 0.121, to_vmm_per_s: Some(310.0) },
            time: vec![
                part("L2 guest", "guest_l2", 0.044),
                part("L1 guest", "guest_l1", 0.508),
                part("L0 working for L1", "handling_l1", 0.248),
                part("VMM in userspace", "userspace", 0.121),
                part("preempted", "preempted", 0.0789),
                part("unknown", "unknown", 0.0001),
            ],
        }),
    }
}

fn waterfall() -> Figure {
    let step = |label: &str, hue: &str, share, back: &[(&str, f64)]| {
        let removed = |(rule, share): &(&str, f64)| Removed {
            finding: format!("{rule}@<web>"),
            rule: (*rule).into(),
            share: *share,
            low: 0.0,
            high: *share,
        };
        Step { label: label.into(), hue: hue.into(), share, removed: back.iter().map(removed).collect() }
    };
    let steps = vec![
        step("L2 guest", "guest_l2", 0.3, &[]),
        step("L1 handling exits of L2", "handling_l2_by_l1", 0.2, &[]),
        step("L0 working for L1", "handling_l1", 0.3, &[("FLW-VLS", 0.15), ("FLW-VGIF", 0.1)]),
        step("preempted", "preempted", 0.199, &[("FLW-PREEMPT", 0.199)]),
        step("unknown", "unknown", 0.001, &[]),
    ];
    let whole = |title: &str| Waterfall { title: title.into(), steps: steps.clone() };
    Figure {
        id: "waterfall".into(),
        title: "What used up the vCPU time, and what would come back".into(),
        caption: "The findings name up to 34.9 % that would come back.".into(),
        in_terminals: true,
        drawing: Drawing::Waterfall(vec![whole("all 2 vCPUs"), whole("vCPU 0 of <web>"), whole("vCPU 1 of <web>")]),
    }
}
