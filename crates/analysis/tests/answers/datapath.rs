//! The planner against counting by hand: each byte and each visit of a packet is walked, and nothing of the program is used.

use base::datapath::Traffic;
use base::recording::Recording;
use base::{Section, Table};
use kvmscope_analysis::datapath::{Datapath, Design, Known, Stated, StatedCard, StatedChain, quantity, read};
use kvmscope_analysis::{About, Answers, Case, Given};
use proptest::prelude::*;

fn planned(stated: &Stated) -> Section {
    let given = Given::query(stated.plan().unwrap());
    let case = Case::new(kvmscope_analysis::open(Recording::of_nothing("test")).unwrap(), given);
    Answers::about(&case, &[About::Plan]).sections.remove(0)
}

fn rates(section: &Section) -> &Table {
    section.table("rates").unwrap()
}

/// A packet of `bytes` cut in pieces of `most`: how many.
fn pieces(bytes: u32, most: u32) -> u32 {
    let (mut left, mut count) = (bytes, 0);
    while left > 0 {
        left = left.saturating_sub(most);
        count += 1;
    }
    count
}

/// Packets a second of a PCIe link with this share of its bits, one in and one out.
fn link_pps(gbps_raw: f64, symbols: f64, bytes: u32, mps: u32, mrrs: u32) -> f64 {
    let usable = gbps_raw * 1e9 * (1.0 - 16.0 / symbols - 4.0 / 1538.0);
    let frame = f64::from(bytes);
    let mut to_host = frame;
    (0..pieces(bytes, mps)).for_each(|_| to_host += 24.0);
    (0..pieces(bytes, mrrs)).for_each(|_| to_host += 24.0);
    // A descriptor written back, one asked for; of 40 that are fetched at once and 8 that are written back, a part.
    to_host += 16.0 + 24.0 + 24.0;
    to_host += f64::from(24 * pieces(640, mrrs)) / 40.0 + f64::from(128 + 24 * pieces(128, mps)) / 8.0;
    let mut to_device = frame;
    (0..pieces(bytes, mps)).for_each(|_| to_device += 20.0);
    to_device += 16.0 + 20.0 + 56.0 / 32.0 + f64::from(640 + 20 * pieces(640, mps)) / 40.0;
    usable / 8.0 / to_host.max(to_device)
}

/// What a packet meets on its way through a chain of these edges.
#[derive(Default)]
struct Visits {
    /// Packets that the card moves over PCIe towards the host.
    to_host: u32,
    to_device: u32,
    from_vf_to_vf: u32,
    hops: Vec<u32>,
}

fn walk(edges: &[Datapath]) -> Visits {
    let mut visits = Visits { to_host: 1, to_device: 1, ..Visits::default() };
    for (at, edge) in edges.iter().enumerate() {
        let is_inner = at > 0 && at + 1 < edges.len();
        match edge {
            Datapath::Sriov if is_inner => {
                visits.to_device += 1;
                visits.from_vf_to_vf += 1;
                visits.to_host += 1;
            }
            Datapath::OvsDpdk => visits.hops.push(1),
            _ => {}
        }
    }
    visits
}

/// The least load of the busiest of `threads`, by trying every assignment.
fn busiest(hops: &[u32], threads: usize) -> u32 {
    let Some((first, rest)) = hops.split_first() else { return 0 };
    fn assign(load: u32, rest: &[u32], threads: &mut Vec<u32>) -> u32 {
        let mut best = u32::MAX;
        for at in 0..threads.len() {
            threads[at] += load;
            let of = match rest.split_first() {
                Some((next, rest)) => assign(*next, rest, threads),
                None => threads.iter().copied().max().unwrap_or(0),
            };
            best = best.min(of);
            threads[at] -= load;
        }
        best
    }
    assign(*first, rest, &mut vec![0; threads])
}

fn path() -> impl Strategy<Value = Datapath> {
    prop_oneof![Just(Datapath::Sriov), Just(Datapath::OvsDpdk)]
}

/// Generation, lanes, raw Gb/s, and symbols between acknowledgements at payloads of 128, 256 and 512 bytes, from the tables of the
/// specification (3.0, tables 3-7 to 3-9).
const LINKS: [(u8, u8, f64, [f64; 3]); 5] = [
    (2, 8, 32.0, [118.0, 158.0, 137.0]),
    (3, 4, 4.0 * 8.0 * 128.0 / 130.0, [169.0, 214.0, 250.0]),
    (3, 8, 8.0 * 8.0 * 128.0 / 130.0, [163.0, 203.0, 182.0]),
    (3, 16, 16.0 * 8.0 * 128.0 / 130.0, [144.0, 168.0, 182.0]),
    (1, 16, 16.0 * 2.0, [48.0, 72.0, 86.0]),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_chain_carries_what_counting_each_visit_says(
        edges in prop::collection::vec(path(), 2..7),
        (link, payload) in (0..LINKS.len(), 0..3_usize),
        mrrs in prop_oneof![Just(128_u32), Just(512), Just(4096)],
        bytes in 64_u32..1519,
        threads in 1_u32..4,
        cycles in 100_f64..900.0,
        line in prop_oneof![Just(10e9), Just(40e9), Just(400e9)],
    ) {
        let (generation, lanes, raw, symbols) = LINKS[link];
        let mps = 128 << payload;
        let given = |value: u32| Some(Known::given(value));
        let card = StatedCard {
            model: Some(Known::given("XL710".to_owned())),
            line_bits_per_s: Some(Known::given(line)),
            pcie: Some(Known::given((generation, lanes))),
            mps_bytes: given(mps),
            mrrs_bytes: given(mrrs),
            ..StatedCard::default()
        };
        let vnfs = edges.len() as u32 - 1;
        let stated = Stated {
            cards: vec![card],
            chains: vec![StatedChain { vnfs, designs: vec![Design::of(edges.clone())], must_migrate: false, card: 0, pattern: None }],
            frames: vec![quantity::size(i64::from(bytes)).unwrap()],
            hop: Some(Known::given(quantity::hop(&format!("{cycles}+0.2")).unwrap())),
            pmd_cores: given(threads),
            core_hz: Some(Known::given(2e9)),
            ..Stated::default()
        };
        let visits = walk(&edges);
        let mut expected = line / (8.0 * f64::from(bytes + 20));
        let crossings = visits.to_host.max(visits.to_device);
        expected = expected.min(link_pps(raw, symbols[payload], bytes, mps, mrrs) / f64::from(crossings));
        if bytes < 160 {
            let counted = if visits.from_vf_to_vf > 0 { 2 * crossings } else { crossings };
            expected = expected.min(37e6 / f64::from(counted));
        }
        let busy = busiest(&visits.hops, threads as usize);
        if busy > 0 {
            expected = expected.min(2e9 / (f64::from(busy) * (cycles + 0.2 * f64::from(bytes))));
        }
        let section = planned(&stated);
        let row = rates(&section).rows().next().unwrap();
        let found = row.number("chain_pps").unwrap();
        prop_assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}");
        let system = row.number("system_pps").unwrap();
        prop_assert!((system - found * f64::from(vnfs)).abs() <= 1e-6 * system);
        let (low, high) = (row.number("low_pps").unwrap(), row.number("high_pps").unwrap());
        prop_assert!(low <= found && found <= high);
    }

    #[test]
    fn any_text_is_a_plan_or_an_error_with_its_place(text in "\\PC{0,200}") {
        if let Err(error) = read("f", &text) {
            prop_assert!(error.line >= 1 && !error.to_string().contains('\n'));
        }
    }
}

/// All designs of a chain of 2 with each number of threads, and those that no other one beats.
#[test]
fn a_search_finds_the_front_that_trying_everything_finds() {
    let paths = [Datapath::Sriov, Datapath::OvsDpdk];
    let mut all = Vec::new();
    let stated = |designs: Vec<Design>, threads: Option<u32>, search| Stated {
        cards: vec![StatedCard { model: Some(Known::given("XL710".to_owned())), ..StatedCard::default() }],
        chains: vec![StatedChain { vnfs: 3, designs, must_migrate: false, card: 0, pattern: None }],
        frames: vec![quantity::size(64).unwrap()],
        hop: Some(Known::given(quantity::hop("400+0.2").unwrap())),
        pmd_cores: threads.map(Known::given),
        search,
        ..Stated::default()
    };
    let read = |section: &Section| -> Vec<(u64, u64, bool)> {
        let row = |row: base::table::Row<'_>| {
            let is_movable = row.cell("migratable") == Some(&true.into());
            (row.number("chain_pps").unwrap().round() as u64, row.number("cores").unwrap() as u64, is_movable)
        };
        rates(section).rows().map(row).collect()
    };
    for number in 0..16_usize {
        let design = Design::of((0..4).map(|edge| paths[number >> edge & 1]).collect());
        for threads in 1..=4 {
            all.extend(read(&planned(&stated(vec![design.clone()], Some(threads), false))));
        }
    }
    let beats = |a: &(u64, u64, bool), b: &(u64, u64, bool)| a != b && a.0 >= b.0 && a.1 <= b.1 && a.2 >= b.2;
    let mut front: Vec<_> = all.iter().filter(|one| !all.iter().any(|other| beats(other, one))).copied().collect();
    front.sort_unstable();
    front.dedup();
    let mut found = read(&planned(&stated(Vec::new(), None, true)));
    found.sort_unstable();
    assert!(front.len() >= 3, "{front:?}");
    assert_eq!(found, front);
}

/// 32 VMs, 12 sizes and 7 paths: one rate each, and nothing else is tried.
#[test]
fn a_wide_plan_is_as_many_rates_as_it_asks_for() {
    let chain = |vnfs| StatedChain { vnfs, designs: seven(vnfs), must_migrate: false, card: 0, pattern: None };
    let stated = Stated {
        cards: vec![StatedCard { model: Some(Known::given("XL710".to_owned())), ..StatedCard::default() }],
        chains: (1..=32).map(chain).collect(),
        frames: (0..12).map(|at| quantity::size(64 + at * 128).unwrap()).collect(),
        ..Stated::default()
    };
    assert_eq!(rates(&planned(&stated)).rows.len(), 32 * 12 * 7);
}

fn seven(vnfs: u32) -> Vec<Design> {
    let names = ["sriov", "ovs-dpdk", "ovs-kernel", "macvtap", "bridge", "channel", "vswitch-vm"];
    names.map(|name| Design::uniform(Datapath::named(name).unwrap(), Traffic::Chain, vnfs)).to_vec()
}
