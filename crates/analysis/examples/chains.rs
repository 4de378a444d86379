//! How long does a plan of service chains take? 1 to 32 VMs, 12 sizes of frames and 7 datapaths: the rates alone, and the whole answer.
//!
//! `cargo run --release --example chains`. Prints the least and the middle of several runs, and their ratio to the bar; decides nothing.

use analysis::datapath::{self, Datapath, Design, HopCost, Known, Stated, StatedCard, StatedChain, quantity};
use analysis::{Case, Given};
use base::datapath::Traffic;
use base::recording::Recording;
use kvmscope_analysis as analysis;
use std::time::Instant;

/// What all rates may take.
const BAR_MS: f64 = 10.0;
const RUNS: usize = 21;
const VMS: u32 = 32;
const SIZES: [i64; 12] = [64, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1408, 1518];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hop = HopCost { cycles: 240.0, cycles_per_byte: 0.24, spread: 1.1, source: None };
    let designs =
        |vnfs| Datapath::ALL.into_iter().map(move |path| Design::uniform(path, Traffic::Chain, vnfs)).collect();
    let chain = |vnfs| StatedChain { vnfs, designs: designs(vnfs), must_migrate: false, card: 0, pattern: None };
    let stated = Stated {
        cards: vec![StatedCard { model: Some(Known::given("XL710".to_owned())), ..StatedCard::default() }],
        chains: (1..=VMS).map(chain).collect(),
        frames: SIZES.iter().map(|bytes| quantity::size(*bytes)).collect::<Result<_, _>>()?,
        pmd_cores: Some(Known::given(4)),
        hop: Some(Known::given(hop)),
        ..Stated::default()
    };
    let plan = stated.plan()?;
    let mut missed = 0;
    let of_rates = timed(|| {
        missed += usize::from(datapath::misses_target(&plan));
        Ok(())
    })?;
    let rates = VMS as usize * SIZES.len() * Datapath::ALL.len();
    println!("{VMS} lengths x {} sizes x {} paths: {rates} rates", SIZES.len(), Datapath::ALL.len());
    told("rates", of_rates);
    let mut rows = 0;
    let whole = timed(|| {
        let given = Given::query(plan.clone());
        let case = Case::new(analysis::open(Recording::of_nothing("chains"))?, given);
        let answer = datapath::answer(&case)?.ok_or("no answer")?;
        rows = answer.section.table("rates").map_or(0, |table| table.rows.len());
        Ok(())
    })?;
    told("the whole answer, with tables and figures", whole);
    if missed > 0 || rows != rates {
        return Err(format!("{rows} rows of {rates} rates, and a target that nobody set").into());
    }
    Ok(())
}

/// Milliseconds of each run, in order.
fn timed(
    mut run: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let mut all = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let began = Instant::now();
        run()?;
        all.push(began.elapsed().as_secs_f64() * 1e3);
    }
    all.sort_by(f64::total_cmp);
    Ok(all)
}

fn told(what: &str, all: Vec<f64>) {
    let (least, middle) = (all.first().copied().unwrap_or_default(), all.get(RUNS / 2).copied().unwrap_or_default());
    println!("  {what}: {middle:.2} ms (least {least:.2}), {:.2} of the bar", middle / BAR_MS);
}
