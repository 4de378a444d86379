//! The pictures of a plan: as data, which pages, dashboard and terminal draw.

use super::{COMMON, SWITCH, answer, number};
use serde_json::Value;

#[test]
fn pictures_have_published_points_beside_the_model() {
    let section = answer(&[&COMMON[..], &SWITCH].concat());
    let figures = section["figures"].as_array().unwrap();
    let ids: Vec<&str> = figures.iter().map(|figure| figure["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["rate_over_sizes", "rate_over_vms", "cores_that_break_even", "gauges", "way_of_a_packet", "resources_used"]
    );
    let text = figures[1].to_string();
    assert!(text.contains("sriov of others") && text.contains("ovs-dpdk of others"), "{text}");
}

/// Hop by hop: a packet of a chain of VFs crosses PCIe twice for each VNF, one of a switched chain on the way in and out alone.
#[test]
fn the_way_of_a_packet_has_every_crossing_and_what_fills_each_hop() {
    let one = ["--vnfs", "4", "--size", "64", "--nic", "XL710"];
    let section = answer(&[&one[..], &SWITCH, &["--vnf-pps", "20 Mpps"]].concat());
    let figures = section["figures"].as_array().unwrap();
    let of = |id: &str| figures.iter().find(|figure| figure["id"] == id).unwrap();
    let flows = of("way_of_a_packet")["flows"].as_array().unwrap();
    let crossings: Vec<(&str, u64, usize)> = flows
        .iter()
        .map(|flow| {
            let hops = flow["hops"].as_array().unwrap();
            let crossed = hops.iter().map(|hop| hop["crossings"].as_u64().unwrap() * hop["count"].as_u64().unwrap());
            (flow["title"].as_str().unwrap().split([',', ':']).next().unwrap(), crossed.sum(), hops.len())
        })
        .collect();
    for expected in [("sriov", 8, 5), ("ovs-dpdk", 2, 5), ("sriov + 3 x ovs-dpdk + sriov", 2, 5)] {
        assert!(crossings.contains(&expected), "{crossings:?}");
    }
    // Each has a hop or a VNF that is full: what binds it.
    for flow in flows {
        let hops = flow["hops"].as_array().unwrap();
        let is_full = |hop: &Value| hop["fullness"] == "full" || hop["to"]["share"].as_f64() == Some(1.0);
        assert!(hops.iter().any(is_full), "{flow}");
        let ends = hops.windows(2).all(|pair| pair[0]["to"]["label"] == pair[1]["from"]["label"]);
        assert!(ends && hops[0]["from"]["label"] == "wire" && hops[4]["to"]["label"] == "wire", "{flow}");
    }
    let dials = of("gauges")["dials"][0]["gauges"].as_array().unwrap();
    assert_eq!(dials.len(), flows.len());
    for dial in dials {
        let (all, each) = (number(&dial["all"], "pps"), number(&dial["each"], "pps"));
        assert!((all - 4.0 * each).abs() < 1.0 && all <= number(&dial["ceiling"], "pps") + 1.0, "{dial}");
        assert!(
            (number(&dial["all"], "bits_per_s") - all * 512.0).abs() < 1e3,
            "bits of frames with their check sequence"
        );
    }
    assert!(of("gauges")["title"].as_str().unwrap().contains("frames with their check sequence, one direction"));
    // A long chain is folded, and crosses no less.
    let long = answer(&["--vnfs", "100", "--size", "64", "--nic", "XL710"]);
    let figure = long["figures"].as_array().unwrap().iter().find(|figure| figure["id"] == "way_of_a_packet").unwrap();
    let hops = figure["flows"][0]["hops"].as_array().unwrap();
    let crossed: u64 = hops.iter().map(|hop| hop["crossings"].as_u64().unwrap() * hop["count"].as_u64().unwrap()).sum();
    assert!(hops.len() < 9 && crossed == 200, "{hops:?}");
}
