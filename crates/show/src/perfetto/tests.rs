//! Every slice, arrow, chain and counter of the picture stands in the file: read back by us, and by Perfetto's protos.

use super::messages::{Trace, TracePacket};
use super::*;
use crate::witness::{FIXTURES, drawn, python};
use base::timeline::{Drawn, LaneKind, VcpuLane, WakeUps};
use base::{Level, Narrow};
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;

fn picture<'a>(drawn: &'a Drawn, narrow: &'a Narrow) -> Picture<'a> {
    Picture { drawn, emulated: None, narrow }
}

fn written(picture: &Picture<'_>, most: u64) -> (Fit, Vec<u8>) {
    let fit = picture.fit_all(most);
    let mut bytes = Vec::new();
    let said = write(&mut bytes, picture, &fit).unwrap();
    assert_eq!(said, counted(&bytes), "what is said is what is there");
    assert_eq!(said.slices - said.chains, fit.slices, "chains apart, what fits is there");
    (fit, bytes)
}

/// Slices that begin in a file, and those in category `chain`.
fn counted(bytes: &[u8]) -> Written {
    let (mut written, mut chain) = (Written { slices: 0, chains: 0 }, None);
    for packet in Trace::decode(bytes).unwrap().packet {
        let new = packet.interned_data.iter().flat_map(|data| &data.event_categories);
        chain = new.filter(|category| category.name == "chain").map(|category| category.iid).next().or(chain);
        let begun = packet.track_event.filter(|event| event.r#type == i32::from(EventType::SliceBegin));
        if let Some(event) = begun {
            written.slices += 1;
            written.chains += u64::from(chain.is_some_and(|iid| event.category_iids == [iid]));
        }
    }
    written
}

/// VM, vCPU, row, name, category, start, end of a slice.
type Row7 = (String, String, String, String, String, u64, u64);

/// Taken from the timeline itself.
fn expected(drawn: &Drawn) -> Vec<Row7> {
    let rows: BTreeMap<&str, &str> = [
        ("userspace", "VMM"),
        ("halted", "off CPU"),
        ("wake_delay", "off CPU"),
        ("preempted", "off CPU"),
        ("blocked", "off CPU"),
        ("unknown", "unknown"),
        ("guest_l1", "L1"),
        ("guest_l2", "L2"),
    ]
    .into();
    let timeline = &drawn.timeline;
    let mut all = Vec::new();
    for (place, lane) in timeline.lanes().iter().enumerate() {
        for slice in timeline.slices(LaneId(place as u32), timeline.span(), usize::MAX).slices {
            let (state, why) = (&timeline.states()[slice.state.0 as usize], timeline.detail(slice.id).unwrap().1);
            let name = if why.is_empty() { state.title.clone() } else { why.to_owned() };
            let row = rows.get(state.name.as_str()).unwrap_or(&"L0");
            let (group, title, row) = (lane.group.clone(), lane.title.clone(), (*row).to_owned());
            // Other lanes are tracks of their own, and say the state too, where it is none of a task's.
            let (title, row, name) = match (lane.kind, state.name.as_str(), why) {
                (LaneKind::Vcpu, ..) => (title, row, name),
                (_, "task", _) | (_, _, "") => (String::new(), title, name),
                _ => (String::new(), title, format!("{}: {why}", state.title)),
            };
            let category = match lane.kind {
                LaneKind::Vcpu => state.name.clone(),
                kind => format!("{}.{}", kind.name(), state.name),
            };
            all.push((group, title, row, name, category, slice.span.from_ns, slice.span.to_ns));
        }
    }
    all.sort();
    all
}

#[test]
fn perfettos_own_protos_read_every_slice_chain_and_arrow() {
    for name in FIXTURES {
        let drawn = drawn(name);
        let narrow = Narrow::default();
        let (fit, bytes) = written(&picture(&drawn, &narrow), MOST_SLICES);
        assert_eq!(fit.left_out, 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pftrace");
        std::fs::write(&path, bytes).unwrap();
        let Some(said) = python("decode_perfetto.py", "perfetto.protos", &[&path]) else { return };
        let said: Value = serde_json::from_slice(&said).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let slices = said["slices"].as_array().unwrap();
        let (chains, slices): (Vec<&Value>, Vec<&Value>) = slices.iter().partition(|slice| slice[2] == "chains");
        let row7 = |s: &&Value| {
            let (from_ns, to_ns) = (s[5].as_u64().unwrap(), s[6].as_u64().unwrap());
            (text(&s[0]), text(&s[1]), text(&s[2]), text(&s[3]), text(&s[4]), from_ns, to_ns)
        };
        let mut found: Vec<Row7> = slices.iter().map(row7).collect();
        found.sort();
        assert!(found == expected(&drawn), "{name}: {} slices, {} expected", found.len(), expected(&drawn).len());
        assert_eq!(fit.slices, found.len() as u64, "{name}");
        check_chains(&drawn, &chains, &said);
        check_counters(&drawn, &said);
    }
}

fn check_chains(drawn: &Drawn, chains: &[&Value], said: &Value) {
    let closed: Vec<_> = drawn.chains.iter().filter(|chain| chain.cost_ns.is_some()).collect();
    assert_eq!(chains.len(), closed.len());
    let mut expected: Vec<_> =
        closed.iter().map(|c| (c.span.from_ns, c.span.to_ns, c.reason.clone(), c.exits, c.cost_ns)).collect();
    let mut found: Vec<_> = chains
        .iter()
        .map(|c| {
            let (exits, cost_ns) = (c[7]["exits"].as_u64().unwrap(), c[7]["cost_ns"].as_u64());
            (c[5].as_u64().unwrap(), c[6].as_u64().unwrap(), c[3].as_str().unwrap().to_owned(), exits, cost_ns)
        })
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let arrows = said["arrows"].as_object().unwrap();
    for (number, chain) in drawn.chains.iter().enumerate().filter(|(_, chain)| chain.cost_ns.is_some()) {
        let ends = arrows[&(number + 1).to_string()].as_array().unwrap();
        let exit = ends.iter().find(|end| end[2] == chain.span.from_ns).unwrap();
        // By its own reason; the chain's is what its hypervisor is told, which may be an interrupt instead.
        assert_eq!(exit[0], "L0", "{chain:?}");
        let last: Vec<_> = ends.iter().filter(|end| end[3] == "last").collect();
        assert!(last.iter().all(|end| end[0] == "L2" && end[2] == chain.span.to_ns), "{last:?}");
        assert!(!last.is_empty() && ends.iter().any(|end| end[0] == "L1"), "{ends:?}");
    }
}

/// Shares add up to all of the time, exits to all that say why.
fn check_counters(drawn: &Drawn, said: &Value) {
    let counters = said["counters"].as_array().unwrap();
    let (from_ns, to_ns) = (drawn.timeline.span().from_ns, drawn.timeline.span().to_ns);
    let mut exits = 0.0;
    let mut shares = 0.0;
    for counter in counters {
        let samples: Vec<(u64, f64)> = serde_json::from_value(counter[3].clone()).unwrap();
        assert!(samples.windows(2).all(|pair| pair[0].1 != pair[1].1), "a number is said once, however long it stands");
        let ends = samples.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([to_ns]);
        let integral: f64 = samples.iter().zip(ends).map(|((at_ns, value), end)| value * (end - at_ns) as f64).sum();
        if counter[2] == "exits/s" { exits += integral / 1e9 } else { shares += integral / (to_ns - from_ns) as f64 }
    }
    let vms: std::collections::BTreeSet<_> = drawn.vcpus.iter().map(|vcpu| &vcpu.vm).collect();
    let own: Vec<Row7> = expected(drawn).into_iter().filter(|slice| vms.contains(&slice.0)).collect();
    let covered = own.iter().map(|slice| (slice.6 - slice.5) as f64).sum::<f64>();
    let whole = (to_ns - from_ns) as f64 * drawn.vcpus.len() as f64 / vms.len() as f64;
    if vms.len() == 1 {
        assert!((shares - 100.0 * covered / whole).abs() < 0.01, "{shares} %");
    }
    let with_reason = own.iter().filter(|slice| slice.4.starts_with("handling") && !slice.3.contains(' ')).count();
    assert!((exits - with_reason as f64).abs() < 0.5, "{exits} exits, {with_reason} slices");
}

/// Begin and end of slices, by our own decoder.
fn ends(bytes: &[u8]) -> Vec<TracePacket> {
    let trace = Trace::decode(bytes).unwrap();
    trace.packet.into_iter().filter(|packet| packet.track_event.is_some()).collect()
}

#[test]
fn what_is_written_reads_back_and_lies_in_the_window() {
    let drawn = drawn("nested-vmx-shadow-off-hog");
    let narrow = Narrow {
        window: Some(Span { from_ns: 100_000_000, to_ns: 200_000_000 }),
        level: Some(Level::At(2)),
        ..Narrow::default()
    };
    let picture = picture(&drawn, &narrow);
    let (fit, bytes) = written(&picture, MOST_SLICES);
    let packets = ends(&bytes);
    let begun = |packet: &&TracePacket| {
        let event = packet.track_event.as_ref().unwrap();
        event.r#type == i32::from(EventType::SliceBegin) && event.debug_annotations.is_empty()
    };
    assert_eq!(packets.iter().filter(begun).count() as u64, fit.slices, "chains apart, which have annotations");
    assert!(fit.slices > 100);
    assert!(packets.iter().all(|packet| (100_000_000..=200_000_000).contains(&packet.timestamp.unwrap())));
    let introduced = Trace::decode(bytes.as_slice()).unwrap().packet;
    let categories: Vec<String> = introduced
        .iter()
        .filter_map(|packet| packet.interned_data.as_ref())
        .flat_map(|data| data.event_categories.iter().map(|name| name.name.clone()))
        .collect();
    assert!(categories.iter().all(|name| ["guest_l2", "handling_l2", "chain"].contains(&name.as_str())));
}

#[test]
fn a_cap_ends_the_window_early_and_counts_what_is_left_out() {
    let drawn = drawn("nested-svm-toy");
    let narrow = Narrow::default();
    let picture = picture(&drawn, &narrow);
    let all = picture.fit_all(u64::MAX);
    let (fit, bytes) = written(&picture, 1_000);
    assert!((900..=1_000).contains(&fit.slices), "{fit:?}");
    assert_eq!(fit.slices + fit.left_out, all.slices);
    assert!(ends(&bytes).iter().all(|packet| packet.timestamp.unwrap() <= fit.window.to_ns));
}

#[test]
fn emulated_times_are_marked_in_every_vms_name() {
    let drawn = drawn("nested-svm-toy");
    let narrow = Narrow::default();
    let picture = Picture { emulated: Some("QEMU TCG"), ..picture(&drawn, &narrow) };
    let (_, bytes) = written(&picture, MOST_SLICES);
    let packets = Trace::decode(bytes.as_slice()).unwrap().packet;
    let processes: Vec<_> =
        packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.process.as_ref()).collect();
    assert!(!processes.is_empty());
    assert!(processes.iter().all(|process| process.process_name.contains("emulated by QEMU TCG")));
}

/// What docs/use/report.md tells to ask: the slices of a category sum to the vCPUs' column of that name, CPUs not counted again.
#[test]
fn a_states_slices_sum_to_the_ledgers_column() {
    let docs = include_str!("../../../../docs/use/report.md");
    assert!(docs.contains("from slice where category = 'handling_l1' group by name"), "the query that is tested here");
    for name in FIXTURES {
        let (drawn, section) = crate::witness::answered(name);
        let narrow = Narrow::default();
        let (_, bytes) = written(&picture(&drawn, &narrow), MOST_SLICES);
        let trace = Trace::decode(&bytes[..]).unwrap();
        let mut categories: BTreeMap<u64, String> = BTreeMap::new();
        let mut open: BTreeMap<u64, (String, u64)> = BTreeMap::new();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for packet in trace.packet {
            for new in packet.interned_data.iter().flat_map(|data| &data.event_categories) {
                categories.insert(new.iid, new.name.clone());
            }
            let (Some(event), Some(at_ns)) = (packet.track_event, packet.timestamp) else { continue };
            if event.r#type == i32::from(EventType::SliceBegin) {
                open.insert(event.track_uuid, (categories[&event.category_iids[0]].clone(), at_ns));
            } else if event.r#type == i32::from(EventType::SliceEnd) {
                let (category, from_ns) = open.remove(&event.track_uuid).unwrap();
                *sums.entry(category).or_default() += at_ns - from_ns;
            }
        }
        let vcpus = section.table("vcpus").unwrap();
        for state in drawn.timeline.states() {
            let column = format!("{}_ns", state.name);
            // The table has the vCPUs of guests' own traces too, whose time is in the lanes below.
            let drawn_too = |row: &usize| {
                let vm = vcpus.cell(*row, "vm");
                drawn.vcpus.iter().any(|of| vm == Some(&base::Cell::Text(of.vm.clone())))
            };
            let cells = (0..vcpus.rows.len()).filter(drawn_too).filter_map(|row| match vcpus.cell(row, &column) {
                Some(base::Cell::U64(ns)) => Some(*ns),
                _ => None,
            });
            let expected: u64 = cells.sum();
            assert_eq!(sums.get(&state.name).copied().unwrap_or(0), expected, "{name}: {}", state.name);
        }
        assert!(sums.keys().any(|category| category.starts_with("cpu.")), "{name}: CPUs are there, and apart");
    }
}

#[test]
fn names_do_not_mislead() {
    let mut drawn = drawn("nested-vmx-shadow-off-hog");
    let evil = "\u{202e}web\u{200b}\u{1b}[2J\u{2066}";
    drawn.vcpus.iter_mut().for_each(|vcpu| vcpu.vm = evil.into());
    drawn.chains.iter_mut().for_each(|chain| chain.sequence = [evil.to_owned()].into());
    drawn.chains[0].reason = evil.into();
    let lane = base::timeline::Lane { kind: LaneKind::Cpu, group: evil.into(), title: evil.into(), tid: None };
    let lane = drawn.timeline.add_lane(lane);
    drawn.timeline.push(lane, 0, base::timeline::StateId(0), evil);
    drawn.timeline.end(lane, 1_000);
    drawn.timeline.markers.push(base::timeline::Marker { lane: None, at_ns: 5, label: evil.into() });
    let (_, bytes) = written(&picture(&drawn, &Narrow::default()), MOST_SLICES);
    let file = String::from_utf8_lossy(&bytes);
    assert!(!file.contains(['\u{202e}', '\u{200b}', '\u{2066}']) && !file.contains("\u{1b}[2J"));
    assert!(file.matches("\u{fffd}web\u{fffd}\u{fffd}[2J\u{fffd}").count() >= 5);
}

#[test]
fn a_recording_of_one_event_is_a_file_without_a_slice() {
    let mut timeline = base::timeline::Columns::new(Vec::new());
    let lane = base::timeline::Lane { kind: LaneKind::Vcpu, group: "vm".into(), title: "vCPU 0".into(), tid: Some(1) };
    timeline.add_lane(lane);
    let vcpus = vec![VcpuLane { vm: "vm".into(), vcpu: 0, tid: 1 }];
    let drawn = Drawn {
        host: Level::L0,
        timeline,
        chains: Vec::new(),
        wakes: WakeUps::default(),
        wakers: Vec::new(),
        vcpus,
        notes: Vec::new(),
        cut: None,
    };
    let narrow = Narrow::default();
    let (fit, bytes) = written(&picture(&drawn, &narrow), MOST_SLICES);
    assert_eq!(fit.slices, 0);
    assert!(!Trace::decode(&bytes[..]).unwrap().packet.is_empty());
}

/// A drawing of the first slices alone says of them what one of everything says.
#[test]
fn a_bounded_drawing_is_the_begin_of_the_whole_one() {
    for name in ["nested-vmx-shadow-off-hog", "svm-linux"] {
        let narrow = Narrow::default();
        let (whole, first) = (drawn(name), crate::witness::drawn_first(name, &narrow, 3_000));
        let cut = first.cut.unwrap();
        assert!(cut.left_out > 0 && cut.at_ns < whole.timeline.span().to_ns);
        assert!(first.timeline.lanes().len() <= whole.timeline.lanes().len());
        let rows = |drawn: &Drawn| {
            let picture = picture(drawn, &narrow);
            let window = base::Span { from_ns: 0, to_ns: cut.at_ns };
            let lane = |lane: LaneId| {
                let row = |piece: Piece<'_>| {
                    let state = drawn.timeline.states()[usize::from(piece.state.0)].name.clone();
                    (lane, piece.span, state, piece.why.to_owned(), piece.cause.to_owned())
                };
                picture.pieces(lane, window).into_iter().map(row).collect::<Vec<_>>()
            };
            picture.lanes().into_iter().flat_map(lane).collect::<Vec<_>>()
        };
        assert!(rows(&first) == rows(&whole), "{name}");
        assert!(written(&picture(&first, &narrow), MOST_SLICES).0.left_out >= cut.left_out);
    }
}
