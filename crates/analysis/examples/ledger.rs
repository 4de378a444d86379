//! Prints ledgers: scratch.
use kvmscope_analysis::shared::state::State;
use kvmscope_analysis::*;
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let recording = base::recording::Recording {
        root: ".".into(),
        created: None,
        tool: None,
        emulated: None,
        machines: vec![base::recording::Machine { id: "L0".into(), level: 0, parent: None, name: None }],
        parts: vec![base::recording::Part {
            path: file.into(),
            machine: "L0".into(),
            kind: base::recording::PartKind::TraceDat,
            clock: None,
            state: base::recording::PartState::Complete,
        }],
    };
    let input = Input::open(recording).unwrap();
    let options = Options { ignore_events: std::env::args().skip(2).collect(), ..Options::default() };
    let flow = flow::build::build(&mut Ask { input: &input, options: &options, progress: &mut |_, _| {} }).unwrap();
    for part in &flow.parts {
        println!("{:?} {:?} {:?} window {:?} events {}", part.seen, part.doubts, part.clock, part.window, part.events);
        println!("{:?}", part.losses);
        for vcpu in &part.vcpus {
            println!("{} {} tid {} wall {}", vcpu.vm, vcpu.vcpu, vcpu.tid, vcpu.sums.wall_ns());
            for (i, ns) in vcpu.sums.states_ns.iter().enumerate() {
                if *ns > 0 {
                    println!("   {:?} {ns}", State::of_index(i));
                }
            }
            let mut rows: Vec<_> = vcpu.sums.exits.iter().collect();
            rows.sort_by_key(|r| (r.0.0, std::cmp::Reverse(r.1.count)));
            for ((l, r), e) in rows {
                println!("   {} {} {} p50 {:?}", l.level(), r.name(), e.count, e.cost_ns.quantile(0.5));
            }
            for (r, c) in &vcpu.sums.chains {
                println!(
                    "   chain {} n {} cens {} int {} p50 {:?} p99 {:?} max {}",
                    r.name(),
                    c.count,
                    c.censored,
                    c.interrupted,
                    c.exits.quantile(0.5),
                    c.exits.quantile(0.99),
                    c.exits.max()
                );
            }
            println!("   {:?}", vcpu.sums.preemptors);
        }
    }
}
