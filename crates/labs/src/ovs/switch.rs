//! A private Open vSwitch: its database, its daemon with DPDK, and what is asked of it.
//!
//! ```text
//! /run/kvmscope-ovs-PID-N/   conf.db, db.sock    ovsdb-server
//!                            vsw.ctl, b.mgmt     ovs-vswitchd with DPDK
//!                            v0, v1, ...         sockets of vhost-user ports: testpmd listens, the switch connects
//! ```
//! Nothing of a switch that runs on this machine is used: each program is told its sockets and directories.

use super::control::Control;
use super::pace::Policer;
use super::ports::Wiring;
use super::seats::Seats;
use super::{Memory, Watch};
use crate::child::ChildProcess;
use base::CpuSet;
use lab::Error;
use lab::journal::{Entry, Owner, Step};
use lab::program::{Program, tie};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The daemon that can do DPDK.
pub(super) const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
/// What a database of Open vSwitch holds.
pub(super) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The only bridge.
const BRIDGE: &str = "b";
/// The datapath of bridges in user space.
pub(super) const DATAPATH: &str = "netdev@ovs-netdev";

/// `CYC_PER_10MHZ` of lib/eal/common/eal_common_timer.c, DPDK 22.11.
const DPDK_ROUNDS_TO_HZ: f64 = 1e7;
/// How long anything may take: DPDK takes a second for its memory, ten where others want the CPUs.
const LIMIT: Duration = Duration::from_secs(60);
/// The same for programs that wait for the daemon themselves.
const LIMIT_SECONDS: &str = "--timeout=60";
/// How often we look.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A flow that nothing matched for as long is forgotten, and with it its count.
const FORGETS_MS: u32 = 3_600_000;

/// A switch at work. Dropping it ends it; what it has left is in the journal.
#[derive(Debug)]
pub(super) struct Switch {
    directory: PathBuf,
    daemon: ChildProcess,
    _database: ChildProcess,
    pub(super) control: Control,
    pub(super) version: String,
    pub(super) dpdk_version: String,
}

impl Switch {
    /// Starts it, with one polling thread.
    pub(super) fn start(
        memory: Memory,
        seats: &Seats,
        entry: &mut Entry,
        proc: &Path,
        watch: &Watch<'_>,
    ) -> Result<Self, Error> {
        let directory = Path::new("/run").join(format!("kvmscope-{}", entry.id));
        entry.intend(Step::RunDirectory { path: directory.clone() })?;
        base::recording::make_private(&directory).map_err(|error| Error::io(&directory, error))?;
        let others = CpuSet::one(seats.others);
        let at = |name: &str| directory.join(name);
        let socket = format!("unix:{}", at("db.sock").display());
        let place = Place { directory: &directory };
        place.run("ovsdb-tool", &[OsStr::new("create"), at("conf.db").as_os_str(), OsStr::new(SCHEMA)])?;
        let mut command = place.command("ovsdb-server");
        command.arg(at("conf.db")).arg(format!("--remote=p{socket}")).arg(option("unixctl", &at("db.ctl")));
        let mut database = ChildProcess::of(command, &others)?;
        entry.intend(Step::Process(Owner::of(proc, database.pid())?))?;
        appears(&at("db.sock"), &mut database, watch)?;
        let settings = [
            Some("dpdk-init=true".to_owned()),
            Some(format!("dpdk-extra=--no-pci {} --file-prefix=switch", memory.of_switch())),
            memory.of_switch_at_once().map(|mib| format!("dpdk-socket-mem={mib}")),
            // Else a port's pool takes what is left for the VNFs.
            memory.of_switch_at_once().map(|mib| format!("dpdk-socket-limit={mib}")),
            Some(format!("pmd-cpu-mask={}", CpuSet::one(seats.pmd).mask())),
            Some(format!("dpdk-lcore-mask={}", others.mask())),
            Some(format!("max-idle={FORGETS_MS}")),
        ];
        let settings = settings.into_iter().flatten().map(|setting| quoted(&setting));
        let words: Vec<String> = ["--no-wait", "init", "--", "set", "Open_vSwitch", "."]
            .map(str::to_owned)
            .into_iter()
            .chain(settings)
            .collect();
        place.vsctl(&words)?;
        let mut command = place.command(DAEMON);
        command.arg(&socket).arg(option("unixctl", &at("vsw.ctl")));
        let mut daemon = ChildProcess::of(command, &seats.all)?;
        entry.intend(Step::Process(Owner::of(proc, daemon.pid())?))?;
        appears(&at("vsw.ctl"), &mut daemon, watch)?;
        let bridge = format!("add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail-mode=secure");
        if let Err(error) = place.vsctl(&words_of(&bridge)) {
            // What the daemon says of DPDK tells more than that it did not answer.
            let said = daemon.complaints();
            let why = said.lines().rev().find(|line| line.contains("|ERR|") || line.contains("|EMER|"));
            return Err(why.map_or(error, |why| Error::refused("Open vSwitch does not start", why)));
        }
        let mut control = Control::connect(&at("vsw.ctl"))?;
        let version = control.ask("version", &[])?;
        let dpdk_version = logged(&daemon.complaints(), "Using DPDK ").unwrap_or_else(|| "unknown".to_owned());
        let version = version.trim().to_owned();
        Ok(Self { directory, daemon, _database: database, control, version, dpdk_version })
    }

    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The socket of a port that leads to a VNF.
    pub(super) fn socket(&self, port: &str) -> PathBuf {
        self.directory.join(port)
    }

    fn place(&self) -> Place<'_> {
        Place { directory: &self.directory }
    }

    /// Adds the ports of VNFs, and the flows between them.
    pub(super) fn wire(&self, wiring: Wiring) -> Result<(), Error> {
        let mut words = Vec::new();
        for (port, number) in wiring.of_vnfs() {
            let path = option_of("vhost-server-path", &self.socket(&port));
            words.extend(words_of(&format!(
                "-- add-port {BRIDGE} {port} -- set interface {port} type=dpdkvhostuserclient"
            )));
            words.extend([format!("options:{path}"), format!("ofport_request={number}")]);
        }
        self.place().vsctl(&words)?;
        self.ofctl("del-flows", &[])?;
        wiring.flows().iter().try_for_each(|flow| self.ofctl("add-flow", &[flow]).map(drop))
    }

    /// Takes them away again.
    pub(super) fn unwire(&self, wiring: Wiring) -> Result<(), Error> {
        let words = wiring.of_vnfs().flat_map(|(port, _)| words_of(&format!("-- del-port {BRIDGE} {port}")));
        self.place().vsctl(&words.collect::<Vec<_>>())
    }

    /// Adds generators of frames of that size, which are silent until [`Switch::send`].
    pub(super) fn add_generators(&self, wiring: Wiring, bytes_without_fcs: u32) -> Result<(), Error> {
        for (index, (port, number)) in wiring.generators().enumerate() {
            let device = format!("options:dpdk-devargs=\"net_null{index},size={bytes_without_fcs},copy=1\"");
            let words = format!("add-port {BRIDGE} {port} -- set interface {port} type=dpdk ofport_request={number}");
            self.place().vsctl(&[words_of(&words), vec![device]].concat())?;
            self.ofctl("mod-port", &[&port, "down"])?;
        }
        Ok(())
    }

    /// Has policers of generators let no more through.
    pub(super) fn police(&self, wiring: Wiring, policers: &[Policer]) -> Result<(), Error> {
        let words = wiring.generators().zip(policers).flat_map(|((port, _), policer)| {
            let Policer { rate_kbps, burst_kb } = policer;
            words_of(&format!(
                "-- set interface {port} ingress_policing_rate={rate_kbps} ingress_policing_burst={burst_kb}"
            ))
        });
        self.place().vsctl(&words.collect::<Vec<_>>())
    }

    /// How often the time-stamp counter ticks in a second as DPDK believes, by what the daemon has logged; else as DPDK rounds what it is.
    pub(super) fn believed_hz(&self, hz: f64) -> f64 {
        let told = logged(&self.daemon.complaints(), "DPDK provided TSC frequency: ");
        let khz = told.and_then(|told| told.strip_suffix(" KHz")?.parse::<f64>().ok());
        khz.map_or_else(|| (hz / DPDK_ROUNDS_TO_HZ).round() * DPDK_ROUNDS_TO_HZ, |khz| khz * 1e3)
    }

    /// Takes them away again.
    pub(super) fn remove_generators(&self, wiring: Wiring) -> Result<(), Error> {
        wiring
            .generators()
            .try_for_each(|(port, _)| self.place().vsctl(&words_of(&format!("del-port {BRIDGE} {port}"))))
    }

    /// Has all generators send, or stop: a port that is down is not polled (`netdev_dpdk_rxq_recv` of lib/netdev-dpdk.c).
    pub(super) fn send(&self, wiring: Wiring, send: bool) -> Result<(), Error> {
        let state = if send { "up" } else { "down" };
        wiring.generators().try_for_each(|(port, _)| self.ofctl("mod-port", &[&port, state]).map(drop))
    }

    /// The counters of all ports, as `dump-ports` prints them.
    pub(super) fn port_counters(&self) -> Result<String, Error> {
        self.ofctl("dump-ports", &[])
    }

    /// How many ports of VNFs are connected, by what the daemon has logged.
    pub(super) fn connections(&self) -> usize {
        self.daemon.complaints().matches("has been added on numa node").count()
    }

    /// Takes away the sockets of VNFs that ended: testpmd does not listen at one that is there already.
    pub(super) fn forget_sockets(&self, wiring: Wiring) -> Result<(), Error> {
        for (port, _) in wiring.of_vnfs() {
            let socket = self.socket(&port);
            match std::fs::remove_file(&socket) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(socket, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// An end of the VNFs, with what the daemon warned of last, but for sockets that nobody listens at yet: who closed a
    /// connection says why.
    pub(super) fn with_its_warning(&self, error: Error) -> Error {
        let Error::Died(why) = error else { return error };
        let logged = self.daemon.complaints();
        let warns = |line: &&str| ["|WARN|", "|ERR|"].iter().any(|mark| line.contains(mark));
        let warning = logged.lines().rev().filter(warns).find(|line| !line.contains("failed to connect"));
        Error::Died(warning.map_or(why.clone(), |warning| format!("{why}; Open vSwitch last warned: {warning}")))
    }

    /// Fails once the daemon has ended.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if !self.daemon.has_ended() {
            return Ok(());
        }
        Err(Error::Died(format!("Open vSwitch has ended {}", self.daemon.complaint())))
    }

    fn ofctl(&self, command: &str, words: &[&str]) -> Result<String, Error> {
        let management = format!("unix:{}", self.directory.join(format!("{BRIDGE}.mgmt")).display());
        // Version 1.4 has the counters that only some ports have.
        let words = [&["-O", "OpenFlow14", LIMIT_SECONDS, command, &management], words].concat();
        self.place().run("ovs-ofctl", &words)
    }
}

/// The directory of a switch.
struct Place<'a> {
    directory: &'a Path,
}

impl Place<'_> {
    /// A program of Open vSwitch that keeps to the directory: ovs-vsctl(8), ENVIRONMENT; DPDK takes `RUNTIME_DIRECTORY`
    /// (`eal_create_runtime_dir`).
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"] {
            command.env(variable, self.directory);
        }
        command.arg("--no-chdir");
        command
    }

    fn run<A: AsRef<OsStr>>(&self, program: &str, words: &[A]) -> Result<String, Error> {
        let program = Program::new(program, "openvswitch-switch-dpdk");
        let mut command = program.command(words);
        command.env("OVS_RUNDIR", self.directory);
        // Else one that a killed lab has asked would wait for the switch.
        tie(&mut command, Signal::KILL);
        Ok(program.finish(command, LIMIT)?.stdout)
    }

    fn vsctl(&self, words: &[String]) -> Result<(), Error> {
        let database = format!("--db=unix:{}", self.directory.join("db.sock").display());
        let words = [&[database, LIMIT_SECONDS.to_owned()], words].concat();
        self.run("ovs-vsctl", &words).map(drop)
    }
}

/// `--NAME=PATH`.
fn option(name: &str, path: &Path) -> String {
    format!("--{}", option_of(name, path))
}

fn option_of(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

fn words_of(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// `other_config:KEY="VALUE"`: a value with spaces, which the database takes in quotes.
fn quoted(setting: &str) -> String {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    format!("other_config:{key}=\"{}\"", value)
}

/// The rest of the line that says it.
fn logged(log: &str, words: &str) -> Option<String> {
    log.lines().find_map(|line| Some(line.split_once(words)?.1.trim().to_owned()))
}

/// Waits for the socket of a program.
fn appears(socket: &Path, program: &mut ChildProcess, watch: &Watch<'_>) -> Result<(), Error> {
    let begin = Instant::now();
    while !socket.exists() {
        let name = socket.display();
        if program.has_ended() {
            return Err(Error::Died(format!(
                "a program of Open vSwitch ended before it made {name} {}",
                program.complaint()
            )));
        }
        if begin.elapsed() > LIMIT {
            return Err(Error::TimedOut(format!("{name} was not there after {} s", LIMIT.as_secs())));
        }
        watch.rest(LOOK_EVERY)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_for_the_database() {
        assert_eq!(quoted("dpdk-extra=--no-pci -m 5"), "other_config:dpdk-extra=\"--no-pci -m 5\"");
        assert_eq!(logged("a\nx|dpdk|INFO|Using DPDK 22.11.11\n", "Using DPDK "), Some("22.11.11".to_owned()));
    }
}
