//! `kvmscope lab netns` with NICs of the user's: two that the test makes, and a router of its own between them. Whatever
//! ends the command, both are back as they were.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use testing::{machine, send, wait_for};

/// Settings of the first NIC that are not the default.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/conf/proxy_arp", "1"),
    ("ipv4/conf/arp_ignore", "2"),
    ("ipv6/conf/accept_ra", "0"),
    ("ipv4/neigh/gc_stale_time", "77"),
];

fn setting_of(nic: &str, setting: &str) -> String {
    let (kind, file) = setting.rsplit_once('/').unwrap();
    format!("/proc/sys/net/{kind}/{nic}/{file}")
}

fn ip(words: &[&str]) -> Output {
    Command::new("ip").args(words).output().unwrap()
}

/// What `ip` prints; it must succeed.
fn done(words: &[&str]) -> String {
    let output = ip(words);
    assert!(output.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two NICs of the host and a namespace that routes between them; all gone with the test.
struct Ends {
    router: String,
    nics: [String; 2],
}

impl Ends {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("it needs root".to_owned());
        }
        let pid = std::process::id();
        let path = Self { router: format!("kvsrouter{pid}"), nics: [format!("kvsm{pid}"), format!("kvsn{pid}")] };
        let made = Command::new("ip").args(["netns", "add", &path.router]).output();
        let made = made.map_err(|error| format!("ip: {error}; the Debian package iproute2 brings it"))?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        for (nic, net) in path.nics.iter().zip(["198.18.101", "198.18.102"]) {
            let veth = ip(&["link", "add", nic, "type", "veth", "peer", "name", nic, "netns", &path.router]);
            if !veth.status.success() {
                return Err(String::from_utf8_lossy(&veth.stderr).into_owned());
            }
            done(&["-n", &path.router, "addr", "add", &format!("{net}.1/24"), "dev", nic]);
            done(&["-n", &path.router, "link", "set", nic, "up"]);
        }
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        done(&["netns", "exec", &path.router, "sh", "-c", forward]);
        // The first has what a NIC can have; the second is down and has nothing.
        let nic = &path.nics[0];
        done(&["addr", "add", "198.19.101.1/24", "brd", "198.19.101.255", "dev", nic]);
        done(&["addr", "add", "198.19.101.2/24", "dev", nic]);
        done(&["-6", "addr", "add", "fd00:6b76::1/64", "dev", nic, "nodad"]);
        done(&["link", "set", "dev", nic, "mtu", "1400", "up"]);
        done(&["route", "add", "198.19.111.0/24", "via", "198.19.101.9", "dev", nic, "metric", "7"]);
        done(&["addr", "add", "169.254.7.7/16", "scope", "link", "label", &format!("{nic}:x"), "dev", nic]);
        done(&["route", "add", "198.19.112.0/24", "dev", nic, "table", "77"]);
        done(&["neigh", "add", "198.19.101.7", "lladdr", "02:00:00:00:00:07", "nud", "permanent", "dev", nic]);
        for (setting, value) in SETTINGS {
            std::fs::write(setting_of(nic, setting), value).unwrap();
        }
        // An address of IPv6 is there at once, its routes when it has settled.
        let _ = ip(&["-6", "route", "add", "fd00:6b77::/64", "via", "fd00:6b76::9", "dev", nic]);
        Ok(path)
    }

    fn is_moved(&self) -> bool {
        self.nics.iter().all(|nic| !ip(&["link", "show", "dev", nic]).status.success())
    }

    /// All that `ip` says of both, but for what changes by itself: numbers, states of the link, lifetimes.
    fn described(&self) -> String {
        let about = |nic: &String| {
            let link = done(&["-o", "link", "show", "dev", nic]);
            let word =
                |key: &str| link.split_whitespace().skip_while(|word| *word != key).nth(1).unwrap_or("-").to_owned();
            let up = link.split(['<', '>', ',']).any(|flag| flag == "UP");
            // What the kernel makes by itself when the NIC is up comes with a state that changes.
            let by_itself = |line: &str| line.contains("fe80::") || line.contains("ff00::");
            let addresses = done(&["-o", "addr", "show", "dev", nic]).replace(" tentative", "");
            let addresses: Vec<&str> = addresses
                .lines()
                .filter(|line| !by_itself(line))
                .filter_map(|line| line.split_once("inet")?.1.split('\\').next())
                .collect();
            let routes = done(&["route", "show", "table", "all", "dev", nic])
                + &done(&["-6", "route", "show", "table", "all", "dev", nic]);
            let mut routes: Vec<&str> = routes.lines().filter(|line| !by_itself(line)).map(str::trim).collect();
            routes.sort_unstable();
            let neighbours = done(&["neigh", "show", "dev", nic, "nud", "permanent"]);
            let settings = SETTINGS.map(|(setting, _)| std::fs::read_to_string(setting_of(nic, setting)).unwrap());
            let (mtu, mac) = (word("mtu"), word("link/ether"));
            format!("{nic} up {up} mtu {mtu} {mac}\n{addresses:#?}\n{routes:#?}\n{neighbours}{settings:?}\n")
        };
        self.nics.iter().map(about).collect()
    }

    fn lab(&self, directory: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.env("KVMSCOPE_JOURNAL", directory.join("journal")).args(["lab", "netns", "--seconds", "1"]);
        command.args(["--repeats", "1", "--streams", "2", "-o"]).arg(directory.join("bench"));
        command.args(["--dev1", &self.nics[0], "--ip1", "198.18.101.2/24", "--gw1", "198.18.101.1"]);
        command.args(["--dev2", &self.nics[1], "--ip2", "198.18.102.2/24", "--gw2", "198.18.102.1"]);
        command
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        ip(&["netns", "delete", &self.router]);
        self.nics.iter().for_each(|nic| drop(ip(&["link", "delete", nic])));
    }
}

#[test]
fn own_nics_are_back_as_they_were_whatever_ends_the_command() {
    let _machine = machine();
    let path = match Ends::new() {
        Ok(path) => path,
        Err(why) => return println!("skipped: own NICs: {why}"),
    };
    let before = path.described();
    for there in ["198.19.101.255", "fd00:6b76::1/64", "169.254.7.7/16", "table 77", "02:00:00:00:00:07"] {
        assert!(before.contains(there), "{there}: {before}");
    }
    for end in ["", "-INT", "-KILL"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = path.lab(directory.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("both NICs moved", || {
            assert!(lab.try_wait().unwrap().is_none(), "the bench ended early");
            path.is_moved()
        });
        if !end.is_empty() {
            send(&lab, end);
        }
        let output = lab.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        match end {
            "" => {
                assert!(output.status.success() && told.contains("your own path"), "{told}");
                assert!(directory.path().join("bench/before/recording.json").is_file());
            }
            "-INT" => assert_eq!(output.status.code(), Some(130), "{told}"),
            _ => {
                let mut undo = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
                let undo = undo.arg("undo").env("KVMSCOPE_JOURNAL", directory.path().join("journal"));
                let undone = undo.output().unwrap();
                assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
            }
        }
        assert_eq!(path.described(), before, "after {end}");
        assert_eq!(std::fs::read_dir(directory.path().join("journal")).unwrap().count(), 0, "after {end}");
    }
    let nic = &path.nics[0];
    done(&["link", "add", &format!("{nic}b"), "type", "bridge"]);
    done(&["link", "set", nic, "master", &format!("{nic}b")]);
    let directory = tempfile::tempdir().unwrap();
    let output = path.lab(directory.path()).output().unwrap();
    done(&["link", "delete", &format!("{nic}b")]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains("take it out of that first"), "{told}");
}
