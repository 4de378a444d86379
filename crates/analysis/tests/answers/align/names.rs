//! A guest's System.map names what its kallsyms names, once the slide is found.

use super::linux::{align, whole};
use kvmscope_analysis::facts::align::symbols::{KERNEL, Symbols};
use kvmscope_analysis::facts::names::{GivenSymbols, halts, symbols};
use kvmscope_analysis::{Given, TraceHints};

#[test]
#[ignore = "torture"]
fn a_system_map_names_the_same_functions_as_kallsyms() {
    let Some(recording) = whole() else { return };
    let input = kvmscope_analysis::open(recording).unwrap();
    let alignment = align(&input, &[]);
    let text = input.parts[1].trace.kallsyms().unwrap();
    let address = |line: &str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
    let stext = text.lines().find(|line| line.ends_with(" _stext")).and_then(address).unwrap();
    let slide = stext - 0xffff_ffff_8100_0000;
    // Modules are not in a System.map; addresses of per-CPU data are not moved.
    let line = |line: &str| {
        let (at, rest) = (address(line).filter(|at| *at >= KERNEL)?, line.split_once(' ')?.1);
        (!line.contains('[')).then(|| format!("{:016x} {rest}\n", at - slide))
    };
    let map: String = text.lines().filter_map(line).collect();
    let map = GivenSymbols { machine: "L1".into(), file: "System.map".into(), text: map, slide: None };
    let given = Given { traces: TraceHints { symbols: vec![map], ..TraceHints::default() }, ..Given::default() };
    let found = symbols(&input, &given, &input.parts[1], &halts(&alignment)).unwrap().unwrap();
    let known = Symbols::parse(text).unwrap();
    let mut kernel = 0;
    for ((_, rip), (count, _)) in alignment.cpus.iter().flat_map(|cpu| &cpu.vcpu.sites) {
        let (found, known) = (found.name(*rip), known.name(*rip));
        if known.as_deref().is_none_or(|name| !name.contains('[')) {
            assert_eq!(found, known, "{rip:#x}");
            kernel += count;
        }
    }
    assert!(slide > 0 && kernel > 30_000, "moved by {slide:#x}, {kernel} exits");
}
