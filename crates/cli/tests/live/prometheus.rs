//! What the packages have for Prometheus and Grafana, in a Prometheus: alerts fire on whom they should, and a real one scrapes an agent.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{Running, Workspace, cannot_record, wait_for, wait_for_value};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// What promtool prints; `None`, and the reason printed, where there is none.
fn promtool(arguments: &[&str]) -> Option<Result<String, String>> {
    let tool = Command::new("promtool").args(arguments).current_dir(packaging("prometheus")).output();
    let Ok(output) = tool else {
        println!("skipped: prometheus: promtool is not installed");
        return None;
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stdout) + &text(output.stderr))
    })
}

#[test]
fn each_alert_fires_on_a_host_that_needs_it_and_not_on_its_neighbour() {
    if let Some(said) = promtool(&["test", "rules", "kvmscope.rules.test.yml"]) {
        said.unwrap();
    }
}

/// Every expression of the dashboard, for all VMs.
fn expressions() -> Vec<String> {
    let text = std::fs::read_to_string(packaging("grafana/kvmscope.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let filled = |expression: &str| expression.replace("$vm", ".*").replace("$__rate_interval", "1m");
    targets.map(|target| filled(target["expr"].as_str().unwrap())).collect()
}

#[test]
fn a_prometheus_scrapes_the_agent_and_says_when_it_is_gone() {
    if promtool(&["--version"]).is_none() {
        return;
    }
    if let Some(why) = cannot_record() {
        println!("skipped: prometheus: {why}");
        return;
    }
    let place = Workspace::alone();
    let at = |name: &str| place.path().join(name);
    let mut agent = Command::new(cargo_bin("kvmscope"));
    agent.current_dir(place.path()).env("KVMSCOPE_JOURNAL", at("journal")).arg("agent");
    agent.args([".", "--every", "1h", "--seconds", "0.2", "--listen", "127.0.0.1:0"]);
    let mut agent = Running(agent.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(agent.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let target = line.trim().split_once("http://").unwrap().1.trim_end_matches("/metrics").to_owned();
    // Rules as they are packed, but without the minutes that a condition has to last.
    let rules = std::fs::read_to_string(packaging("prometheus/kvmscope.rules.yml")).unwrap();
    std::fs::write(at("rules.yml"), rules.replace("for: 10m", "for: 0s")).unwrap();
    let settings = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs:\n  \
         - job_name: kvmscope\n    static_configs: [{{targets: [\"{target}\"]}}]\n"
    );
    std::fs::write(at("prometheus.yml"), settings).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut prometheus = Command::new("prometheus");
    prometheus.arg(format!("--config.file={}", at("prometheus.yml").display()));
    prometheus.arg(format!("--storage.tsdb.path={}", at("tsdb").display()));
    prometheus.args([format!("--web.listen-address=127.0.0.1:{port}"), "--log.level=error".to_owned()]);
    let _prometheus = Running(prometheus.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let server = format!("http://127.0.0.1:{port}");
    let query = |expression: &str| promtool(&["query", "instant", &server, expression]).unwrap();
    wait_for_value("the agent's mode in Prometheus", || {
        query("kvmscope_mode").ok().filter(|found| found.contains("mode=\"exact\"") || found.contains("mode=\"proc\""))
    });
    for expression in expressions() {
        query(&expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    }
    let firing = "ALERTS{alertname=\"KvmscopeAbsent\",alertstate=\"firing\"}";
    // Before the first scrape there was none.
    wait_for("the alert to end", || query(firing).is_ok_and(|found| found.trim().is_empty()));
    drop(agent);
    wait_for("the alert that the agent is gone", || query(firing).is_ok_and(|found| found.contains("KvmscopeAbsent")));
}
