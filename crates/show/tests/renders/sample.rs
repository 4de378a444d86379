//! A made-up answer with one of everything that a Section can hold. Its numbers are those of a small nested VMX
//! recording, so that the pages can be judged by eye.

use crate::{glance, packets};
use base::figure::{
    Axis, Bar, BarGroup, Bin, Curve, Curves, Drawing, Dumbbell, DumbbellGroup, Edge, Figure, Form, Heat, HeatRow,
    Histogram, Kind, Limit, Mark, On, Point, PointGroup, Shape, Sign, SpanGroup, SpanRow, Stretch, Sure,
};
use base::recording::{Emulator, Named, PartKind, Recording};
use base::{
    About, Cell, Cost, CostKind, Evidence, Finding, Level, Needs, Problem, Section, Setting, Severity, Shown, Span,
    Table, TableSpec, Unknown, shown, table,
};

pub(crate) fn section() -> Section {
    let mut section = Section::new("flow", "Where did each vCPU's time go, by level?");
    section.about = vec![
        "vmx-shadow-off   recorded at L0 (Linux 6.1.192, VMX)   6,644 events, 0 lost   0.638 s".into(),
        "EMULATED by Bochs: counts and order are real, times are not.".into(),
    ];
    section.summary = "Every exit of L2 that L1 handles costs 15 exits of L1 to L0: 8 VMREAD, 5 VMWRITE, the work \
        itself (CPUID) and VMRESUME. VMCS shadowing is off at L0; it would leave 3. Apart from that, vCPU 0 stood \
        ready to run and did not for 46 % of the recording: mostly busybox had its CPU."
        .into();
    section.findings = vec![shadowing(), preempted()];
    section.figures = vec![
        ledger(),
        points(),
        curves(),
        histogram(),
        heat(),
        packets::ways(),
        packets::gauges(),
        spans(),
        dumbbells(),
    ];
    section.figures.extend(glance::figures());
    section.tables = vec![exits(), chains(), losses()];
    section.unknown = vec![Unknown {
        what: "before_first_event".into(),
        amount: Some(33_912_345.0),
        unit: "ns".into(),
        text: "before the first KVM event of each vCPU; nothing tells where it was".into(),
    }];
    section.next = vec!["kvmscope compare vmx-shadow-off vmx-shadow-on".into()];
    section
}

fn shadowing() -> Finding {
    let change = Setting::ModuleOption { module: "kvm_intel".into(), parameter: "enable_shadow_vmcs".into() }
        .change("1", Some("0".into()));
    Finding {
        rule: "FLW-SHADOW",
        subject: "nestv-98".into(),
        per: "VM",
        severity: Severity::High,
        level: Level::L0,
        title: "VMCS shadowing is off: 77 % of all exits are VMREAD and VMWRITE".into(),
        evidence: vec![
            Evidence::new("1,192 VMREAD at 8 places in L1, 149 times each", "table exits, level L1")
                .about([About::rows("flow.exits"), About::Thread { tid: 98 }])
                .key("level", "L1")
                .key("vcpu", 0u64)
                .about([About::reason("VMREAD"), About::state("guest_l1")])
                .about([About::Span(Span { from_ns: 5, to_ns: 9 })]),
            Evidence::new("832 VMWRITE, 746 of them at 5 places", "table exit_details"),
        ],
        cost: Cost::of(CostKind::Modelled, 12.0, "exits per chain").between(10.0, 13.0),
        gives_back: None,
        explains: vec!["FLW-PREEMPT@vCPU 0".into()],
        why: "Without shadowing every VMREAD and VMWRITE of L1 leaves the guest; with it most of them are answered by \
              the processor."
            .into(),
        fix: vec![change.setting.command(&change.to)],
        undo: change.from.iter().map(|from| change.setting.command(from)).collect(),
        changes: vec![change],
        needs: Needs::OuterLevel,
        source: "Intel SDM volume 3, 25.10; arch/x86/kvm/vmx/nested.c, Linux 6.1",
    }
}

fn preempted() -> Finding {
    Finding {
        rule: "FLW-PREEMPT",
        subject: "vCPU 0".into(),
        per: "vCPU",
        severity: Severity::Medium,
        level: Level::L0,
        title: "busybox (tid 90) took vCPU 0's CPU 58 times".into(),
        evidence: vec![Evidence::new("preempted for 294.6 ms in all", "table preemptors")],
        cost: Cost::of(CostKind::Measured, 0.4618, "share of the recording"),
        gives_back: None,
        explains: Vec::new(),
        why: String::new(),
        changes: Vec::new(),
        fix: Vec::new(),
        undo: Vec::new(),
        needs: Needs::Nothing,
        source: "",
    }
}

fn ledger() -> Figure {
    let bar = |label: &str, value: f64, hue: &str, note: &str| Bar {
        label: label.into(),
        value,
        note: note.into(),
        hue: hue.into(),
    };
    let bars = vec![
        bar("preempted", 294.6e6, "preempted", ""),
        bar("L0 working for L1", 129e6, "handling_l1", ""),
        bar("L1 guest", 57.3e6, "guest_l1", ""),
        bar("unknown", 33.9e6, "unknown", "before the first KVM event"),
        bar("wake-up delay", 1.2e6, "wake_delay", ""),
        bar("NMI", 40.0, "nmi", ""),
    ];
    let group = BarGroup {
        title: "vm nestv-98 (assumed)   vCPU 0   tid 98".into(),
        unit: "ns",
        total: 638e6,
        bars,
        span: None,
    };
    Figure {
        id: "ledger".into(),
        title: "Where the time went".into(),
        caption: String::new(),
        in_terminals: true,
        drawing: Drawing::Bars(vec![group]),
    }
}

const EXITS: TableSpec = table! {
    flow.exits version 1: "Exits.";
    key vm, key_u64("") vcpu, key level, key reason, count count, ns total_ns, ns p50_ns, ns p99_ns, ns max_ns;
    Shown {
        bar: Some("count"),
        ..shown![
            "Exits", 4;
            vm, vcpu: "vCPU", level, reason, count: "exits", total_ns: "in all", p50_ns: "half below",
            p99_ns: "99 % below", max_ns: "longest",
        ]
    }
};

const CHAINS: TableSpec = table! {
    flow.chains version 1: "Chains.";
    key reason, count count, f64("") exits_mean, text exits;
    shown![
        "Chains: what one exit of L2 costs L1", 10;
        reason: "reason of L2's exit", count: "chains", exits_mean: "mean", exits: "chain, most frequent first",
    ]
};

const LOSSES: TableSpec = table! {
    flow.losses version 1: "Losses.";
    key part, count count;
};

fn exits() -> Table {
    let mut table = Table::new(&EXITS);
    for (level, reason, count, each) in [
        ("L1", "VMREAD", 1_192, 7_656),
        ("L1", "VMWRITE", 832, 7_902),
        ("L1", "CPUID", 149, 12_345),
        ("L2", "CPUID", 149, 4_001),
        ("L?", "AN_EXIT_REASON_WITH_A_NAME_THAT_IS_QUITE_LONG", 3, 18_446_744_073_709_551),
    ] {
        let mut row: Vec<Cell> = vec!["nestv-98".into(), 0u64.into(), level.into(), reason.into(), count.into()];
        row.extend([Cell::from(count * each), each.into(), Cell::Missing, (each + 1).into()]);
        table.push(row);
    }
    table
}

fn chains() -> Table {
    let mut table = Table::new(&CHAINS);
    table.push(vec!["CPUID".into(), 149u64.into(), 15.04.into(), "VMREAD x8, VMWRITE x5, CPUID, VMRESUME".into()]);
    table
}

fn losses() -> Table {
    Table::new(&LOSSES)
}

/// Damage in the input.
pub(crate) fn problems() -> Vec<Problem> {
    let mut short = Problem::at(
        "L0/trace.dat",
        0x1f_a000,
        "a page of 4,096 bytes",
        "17 bytes",
        17,
        "the file ends in the middle of a page",
    );
    short.count = 3;
    vec![short, Problem::at("recording.json", None, "a machine", "nothing", 0, "")]
}

/// A recording of one bare file, under a name that does not depend on the machine.
pub(crate) fn recording() -> Recording {
    let mut recording =
        Recording::of_files(&[Named::at_l0(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))], Some(Emulator::Bochs))
            .unwrap();
    recording.parts[0].path = "vmx.dat".into();
    recording.parts[0].kind = PartKind::TraceDat;
    recording
}

fn points() -> Figure {
    let point = |label: &str, value: f64, interval, mark, source: &str| Point {
        label: label.into(),
        value,
        interval,
        mark,
        source: source.into(),
    };
    let points = vec![
        point("L1", 2_675.0, Some((2_410.0, 3_524.0)), Mark::Measured, "L1, here"),
        point("L1", 1_350.0, None, Mark::Published, "fosdem18.cpuid.l1"),
        point("L2", 61_000.0, None, Mark::Emulated, "L1, guest"),
        point("L2, evmcs", 8_900.0, None, Mark::Published, "fosdem18.cpuid.l2.evmcs"),
    ];
    Figure {
        id: "ladder".into(),
        title: "From level to level".into(),
        caption: "Dots are ours, diamonds were published.".into(),
        in_terminals: true,
        drawing: Drawing::Points(vec![PointGroup { title: "cpuid".into(), unit: "cycles", points }]),
    }
}

fn curves() -> Figure {
    let axis = |title: &str| Axis { title: title.into(), unit: "ns", is_logarithmic: true };
    let curve = |label: &str, form, points: &[(f64, f64)]| Curve { label: label.into(), form, points: points.to_vec() };
    let losses = [(1e4, 1e4), (1e5, 2.8e4), (1e6, 1.4e5), (1e7, 9e5), (1e8, 2.1e6), (1e9, 1.4e7)];
    let quiet = [(1e4, 2e3), (1e5, 2e3), (1e6, 4e3), (1e7, 2.2e4), (1e8, 1.1e5), (1e9, 9e5)];
    let curves = vec![
        curve("vCPU 0", Form::Line, &losses),
        curve("vCPU 1", Form::Steps, &quiet),
        curve("another host", Form::Points(Mark::Published), &[(1e6, 2e4)]),
        curve("as the model says", Form::Points(Mark::Modelled), &[(1e8, 4e5)]),
        curve("vCPU 2", Form::StepsBelow(1e4), &[(1e8, 2e3), (3e8, 5e3), (1e9, 1e4)]),
    ];
    let limits = vec![Limit { label: "budget of 1 ms".into(), on: On::Y, value: 2e4, until: Some(1e6) }];
    let (x, y) = (axis("window"), axis("lost in the worst window"));
    Figure {
        id: "loss-curve".into(),
        title: "How much of any window is lost".into(),
        caption: "The worst millisecond of vCPU 0 lost 140.0 us.".into(),
        in_terminals: true,
        drawing: Drawing::Curves(Curves { x, y, curves, limits }),
    }
}

fn histogram() -> Figure {
    let kind = |label: &str, hue: &str| Kind { label: label.into(), hue: hue.into() };
    let ends = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];
    let counts = [(900, 3), (41, 12), (0, 0), (0, 7), (1, 1), (0, 1)];
    let bins = ends.windows(2).zip(counts);
    let bins = bins.map(|(ends, (irq, task))| Bin { from: ends[0], to: ends[1], counts: vec![irq, task] });
    let drawn = Histogram {
        x: Axis { title: "length of a loss".into(), unit: "ns", is_logarithmic: true },
        counted: "losses",
        kinds: vec![kind("irq", "irq"), kind("preempted", "preempted")],
        bins: bins.collect(),
        limits: vec![Edge { label: "preempt-period".into(), value: 1e4 }],
    };
    Figure {
        id: "pauses".into(),
        title: "How long vCPUs were away".into(),
        caption: "10 of 966 losses are longer than 10.0 us.".into(),
        in_terminals: true,
        drawing: Drawing::Histogram(drawn),
    }
}

fn heat() -> Figure {
    let cells = |every: usize| (0..14).map(move |cell| Some(((cell * cell * 7) % every) as f64 * 1e3));
    let unknown = [None; 3].into_iter().chain(cells(23)).collect();
    let rows = vec![
        HeatRow { label: "vCPU 0".into(), cells: cells(37).chain([Some(0.0); 3]).collect() },
        HeatRow { label: "vCPU 1".into(), cells: unknown },
    ];
    let x = Axis { title: "time".into(), unit: "ns", is_logarithmic: false };
    let what = "lost in the worst millisecond".into();
    Figure {
        id: "heat".into(),
        title: "When it was lost".into(),
        caption: String::new(),
        in_terminals: true,
        drawing: Drawing::Heat(Heat { x, ends: (0.0, 638e6), what, unit: "ns", most: 3e4, rows }),
    }
}

fn spans() -> Figure {
    let time = || Axis { title: "time in all".into(), unit: "ns", is_logarithmic: false };
    let said = |from, to| Stretch { from, to, what: "said before".into(), hue: String::new() };
    let sign = |at, what: &str, shape| Sign { at, what: what.into(), shape };
    let row = |label: &str, value: &str, note: &str, stretches, signs| SpanRow {
        label: label.into(),
        value: value.into(),
        note: note.into(),
        stretches,
        signs,
    };
    let part = |from, to, what: &str, hue: &str| Stretch { from, to: Some(to), what: what.into(), hue: hue.into() };
    let both = |was| vec![sign(1.1e9, "naive", Shape::Cross), sign(was, "it was", Shape::Dot)];
    let intervals = vec![
        row("run 0", "519.0 ms", "inside", vec![said(3.48e8, Some(6.35e8))], both(5.19e8)),
        row("run 1", "-", "not known: it has no dot", vec![said(3.48e8, None)], vec![sign(4e8, "likely", Shape::Bar)]),
    ];
    let parts = vec![
        part(0.0, 2e6, "worked", "running"),
        part(2e6, 7e6, "waited for a CPU", "runnable"),
        part(7e6, 7.01e6, "unnamed", "unknown"),
    ];
    let limits = vec![Edge { label: "goal".into(), value: 6e6 }];
    Figure {
        id: "spans".into(),
        title: "What was said, and what it was".into(),
        caption: "1 of 2 runs was inside.".into(),
        in_terminals: true,
        drawing: Drawing::Spans(vec![
            SpanGroup { title: "time in all".into(), x: time(), rows: intervals, limits: Vec::new() },
            SpanGroup {
                title: "run 0".into(),
                x: time(),
                rows: vec![row("source nic", "7.0 ms", "", parts, vec![])],
                limits,
            },
        ]),
    }
}

/// Pairs of every look: each way of being sure, each source, one that is gone and one whose interval is cut.
fn dumbbells() -> Figure {
    let row = |label: &str, numbers: (f64, f64), interval, change: &str, sure: Sure, mark, hue: &str| Dumbbell {
        label: label.into(),
        before: numbers.0,
        after: numbers.1,
        interval,
        change: change.into(),
        verdict: sure.words().into(),
        sure,
        mark,
        hue: hue.into(),
    };
    let shares = vec![
        row("preempted", (0.46, 0.02), Some((0.01, 0.07)), "-95.7 %", Sure::Changed, Mark::Measured, "preempted"),
        row("<L1> guest", (0.1, 0.3), Some((0.02, 0.9)), "x3", Sure::Noise, Mark::Measured, "guest_l1"),
        row("halted", (0.3, 0.5), None, "+66.7 %", Sure::Void, Mark::Measured, "halted"),
    ];
    let rates = vec![
        row("VMREAD of L1", (1_868.5, 0.0), None, "gone", Sure::TwoRuns, Mark::Emulated, "L1"),
        row("CR of L1", (1.5, 5.3), Some((0.2, 9e9)), "x3.53", Sure::Noise, Mark::Emulated, "L1"),
        row("price", (900.0, 450.0), None, "-50.0 %", Sure::Unknown, Mark::Modelled, ""),
    ];
    let axis = |title: &str, unit, is_logarithmic| Axis { title: title.into(), unit, is_logarithmic };
    Figure {
        id: "dumbbells".into(),
        title: "What changed, and is it real?".into(),
        caption: "Of 6 metrics, 2 differ.".into(),
        in_terminals: true,
        drawing: Drawing::Dumbbells(vec![
            DumbbellGroup { title: "Share of time".into(), x: axis("of time", "share", false), rows: shares },
            DumbbellGroup {
                title: "Exits per second".into(),
                x: axis("logarithmic, 0 at the left", "count", true),
                rows: rates,
            },
        ]),
    }
}
