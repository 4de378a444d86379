use super::*;
use base::Level;
use base::datapath::{Books, DatapathRun, DatapathRuns, Poller, PollerCycles, RateBounds, StreamRun, Traffic};

/// SplitMix64, and normal numbers as sums of twelve.
struct Random(u64);

impl Random {
    fn normal(&mut self) -> f64 {
        let mut unit = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
        };
        (0..12).map(|_| unit()).sum::<f64>() - 6.0
    }
}

/// A trial that carried so many packets a second, bound by `bound`; a packet took 300 cycles of a thread that ran half of the time.
fn trial(vnfs: u32, size_bytes: u32, repeat: u32, pps: f64, bound: &str) -> DatapathRun {
    let cycles =
        PollerCycles { used: 6000, busy: 6000, packets: 10, batches: None, queues: 2 * vnfs + 1, refused_cycles: None };
    DatapathRun {
        design: "ovs-dpdk".into(),
        pattern: Traffic::Chain,
        vnfs,
        size_bytes,
        repeat,
        offered_pps: None,
        begin_ns: 0,
        traced_from_ns: None,
        window_ns: 1_000_000_000,
        window_error_ns: 0,
        window_sent: pps as u64,
        window_received: pps as u64,
        samples: Vec::new(),
        books: Books::default(),
        pollers: vec![Poller {
            name: "pmd".into(),
            tid: 1,
            cpu: 0,
            run_share: 0.5,
            wait_share: 0.0,
            cycles: Some(cycles),
        }],
        steal_share: None,
        interference: Vec::new(),
        bound_by: Some(bound.into()),
        cores: Some(1),
    }
}

fn bed(runs: Vec<DatapathRun>) -> Bed {
    let environment =
        [("cpu", "a"), ("Open vSwitch", "3.1.0")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let runs = DatapathRuns { runs, ..DatapathRuns::new(BTreeMap::from(environment)) };
    Bed { machine: "L0".into(), level: Level::L0, runs }
}

/// Trials of two lengths and two sizes whose rates spread by 4 %; those of two VNFs at 64 bytes are `factor` as fast.
fn recording(random: &mut Random, repeats: u32, factor: f64) -> Bed {
    let kinds = [(1, 64, 4e6), (1, 1518, 1.5e6), (2, 64, 2e6), (2, 1518, 0.8e6)];
    let of_kind = |(vnfs, size, pps): (u32, u32, f64)| {
        let (factor, bound) = if (vnfs, size) == (2, 64) && factor > 1.0 { (factor, "guest") } else { (1.0, "pmd") };
        (0..repeats)
            .map(|repeat| trial(vnfs, size, repeat, pps * factor * (1.0 + 0.04 * random.normal()), bound))
            .collect::<Vec<_>>()
    };
    bed(kinds.into_iter().flat_map(of_kind).collect())
}

fn verdicts(compared: &Compared) -> Vec<(String, u64, u64, String)> {
    let rates = compared.tables[0].rows().filter(|row| row.text("measure") == Some("chain_pps"));
    let text = |row: &base::table::Row<'_>, name| row.text(name).unwrap().to_owned();
    rates
        .map(|row| {
            let number = |name| row.number(name).unwrap() as u64;
            (text(&row, "design"), number("vnfs"), number("size_bytes"), text(&row, "verdict"))
        })
        .collect()
}

fn of(one: &Bed, two: &Bed) -> Compared {
    let [one, two] = [one, two].map(std::slice::from_ref);
    compared(&[one], &[two]).unwrap()
}

#[test]
fn the_same_configuration_is_not_said_to_have_changed() {
    const TRIALS: u32 = 200;
    let mut random = Random(3);
    let claims = (0..TRIALS).filter(|_| {
        let [one, two] = [(); 2].map(|()| recording(&mut random, 4, 1.0));
        !of(&one, &two).sentences[0].contains("none changed")
    });
    // One comparison of equals in twenty may claim something; 3.3 deviations more are 10.1 %.
    let claims = claims.count();
    assert!(claims as f64 / f64::from(TRIALS) <= 0.101, "{claims} of {TRIALS} comparisons of equals claim a change");
    let same = recording(&mut random, 4, 1.0);
    let compared = of(&same, &same);
    assert!(
        compared.differences.is_empty() && compared.sentences[1].contains("were the same"),
        "{:?}",
        compared.sentences
    );
}

#[test]
fn a_planted_change_is_found_where_it_is_and_said_with_what_bound_it() {
    let mut random = Random(5);
    let (one, two) = (recording(&mut random, 5, 1.0), recording(&mut random, 5, 1.5));
    let compared = of(&one, &two);
    let all = verdicts(&compared);
    assert_eq!(all[0], ("ovs-dpdk".to_owned(), 2, 64, "higher".to_owned()), "what is certain stands first");
    assert!(all[1..].iter().all(|(.., verdict)| verdict == "noise could explain it"), "{all:?}");
    let (said, told) = (&compared.sentences[0], &compared.sentences[1]);
    assert_eq!(said, "Of 8 rates and costs of datapaths, 1 changed by more than repeats differ.");
    assert!(told.starts_with("ovs-dpdk, chain of 2 VNFs, 64 bytes: 1."), "{told}");
    assert!(told.contains(" times the packets (1."), "{told}");
    assert!(told.ends_with("bound by pmd before, by guest after."), "{told}");
}

#[test]
fn two_repeats_a_side_are_said_to_be_too_few_however_far_apart() {
    let mut random = Random(7);
    let (one, two) = (recording(&mut random, 2, 1.0), recording(&mut random, 2, 10.0));
    let compared = of(&one, &two);
    assert!(verdicts(&compared).iter().all(|(.., verdict)| verdict == "too few"));
    assert!(
        compared.sentences[0].contains("2 repeats a side at most: no difference can be told"),
        "{:?}",
        compared.sentences
    );
}

#[test]
fn several_recordings_are_a_sample_each() {
    let mut random = Random(11);
    let [before, after] = [1.0, 2.0].map(|factor| [(); 3].map(|()| recording(&mut random, 2, factor)));
    let [before, after] = [&before, &after].map(|side| side.iter().map(std::slice::from_ref).collect::<Vec<_>>());
    let compared = compared(&before, &after).unwrap();
    let row = compared.tables[0].rows().next().unwrap();
    assert_eq!((row.text("verdict"), row.number("before_samples")), (Some("higher"), Some(3.0)));
    assert!(
        compared.unknown.is_empty() && compared.sentences[0].contains("recordings differ"),
        "{:?}",
        compared.sentences
    );
}

#[test]
fn what_one_side_alone_has_is_named_and_so_is_another_version() {
    let mut one = bed((0..3).map(|repeat| trial(1, 64, repeat, 1e6, "pmd")).collect());
    one.runs.environment.insert("Open vSwitch".into(), "3.3.0".into());
    let two =
        bed((0..3).flat_map(|repeat| [trial(1, 64, repeat, 1e6, "pmd"), trial(8, 64, repeat, 1e5, "pmd")]).collect());
    let compared = of(&one, &two);
    let said = compared.sentences.join(" ");
    assert!(said.contains("Measured after alone, so not compared: ovs-dpdk, chain of 8 VNFs, 64 bytes."), "{said}");
    assert!(said.contains("differ in Open vSwitch (3.3.0 before, 3.1.0 after), which may explain"), "{said}");
    assert_eq!(verdicts(&compared).last().unwrap().3, "only after");
    let nothing = bed(Vec::new());
    assert!(super::compared(&[std::slice::from_ref(&one)], &[std::slice::from_ref(&nothing)]).is_none());
}

#[test]
fn bounds_are_apart_or_not_and_messages_are_no_frames() {
    let found = |lower_pps, upper_pps| RateBounds {
        design: "veth".into(),
        vnfs: 1,
        size_bytes: 64,
        method: "mlrsearch".into(),
        goal: "ndr".into(),
        loss_ratio: 0.0,
        lower_pps,
        upper_pps,
        ended: String::new(),
        trials: 9,
        discarded: 0,
    };
    let stream = StreamRun {
        path: "veth".into(),
        vnfs: 1,
        message_bytes: 64,
        repeat: 0,
        gbps: 3.0,
        sender_cpu_s_per_gb: 0.5,
        receiver_cpu_s_per_gb: 0.5,
        retransmits: 0,
    };
    let with = |lower, upper| {
        let mut bed = bed(vec![trial(1, 64, 0, 1e6, "pmd")]);
        bed.runs.bounds = vec![found(lower, upper)];
        bed.runs.streams = vec![stream.clone()];
        bed
    };
    let verdict =
        |one: &Bed, two: &Bed| of(one, two).tables[1].rows().next().unwrap().text("verdict").unwrap().to_owned();
    let before = with(Some(100), Some(110));
    for (after, expected) in [
        (with(Some(120), None), "above"),
        (with(Some(80), Some(90)), "below"),
        (with(Some(105), Some(115)), "overlap"),
        (with(Some(105), None), "open"),
    ] {
        assert_eq!(verdict(&before, &after), expected);
    }
    let compared = of(&before, &before);
    let row = compared.tables[0].rows().find(|row| row.text("measure") == Some("stream_gbps")).unwrap();
    assert_eq!((row.number("message_bytes"), row.number("size_bytes")), (Some(64.0), None));
}
