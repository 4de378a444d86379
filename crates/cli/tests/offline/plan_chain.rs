//! `kvmscope plan chain` as its users meet it.

use crate::program;

mod calibrated;
mod pictures;

use serde_json::Value;

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    program::kvmscope(&[&["plan", "chain"], arguments].concat())
}

fn answer(arguments: &[&str]) -> Value {
    let (code, out, complaints) = kvmscope(&[&["--json"], arguments].concat());
    assert!([0, 3].contains(&code) && complaints.is_empty(), "{code}: {complaints}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["sections"][0]["id"], "datapath");
    answer["sections"][0].clone()
}

/// A table of the answer, each row as an object.
fn table(arguments: &[&str], name: &str) -> Vec<Value> {
    let section = answer(arguments);
    let table = &section["tables"][name];
    let names: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let object = |row: &Value| {
        names.iter().map(|name| (*name).to_owned()).zip(row.as_array().unwrap().iter().cloned()).collect()
    };
    table["rows"].as_array().unwrap().iter().map(object).collect()
}

fn row<'a>(rows: &'a [Value], design: &str, vnfs: u64) -> &'a Value {
    rows.iter().find(|row| row["design"] == design && row["vnfs"] == vnfs).unwrap_or_else(|| panic!("no {design}"))
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"))
}

const COMMON: [&str; 6] = ["--vnfs", "4,8", "--size", "64", "--nic", "XL710"];
const SWITCH: [&str; 6] = ["--hop", "234.64+0.24", "--pmd-cores", "9", "--ghz", "2.2"];

#[test]
fn a_chain_of_vfs_is_bound_by_the_card_whatever_its_length() {
    let rows = table(&COMMON, "rates");
    for vnfs in [4, 8] {
        let vfs = row(&rows, "sriov", vnfs);
        assert_eq!((&vfs["bound_by"], &vfs["runner_up"]), (&"nic".into(), &"pcie".into()));
        assert!((number(vfs, "system_pps") - 18.5e6).abs() < 1.0);
        assert!((number(vfs, "gbps") - 18.5e6 * 64.0 * 8.0 / 1e9).abs() < 1e-6);
        assert!(
            number(vfs, "low_pps") < number(vfs, "chain_pps") && number(vfs, "chain_pps") < number(vfs, "high_pps")
        );
        assert_eq!((&vfs["migratable"], &vfs["kind"]), (&false.into(), &"modelled".into()));
    }
}

#[test]
fn the_talks_conclusion_comes_out_of_first_principles() {
    let chains = table(&[&COMMON[..], &SWITCH].concat(), "rates");
    let pps = |rows: &[Value], design: &str| number(row(rows, design, 8), "system_pps");
    assert!(pps(&chains, "ovs-dpdk") > 2.0 * pps(&chains, "sriov"), "the switch wins east-west");
    let switched = number(row(&chains, "ovs-dpdk", 8), "chain_pps");
    assert_eq!(switched, number(row(&chains, "ovs-dpdk", 4), "chain_pps"), "a thread for each hop");
    let north_south = table(&[&COMMON[..], &SWITCH, &["--pattern", "north-south"]].concat(), "rates");
    assert!(pps(&north_south, "sriov") > 2.0 * pps(&north_south, "ovs-dpdk"), "VFs win north-south");
}

#[test]
fn a_switch_that_nobody_measured_has_a_bound_and_a_finding() {
    let section = answer(&COMMON);
    let rules: Vec<&str> =
        section["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["DTP-CALIBRATE"]);
    let rows = table(&COMMON, "rates");
    let switch = row(&rows, "ovs-dpdk", 8);
    assert_eq!((&switch["kind"], &switch["chain_pps"]), (&"published costs, not calibrated".into(), &Value::Null));
    // 255 to 895 cycles, 9 hops of one thread at 2.2 GHz.
    let ends = ["low_pps", "high_pps"].map(|end| 2.2e9 / 9.0 / number(switch, end));
    assert!((ends[0] - 895.0).abs() < 1e-6 && (ends[1] - 255.0).abs() < 1e-6, "{ends:?}");
    for design in ["ovs-kernel", "macvtap", "bridge", "channel", "vswitch-vm"] {
        let bound = row(&rows, design, 8);
        assert_eq!((&bound["kind"], &bound["low_pps"]), (&"bound, not calibrated".into(), &Value::Null), "{design}");
        assert_eq!((&bound["chain_pps"], &bound["system_pps"]), (&Value::Null, &Value::Null), "no rate: {design}");
        assert!(number(bound, "high_pps") > 36e6, "{design}");
    }
    let cores = table(&COMMON, "breakeven");
    let of_8: Vec<f64> = cores
        .iter()
        .filter(|row| row["question"] == "pmd_cores" && row["vnfs"] == 8)
        .map(|row| number(row, "value"))
        .collect();
    assert_eq!(of_8.iter().map(|cores| (cores * 10.0).round()).collect::<Vec<_>>(), [24.0, 52.0, 85.0]);
}

/// The talk's conclusions, of a plan that states nothing but length, size and card.
#[test]
fn the_default_answer_has_both_patterns_all_designs_and_who_wins_where() {
    let asked = ["--vnfs", "8", "--size", "64", "--nic", "XL710"];
    let section = answer(&asked);
    let summary = section["summary"].as_str().unwrap();
    for said in [
        "8 VNFs at 64 bytes: in and out of the VMs (north-south) SR-IOV wins: 36.10 Mpps (18.48 Gb/s) without a polling CPU",
        "Through the chain (east-west) OVS-DPDK wins from 3 to 9 polling CPUs on",
        "those of SR-IOV 18.50 Mpps (9.47 Gb/s) whatever their number",
        "with 7 polling CPUs instead of 9",
        "At 1518 bytes SR-IOV sends 43.8 Gb/s at any length",
        "A VM with a VF is not moved",
    ] {
        assert!(summary.contains(said), "{said}: {summary}");
    }
    let rows = table(&asked, "designs");
    let of = |pattern: &str, design: &str, bytes: u64| {
        let is = |row: &&Value| row["pattern"] == pattern && row["design"] == design && row["size_bytes"] == bytes;
        rows.iter().filter(is).collect::<Vec<_>>()
    };
    let flat = of("chain", "sriov", 1518);
    assert_eq!(flat.iter().map(|row| row["vnfs"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 4, 8]);
    assert!(flat.iter().all(|row| (number(row, "gbps") - 43.84).abs() < 0.01 && row["bound_by"] == "pcie"), "{flat:?}");
    for (pattern, design, cores, moves) in [
        ("north-south", "ovs-dpdk", [2, 2, 2], true),
        ("chain", "ovs-dpdk", [3, 5, 9], true),
        ("chain", "vf ends, ovs-dpdk", [1, 3, 7], false),
        ("chain", "sriov", [0, 0, 0], false),
    ] {
        let rows = of(pattern, design, 64);
        assert_eq!(rows.iter().map(|row| row["cores"].as_u64().unwrap()).collect::<Vec<_>>(), cores, "{design}");
        assert!(rows.iter().all(|row| row["migratable"] == moves), "{design}");
    }
    // What nobody measured on this host is a range and no rate.
    let switch = |rows: &[Value]| {
        let is = |row: &&Value| row["pattern"] == "chain" && row["design"] == "ovs-dpdk" && row["vnfs"] == 8;
        rows.iter().find(is).unwrap().clone()
    };
    let width = |row: &Value| number(row, "high_gbps") / number(row, "low_gbps");
    let (published, own) = (switch(&rows), switch(&table(&[&asked[..], &["--hop", "240+0.24"]].concat(), "designs")));
    assert_eq!((&published["gbps"], &published["kind"]), (&Value::Null, &"published costs, not calibrated".into()));
    assert!(width(&published) > 3.0 && width(&own) < 1.3 && number(&own, "gbps") > 0.0, "{own}");
    assert!(number(&published, "low_gbps") > 9.48, "already the dearest hop beats VFs with a thread for each");
    let kernel = of("north-south", "ovs-kernel", 64);
    assert_eq!(kernel[0]["kind"], "published rates");
    let one = table(&[&asked[..], &["--pattern", "chain"]].concat(), "designs");
    assert!(one.iter().all(|row| row["pattern"] == "chain"));
    let fixed = table(&[&asked[..], &["--pmd-cores", "4"]].concat(), "designs");
    assert!(fixed.iter().filter(|row| row["design"] == "ovs-dpdk").all(|row| row["pmd_cores"] == 4));
}

/// A card whose hairpins share a port carries less in longer chains, and one whose limit nobody knows has no more than a bound.
#[test]
fn what_is_not_so_of_every_card_is_not_said_of_it() {
    let summary = |nic: &[&str]| {
        let section = answer(&[&["--vnfs", "4"], nic].concat());
        section["summary"].as_str().unwrap().to_owned()
    };
    let shared = summary(&["--size", "1518", "--nic", "E810-XXV"]);
    assert!(
        shared.contains("(hairpin)") && !shared.contains("whatever their number") && !shared.contains("any length"),
        "{shared}"
    );
    let unknown = summary(&["--size", "256", "--nic", "own", "--link", "100G", "--pcie", "4x16"]);
    assert!(unknown.contains("sriov carries no more than 45.29 Mpps") && !unknown.contains("wins"), "{unknown}");
}

/// What fits a terminal of 100 columns has rates, bits and cores in it.
#[test]
fn the_comparison_fits_a_terminal() {
    let (_, out, _) = kvmscope(&["--vnfs", "8", "--size", "64", "--nic", "XL710"]);
    let line = out.lines().find(|line| line.trim_start().starts_with("1518   sriov") && line.contains("43.8")).unwrap();
    assert!(line.split_whitespace().eq(["1518", "sriov", "43.8", "43.8", "43.8", "3.61", "0", "pcie", "no"]), "{line}");
    assert!(
        out.lines().all(|line| line.chars().count() <= 100 || line.contains("   # ") || line.contains("#")),
        "{out}"
    );
}

/// What makes hops dearer takes the rate of the switch down, and that of VFs not.
#[test]
fn flows_tracking_tunnels_and_loss_cost_the_switch_what_was_published() {
    let given = ["--vnfs", "4", "--size", "64", "--nic", "XL710", "--hop", "240+0.24", "--pmd-cores", "9"];
    let of = |more: &[&str]| {
        let rows = table(&[&given[..], more].concat(), "rates");
        let [switch, vfs] = ["ovs-dpdk", "sriov"].map(|design| row(&rows, design, 4).clone());
        (
            number(&switch, "chain_pps"),
            number(&switch, "high_pps") / number(&switch, "low_pps"),
            number(&vfs, "chain_pps"),
        )
    };
    let (plain, width, vfs) = of(&[]);
    for (more, least, most) in [
        (&["--flows", "100k"][..], 1.5, 3.7),
        (&["--flows", "1k", "--megaflows", "1k"], 2.0, 2.2),
        (&["--conntrack"], 2.0, 4.5),
        (&["--remote-node"], 1.0, 2.0),
        (&["--vxlan"], 1.9, 2.1),
        (&["--loss-free"], 1.2, 1.3),
    ] {
        let (pps, wider, same) = of(more);
        assert!((least..=most).contains(&(plain / pps)), "{more:?}: {plain} {pps}");
        assert!(wider >= width - 1e-9 && (same == vfs || more[0] == "--remote-node"), "{more:?}: {wider} {width}");
    }
    let assumptions = table(&[&given[..], &["--flows", "100k"]].concat(), "assumptions");
    assert!(
        assumptions.iter().any(|row| row["what"] == "a hop with so many flows" && row["value"] == "1.64 to 3.69 times"),
        "{assumptions:?}"
    );
    // Two queues of a port and of each VM let more threads help.
    let threads = |more: &[&str]| {
        let rows = table(
            &[&["--vnfs", "2", "--size", "64", "--nic", "XL710", "--pattern", "north-south"], more].concat(),
            "designs",
        );
        rows.iter().find(|row| row["design"] == "ovs-dpdk").unwrap()["pmd_cores"].as_u64().unwrap()
    };
    assert_eq!((threads(&[]), threads(&["--queues", "2"])), (2, 4));
    let both = table(&[&given[..], &["--directions", "2"]].concat(), "rates");
    assert!(number(row(&both, "ovs-dpdk", 4), "chain_pps") >= plain, "both ways together");
}

#[test]
fn power_and_price_are_those_of_the_cores() {
    let given = ["--vnfs", "8", "--size", "64", "--nic", "XL710", "--core-watts", "9", "--core-price", "100"];
    let rows = table(&given, "designs");
    let switch =
        rows.iter().find(|row| row["pattern"] == "chain" && row["design"] == "ovs-dpdk" && row["vnfs"] == 8).unwrap();
    assert_eq!((number(switch, "watts"), number(switch, "price")), (81.0, 900.0));
    assert!(table(&COMMON, "designs").iter().all(|row| row["watts"].is_null()));
}

/// Cards of today are in the list, and any other one is planned from its data sheet.
#[test]
fn a_card_is_of_the_list_or_of_a_data_sheet() {
    let bound = |nic: &str, size: &str| {
        let rows = table(&["--vnfs", "4", "--size", size, "--nic", nic, "--datapath", "sriov"], "rates");
        (rows[0]["bound_by"].as_str().unwrap().to_owned(), rows[0]["kind"].as_str().unwrap().to_owned())
    };
    for nic in ["E810-XXV", "connectx-5", "ConnectX-6-Dx", "ConnectX-7"] {
        assert_eq!(bound(nic, "1518").1, "modelled", "{nic}");
    }
    assert_eq!(bound("E810-XXV", "1518").0, "hairpin", "VF to VF no faster than the port");
    assert_eq!(bound("ConnectX-6", "64").1, "bound, not calibrated");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    let sheet = "schema = \"kvmscope.nic/1\"\nmodel = \"own\"\nlink = \"40G\"\npcie = { gen = 3, lanes = 8 }\npps = \"37 Mpps\"\n\
        pps_below = 160\nbetween_vfs = \"counts-twice\"\nsource = \"sheet, page 3\"\n";
    std::fs::write(&file, sheet).unwrap();
    let given = ["--vnfs", "8", "--size", "64", "--nic", file.to_str().unwrap(), "--datapath", "sriov"];
    assert!((number(&table(&given, "rates")[0], "system_pps") - 18.5e6).abs() < 1.0, "as the XL710");
    let assumptions = table(&given, "assumptions");
    let limit = assumptions.iter().find(|row| row["what"] == "packet limit of own").unwrap();
    assert_eq!(limit["from"], "sheet, page 3");
    std::fs::write(&file, sheet.replace("pps_below", "pps_bellow")).unwrap();
    let (code, _, complaints) = kvmscope(&given);
    assert!(code == 2 && complaints.contains("own.toml:6:1: a card has no key `pps_bellow`"), "{complaints}");
}

#[test]
fn a_missed_target_is_a_finding_and_the_exit_status() {
    let with = |target: &str| kvmscope(&[&COMMON[..], &SWITCH, &["--target", target]].concat());
    assert_eq!(with("3 Mpps").0, 0);
    let (code, out, _) = with("30 Mpps");
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("DTP-TARGET"), "{out}");
    // VFs carry it, and may not.
    let only = ["--vnfs", "2", "--size", "64", "--nic", "XL710", "--datapath", "sriov", "--target", "5 Mpps"];
    assert_eq!(kvmscope(&only).0, 0);
    assert_eq!(kvmscope(&[&only[..], &["--must-migrate"]].concat()).0, 3);
}

#[test]
fn a_plan_ends_with_how_far_to_trust_it() {
    let (_, out, _) = kvmscope(&COMMON);
    let last = out.lines().last().unwrap();
    assert!(last.contains("47 of 51 published results lie inside the predicted band, median width 1."), "{out}");
}

#[test]
fn an_unknown_card_has_bounds_only() {
    let given = ["--vnfs", "4", "--size", "512", "--nic", "own", "--link", "100G", "--pcie", "5x16"];
    let rows = table(&given, "rates");
    let vfs = row(&rows, "sriov", 4);
    assert_eq!(
        (&vfs["kind"], &vfs["low_pps"], &vfs["bound_by"]),
        (&"bound, not calibrated".into(), &Value::Null, &"pcie".into())
    );
    let (_, out, _) = kvmscope(&given);
    assert!(out.contains("NIC limit unknown"), "{out}");
}

const PLAN: &str = r#"
schema = "kvmscope.chain/1"
[host]
pmd_cores = "search"
core_hz = 2.2e9
[nic.wan]
model = "XL710"
[traffic]
sizes = [64]
imix = "64:7,594:4,1518:1"
target = "5 Mpps"
[[chain]]
vnfs = 8
must_migrate = true
[calibration]
ovs = { source = "lab:recording", c0 = 240.0, c1 = 0.24 }
vnf_pps = "8 Mpps"
"#;

#[test]
fn a_file_is_planned_and_searched_and_its_errors_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    std::fs::write(&file, PLAN).unwrap();
    let path = file.to_str().unwrap();
    let rows = table(&[path], "rates");
    let of_64: Vec<&Value> = rows.iter().filter(|row| row["size_bytes"] == 64).collect();
    assert!(of_64.iter().all(|row| row["migratable"] == true), "VFs are no choice: {of_64:?}");
    let pairs: Vec<(f64, f64)> = of_64.iter().map(|row| (number(row, "chain_pps"), number(row, "cores"))).collect();
    assert!(pairs.windows(2).all(|pair| pair[0].0 > pair[1].0 && pair[0].1 > pair[1].1), "{pairs:?}");
    let mixed = rows.iter().find(|row| row["mix"] == "64:7,594:4,1518:1").unwrap();
    assert_eq!(mixed["size_bytes"], Value::Null);
    let assumed = table(&[path], "assumptions");
    let from = |what: &str| &assumed.iter().find(|row| row["what"].as_str().unwrap().contains(what)).unwrap()["from"];
    assert_eq!((from("hop of"), from("VNF")), (&"lab:recording".into(), &"assumed".into()));
    assert_eq!(kvmscope(&[path]).0, 0);
    std::fs::write(&file, PLAN.replace("5 Mpps", "9 Mpps")).unwrap();
    assert_eq!(kvmscope(&[path]).0, 3, "VNFs forward 8 Mpps");
    std::fs::write(&file, PLAN.replace("sizes = [64]", "size = [64]")).unwrap();
    let (code, _, complaints) = kvmscope(&[path]);
    assert_eq!(code, 2);
    assert!(complaints.contains("chain.toml:9:1: traffic has no key `size`; did you mean `sizes`?"), "{complaints}");
}

/// Two chains through one card get half of it each.
#[test]
fn chains_of_a_file_share_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    let chain = "[[chain]]\nvnfs = 4\ndatapath = \"sriov\"\n";
    let head = "schema = \"kvmscope.chain/1\"\n[nic.a]\nmodel = \"XL710\"\n[traffic]\nsizes = [64]\n";
    let pps = |chains: usize| {
        std::fs::write(&file, format!("{head}{}", chain.repeat(chains))).unwrap();
        number(&table(&[file.to_str().unwrap()], "rates")[0], "chain_pps")
    };
    assert!((pps(1) - 2.0 * pps(2)).abs() < 1.0);
}

/// A tree with one XL710 behind a bridge of smaller payloads.
#[test]
fn a_snapshot_gives_the_card_its_link_and_its_payload() {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, bytes: &[u8]| {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let space = |payload: u8| {
        let mut space = vec![0_u8; 256];
        (space[0x34], space[0x40], space[0x48], space[0x49]) = (0x40, 0x10, payload << 5, 2 << 4);
        space
    };
    let of = |address: &str, file: &str| format!("sys/bus/pci/devices/{address}/{file}");
    for (file, text) in [
        ("class", "0x020000"),
        ("vendor", "0x8086"),
        ("device", "0x1583"),
        ("current_link_speed", "8.0 GT/s PCIe"),
        ("current_link_width", "8"),
    ] {
        write(&of("0000:3b:00.0", file), text.as_bytes());
    }
    write(&of("0000:3b:00.0", "config"), &space(2));
    write(&of("0000:3a:00.0", "config"), &space(1));
    write("proc/cmdline", b"intel_iommu=on iommu=pt");
    write("sys/class/iommu/dmar0/intel-iommu/version", b"1:0");
    let link = r#"{"sys/bus/pci/devices/0000:3b:00.0": "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"}"#;
    write("links.json", link.as_bytes());
    let path = root.path().to_str().unwrap();
    let given = ["--vnfs", "8", "--size", "1518", "--snapshot", path];
    let vfs = table(&given, "rates");
    let gbps = number(row(&vfs, "sriov", 8), "gbps");
    assert!((gbps - 48.3).abs() < 0.05, "a payload of 256 bytes, not of 512: {gbps}");
    let values = table(&given, "assumptions");
    let value = |what: &str| &values.iter().find(|row| row["what"].as_str().unwrap().contains(what)).unwrap()["value"];
    assert_eq!(value("largest PCIe payload"), "256 bytes");
    assert_eq!(value("IOMMU"), "passes the host's own accesses through");
    // A plan in a file says the same with the directory beside it, and an error has its place.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    let plan = |card: &str| {
        let head = "schema = \"kvmscope.chain/1\"\n[traffic]\nsizes = [1518]\n[[chain]]\nvnfs = 8\n";
        std::fs::write(&file, format!("{head}[nic.a]\n{card}\n")).unwrap();
        file.to_str().unwrap()
    };
    std::os::unix::fs::symlink(root.path(), folder.path().join("host")).unwrap();
    let of_file = table(&[plan("snapshot = \"host\"")], "rates");
    assert_eq!(row(&of_file, "sriov", 8)["gbps"], row(&vfs, "sriov", 8)["gbps"]);
    for (card, expected) in [
        ("snapshot = \"nowhere\"", "chain.toml:7:12: snapshot: "),
        (
            "snapshot = \"host\"\nmodel = \"X710\"",
            "chain.toml:7:12: snapshot: name one of its cards, by its address, interface or model: 0000:3b:00.0 (XL710)",
        ),
        (
            "snapshot = \"host\"\npcie = { gen = 3, lanes = 8 }",
            "chain.toml:8:8: pcie: the link is read from the snapshot already",
        ),
    ] {
        let (code, _, complaints) = kvmscope(&[plan(card)]);
        assert!(code == 2 && complaints.contains(expected), "{complaints}");
    }
    let (code, _, complaints) = kvmscope(&[&given[..], &["--nic", "X710"]].concat());
    assert_eq!(code, 2);
    assert!(complaints.contains("0000:3b:00.0 (XL710)"), "{complaints}");
}

#[test]
fn a_larger_payload_is_what_long_frames_of_vfs_gain_from() {
    let moved = table(&["--vnfs", "8", "--size", "1518", "--nic", "XL710", "--datapath", "sriov"], "sensitivity");
    let payload = moved.iter().find(|row| row["change"] == "a PCIe payload of 256 bytes").unwrap();
    // 48.33 Gb/s instead of 43.84.
    assert!((number(payload, "gain") - 0.1024).abs() < 0.001, "{payload}");
    assert!(moved.iter().all(|row| row["change"] != "a card of twice the packets"), "packets do not bind: {moved:?}");
}

#[test]
fn wrong_use_says_what_to_write() {
    let refused = |arguments: &[&str], word: &str| {
        let (code, _, complaints) = kvmscope(arguments);
        assert_eq!(code, 2, "{complaints}");
        assert!(complaints.contains(word), "{complaints}");
    };
    refused(&[], "--vnfs 8 --size 64 --nic XL710");
    refused(&["--vnfs", "8", "--size", "64", "--nic", "XL701"], "did you mean `XL710`?");
    refused(&["--vnfs", "8", "--size", "65536", "--nic", "XL710"], "netperf");
    refused(&["--vnfs", "8", "--size", "64", "--nic", "XL710", "--datapath", "sr-iov"], "did you mean `sriov`?");
    refused(&["--vnfs", "8", "--size", "64", "--nic", "XL710", "--target", "5"], "unit");
}

#[test]
fn vnfs_that_share_cpus_bind_a_chain_and_are_named_with_their_source() {
    let given = ["--vnfs", "4,8", "--size", "64", "--nic", "XL710", "--datapath", "ovs-dpdk"];
    let given = [&given[..], &["--hop", "240+0.24", "--pmd-cores", "9", "--vnf", "468+0.5", "--ghz", "2"]].concat();
    let pps = |cores: &[&str], vnfs| {
        let rates = table(&[&given[..], cores].concat(), "rates");
        let rate = row(&rates, "ovs-dpdk", vnfs);
        (number(rate, "chain_pps"), rate["bound_by"].as_str().unwrap().to_owned())
    };
    // 468 + 0.5 x 64 = 500 cycles of 2e9 a second.
    for vnfs in [4, 8] {
        assert_eq!(pps(&[], vnfs), (4e6, "guest".to_owned()), "a CPU each");
    }
    assert_eq!(pps(&["--vnf-cores", "2"], 4).0, 2e6);
    assert_eq!(pps(&["--vnf-cores", "3"], 8), (4e6 / 3.0, "guest".to_owned()));
    let assumptions = table(&[&given[..], &["--vnf-cores", "2"]].concat(), "assumptions");
    let value = |what: &str| assumptions.iter().find(|row| row["what"] == what).map(|row| row["value"].clone());
    assert_eq!(value("CPUs that VNFs share"), Some("2".into()));
    assert_eq!(value("cycles of a VNF for a packet"), Some("468 and 0.5 for each byte".into()));
}

/// What would not act is refused, and what is wrong is said in the words of the field.
#[test]
fn odd_options_are_refused_with_what_to_write() {
    let common = ["--vnfs", "8", "--size", "64", "--nic", "XL710"];
    for (options, expected) in [
        (&["--vnfs", "0", "--size", "64", "--nic", "XL710"][..], "write how many, from 1 to 256"),
        (&["--vnfs", "-3", "--size", "64", "--nic", "XL710"], "write how many, from 1 to 256"),
        (&["--vnfs", "8", "--size", "63", "--nic", "XL710"], "a frame has 64 to 9622 bytes"),
        (
            &["--vnfs", "8", "--size", "65536", "--nic", "XL710"],
            "messages of a socket, as netperf counts, are no frames",
        ),
        (&["--vnfs", "8", "--size", "64", "--nic", "XL71"], "did you mean `XL710`?"),
        (&["--vnfs", "8", "--size", "64", "--link", "40"], "with its unit, such as \"40G\""),
        (
            &["--vnfs", "8", "--size", "64", "--link", "40G", "--mps", "256"],
            "the PCIe link, which is unknown of this card",
        ),
        (&[&common[..], &["--vnf-cores", "2"]].concat(), "--vnf-cores needs what a packet takes in a VNF"),
        (&[&common[..], &["--ghz", "0"]].concat(), "write the clock of a CPU in GHz"),
        (&[&common[..], &["--target", "5"]].concat(), "packets per second with their unit"),
        (&[&common[..], &["--hop", "-5"]].concat(), "write the cycles of a hop"),
    ] {
        let (code, _, complaints) = kvmscope(options);
        assert!(code == 2 && complaints.contains(expected), "{options:?}: {complaints}");
    }
    let twice = table(&["--vnfs", "8,8", "--size", "64,64", "--nic", "XL710", "--datapath", "vf,sriov"], "rates");
    assert_eq!(twice.len(), 1, "each once");
    let (_, out, _) = kvmscope(&["--vnfs", "1", "--size", "64", "--nic", "XL710"]);
    assert!(out.starts_with("1 VNF at 64 bytes"), "{out}");
}

/// Tenants of both kinds share the card; VFs over two cards carry twice.
#[test]
fn mixed_tenants_and_several_cards_are_planned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    let rates = |card: &str, chains: &str| {
        let head = "schema = \"kvmscope.chain/1\"\n[traffic]\nsizes = [64]\n[calibration]\novs = { c0 = 240.0, source = \"own\" }\n";
        std::fs::write(&file, format!("{head}[host]\npmd_cores = 9\n[nic.a]\nmodel = \"XL710\"\n{card}\n{chains}"))
            .unwrap();
        table(&[file.to_str().unwrap()], "rates")
    };
    let outside = "[[chain]]\nvnfs = 4\npattern = \"north-south\"\ndatapath = \"sriov\"\n";
    let inside = "[[chain]]\nvnfs = 3\ndatapath = \"ovs-dpdk\"\n";
    let (alone, both) = (rates("", outside), rates("", &format!("{outside}{inside}")));
    assert_eq!((&both[0]["pattern"], &both[1]["pattern"]), (&"north-south".into(), &"chain".into()));
    // 37 Mpps of the card for 4 VMs, or for these and a chain that is as fast as each of them.
    assert!((number(&alone[0], "chain_pps") / number(&both[0], "chain_pps") - 5.0 / 4.0).abs() < 1e-6, "{both:?}");
    let vfs = "[[chain]]\nvnfs = 8\ndatapath = \"sriov\"\n";
    let system = |card: &str| number(&rates(card, vfs)[0], "system_pps");
    assert_eq!((system(""), system("cards = 2")), (18.5e6, 37e6));
}
