//! The page: its bytes for a made-up answer, what hostile names become, and what a short page leaves out.

use crate::drawing::drawing;
use crate::sample;
use base::timeline::{Chain, Columns, Drawn, Lane, LaneKind, Marker, State, StateId, VcpuLane, WakeUps};
use base::{Level, Problem, Section, Span};
use kvmscope_show::html::{Error, MOST_BYTES, Page, render};
use kvmscope_show::json::Answered;
use kvmscope_show::json::timeline::{ChainRow, Timeline};

/// Two exits of L2, the second one dearer, under a VM of the given name.
fn drawn(vm: &str) -> Drawn {
    let state = |name: &str, title: &str| State { name: name.into(), title: title.into() };
    let mut timeline = Columns::new(vec![
        state("guest_l1", "L1 guest"),
        state("guest_l2", "L2 guest"),
        state("handling_l1", "L0 working for L1"),
        state("handling_l2", "L0 working for L2"),
    ]);
    let lane = Lane { kind: LaneKind::Vcpu, group: vm.into(), title: "vCPU 0".into(), tid: Some(98) };
    let lane = timeline.add_lane(lane);
    let mut chains = Vec::new();
    for (start, factor) in [(0u64, 1u64), (20_000, 3)] {
        timeline.push(lane, start, StateId(1), "");
        for (after, state, detail) in
            [(1_000, 3, "CPUID"), (1_500, 0, ""), (2_000, 2, "VMREAD"), (3_000, 0, ""), (3_500, 2, "VMRESUME")]
        {
            timeline.push(lane, start + after * factor, StateId(state), detail);
        }
        timeline.push(lane, start + 5_000 * factor, StateId(1), "");
        chains.push(Chain {
            lane,
            reason: "CPUID".into(),
            span: Span { from_ns: start + 1_000 * factor, to_ns: start + 5_000 * factor },
            exits: 2,
            sequence: ["VMREAD".into(), "VMRESUME".into()].into(),
            beyond: Vec::new(),
            interrupted: false,
            migrated: false,
            cost_ns: Some(4_000 * factor),
        });
    }
    timeline.end(lane, 40_000);
    timeline.markers.push(Marker { lane: None, at_ns: 10_000, label: format!("3 events lost on CPU 1 of {vm}") });
    let vcpus = vec![VcpuLane { vm: vm.into(), vcpu: 0, tid: 98 }];
    Drawn {
        host: Level::L0,
        timeline,
        chains,
        wakes: WakeUps::default(),
        wakers: Vec::new(),
        vcpus,
        notes: Vec::new(),
        cut: None,
    }
}

fn page(sections: &[Section], problems: &[Problem], drawn: &Drawn, most_bytes: u64) -> Result<String, Error> {
    let recording = sample::recording();
    let answered = Answered { recording: &recording, compared: &[], sections, problems };
    let rendered = render(&Page { answered, drawn: Some(&drawing(drawn)), most_bytes })?;
    for bound in &rendered.bounds {
        assert!(rendered.text.contains(bound.as_str()), "the page states it, too: {bound}");
    }
    Ok(rendered.text)
}

/// The page without what a build with the dashboard adds, and without its style, which is a file of its own.
fn without_program(page: &str) -> String {
    let mut page = page.to_owned();
    let mut cut = |from: &str, to: &str, instead: &str| {
        while let Some(begin) = page.find(from) {
            let end = begin + page[begin..].find(to).unwrap() + to.len();
            page.replace_range(begin..end, instead);
        }
    };
    cut("<style id=\"app-", "</style>\n", "");
    cut("<script>", "</script>\n", "");
    cut("style-src 'sha256-", "; base-uri", "style-src ...; base-uri");
    cut("<style", "</style>", "STYLE");
    page
}

#[test]
fn the_page_is_the_same_every_time() {
    let (sections, problems, drawn) = ([sample::section()], sample::problems(), drawn("nestv-98"));
    let first = page(&sections, &problems, &drawn, MOST_BYTES).unwrap();
    assert_eq!(first, page(&sections, &problems, &drawn, MOST_BYTES).unwrap());
    insta::assert_snapshot!("page", without_program(&first));
}

#[test]
fn names_of_others_are_text_and_stay_whole_in_the_data() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
    let mut section = sample::section();
    section.summary = evil.into();
    section.about.push(evil.into());
    section.next.push(evil.into());
    section.unknown[0].text = evil.into();
    let finding = &mut section.findings[0];
    (finding.title, finding.subject, finding.why) = (evil.into(), evil.into(), evil.into());
    finding.fix.push(evil.into());
    finding.evidence[0].what = evil.into();
    finding.evidence[0].place = evil.into();
    let cost = &mut finding.cost;
    cost.unit = evil.into();
    section.figures[0].title = evil.into();
    section.figures[0].caption = evil.into();
    for table in &mut section.tables {
        for row in &mut table.rows {
            row[0] = evil.into();
        }
        if let Some(shown) = &mut table.shown {
            shown.title = evil;
            let mut columns = shown.columns.to_vec();
            columns[0].1 = evil;
            shown.columns = columns.leak();
        }
    }
    let problems = [Problem::at(evil, 7, evil, evil, 1, evil)];
    let mut drawn = drawn(evil);
    drawn.chains[0].reason = evil.into();
    drawn.chains[0].sequence = [evil.into(), "VMRESUME".into()].into();
    let page = page(&[section], &problems, &drawn, MOST_BYTES).unwrap();
    assert!(!page.contains("<img") && !page.contains("<script>alert"));
    let data = page.find("<script type=\"application/json\" id=\"kvmscope-data\">").unwrap();
    assert_eq!(page[..data].matches("<script").count(), 0, "no script stands before the data");
    let json = &page[data..][page[data..].find('>').unwrap() + 1..];
    let json: serde_json::Value = serde_json::from_str(&json[..json.find("</script>").unwrap()]).unwrap();
    assert_eq!(json["report"]["sections"][0]["summary"], evil);
    assert_eq!(json["timeline"]["lanes"][0]["group"], evil);
    assert!(page.matches("&lt;/script&gt;&lt;script&gt;alert(1)").count() > 20);
}

#[test]
fn a_short_page_leaves_data_out_and_says_so() {
    let (sections, drawn) = ([sample::section()], drawn("nestv-98"));
    let whole = page(&sections, &[], &drawn, MOST_BYTES).unwrap();
    assert!(!whole.contains("Left out"));
    let short = page(&sections, &[], &drawn, whole.len() as u64 - 1).unwrap();
    assert!(
        short.len() < whole.len() && short.contains("Left out to keep the page short: individual chains"),
        "{short}"
    );
    let refused = page(&sections, &[], &drawn, 1_000).unwrap_err();
    assert!(refused.to_string().contains("more than --html-max allows"), "{refused}");
}

#[test]
fn findings_of_all_sections_are_one_list_and_what_a_cause_explains_is_below_it() {
    let mut host = sample::section();
    host.findings.truncate(1);
    (host.findings[0].rule, host.findings[0].explains) = ("PLC-OVERCOMMIT", vec!["FLW-PREEMPT@vCPU 0".into()]);
    let mut flow = sample::section();
    (flow.findings[0].severity, flow.findings[0].explains) = (base::Severity::Medium, Vec::new());
    let page = page(&[flow, host], &[], &drawn("nestv-98"), MOST_BYTES).unwrap();
    let list: Vec<&str> = page.split("<section id=\"findings\">").collect();
    let [_, list] = list[..] else { panic!("one list: {page}") };
    assert!(list.starts_with("\n<h2>Findings <span class=\"quiet\">1 high, 2 medium</span></h2>"), "{list}");
    let cards: Vec<&str> = list.split("<code class=\"rule\">").skip(1).map(|card| &card[..8]).collect();
    assert_eq!(cards, ["PLC-OVER", "FLW-PREE", "FLW-SHAD"], "the pre-empted vCPU before a finding that it ties with");
    let group = list.split("<div class=\"cause\">").nth(1).unwrap().split("</div>").next().unwrap();
    assert_eq!(group.matches("<article").count(), 2, "{group}");
}

/// The object of data on a page that is short enough to be read.
fn data(page: &str) -> serde_json::Value {
    let data = page.split("id=\"kvmscope-data\">").nth(1).unwrap();
    serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
}

#[test]
fn a_page_describes_lanes_and_chains_as_a_server_does() {
    let mut drawn = drawn("nestv-98");
    drawn.notes.push("L1's clock wanders.".into());
    let data = data(&page(&[sample::section()], &[], &drawn, MOST_BYTES).unwrap());
    assert_eq!(data["timeline"], serde_json::to_value(Timeline::of_drawn(&drawn)).unwrap());
    let chains = data["chains"].as_array().unwrap();
    assert_eq!(chains.len(), drawn.chains.len());
    for (id, (shown, chain)) in chains.iter().zip(&drawn.chains).enumerate() {
        let row = serde_json::to_value(ChainRow::of(id as u64, chain)).unwrap();
        row.as_object().unwrap().iter().for_each(|(key, value)| assert_eq!(shown[key], *value, "{key}"));
        assert_eq!(shown["slices"].as_array().unwrap().len(), 5, "those inside, none of those around");
    }
}

#[test]
fn lanes_beside_the_vcpus_are_shown_where_they_fit() {
    // Without figures the page's data is short enough to be read.
    let section = base::Section { figures: Vec::new(), ..sample::section() };
    let (sections, mut drawn) = ([section], drawn("nestv-98"));
    let without = page(&sections, &[], &drawn, MOST_BYTES).unwrap();
    assert!(!without.contains("Timeline of CPUs and other threads"));
    let lane = Lane { kind: LaneKind::Cpu, group: "host CPUs".into(), title: "CPU 0".into(), tid: None };
    let lane = drawn.timeline.add_lane(lane);
    drawn.timeline.push(lane, 0, StateId(1), "nestv (98)");
    drawn.timeline.end(lane, 40_000);
    drawn.notes.push("L1's clock <wanders>.".into());
    let whole = page(&sections, &[], &drawn, MOST_BYTES).unwrap();
    let shown = |page: &str| {
        (data(page)["timeline"]["lanes"].as_array().unwrap().len(), page.contains("Timeline of CPUs and other threads"))
    };
    assert_eq!(shown(&whole), (2, true));
    assert!(whole.contains("clock &lt;wanders&gt;") && !whole.contains("Left out"));
    let legend = |page: &str| page.split("class=\"legend\"").nth(1).unwrap().split("</ul>").next().unwrap().to_owned();
    assert_eq!(legend(&whole), legend(&without), "sums of vCPUs hold no CPU's time");
    let short = page(&sections, &[], &drawn, whole.len() as u64 - 1).unwrap();
    assert_eq!(shown(&short), (1, false));
    assert!(short.contains("Left out to keep the page short: the lanes of CPUs and other threads."), "{short}");
}
