//! `kvmscope plan chain`: what each datapath of a service chain carries.

use crate::arguments::{Answered, OutputOptions, ReplaceOptions, Stdin, named, opened};
use crate::completed::cards;
use analysis::datapath::options::{Idle, Options};
use analysis::datapath::quantity::{amount, bits_per_s, channel, flows, ghz, hop, imix, payload, pcie, pps, size};
use analysis::datapath::{self, ChannelCost, ChannelUse, Datapath, Demands, Detours, Frames, HopCost, Plan, Stated};
use analysis::{About, Answers, Case, Given};
use anyhow::bail;
use base::datapath::Traffic;
use base::nearest::instead;
use base::recording::{Part, PartKind, Recording};
use clap::{Args, ValueHint};
use host::Snapshot;
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Predict the rates of SR-IOV, OVS-DPDK and other datapaths, which resource limits them, and how many cores they take
#[derive(Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:\n  \
    kvmscope plan chain --vnfs 8 --size 64 --nic XL710\n  \
    kvmscope plan chain --vnfs 2,4,8 --size 64,512,1518 --nic XL710 --mps 256 --hop 240+0.24 --pmd-cores 4 --ghz 2.2\n  \
    kvmscope plan chain --vnfs 8 --imix 64:7,594:4,1518:1 --nic XL710 --pattern north-south\n  \
    kvmscope plan chain --vnfs 8 --size 64 --nic XL710 --hop 240+0.24 --pmd-cores 9 --target '5 Mpps' --must-migrate\n  \
    kvmscope plan chain --vnfs 8 --size 64 --nic XL710 --hop 240+0.24 --search\n  \
    kvmscope plan chain --vnfs 8 --size 64 --nic E810-CQ --flows 100k --queues 2 --loss-free --core-watts 8\n  \
    kvmscope plan chain --vnfs 8 --size 64 --from-host --nic ens1f0\n  \
    kvmscope plan chain --vnfs 3 --size 512 --nic XL710 --calibrate fixtures/ovs-dpdk-chain\n  \
    kvmscope plan chain --vnfs 4,8 --size 64 --nic XL710 --hop 240+0.24 --vnf 180+0.1 --vnf-cores 2\n  \
    kvmscope plan chain --vnfs 8 --size 64 --nic XL710 --calibrate fixtures/channel\n  \
    kvmscope plan chain chain.toml --search\n\n\
    The cost of a hop of the switch must be measured (--calibrate, --hop); it is never assumed. docs/read/plan.md has the formulae.\n\
    Exit status: 0 answered, 1 no answer, 2 wrong usage, 3 the target is missed, or a finding of at least the severity of --fail-on.")]
pub(super) struct ChainOptions {
    /// A plan in TOML (docs/read/plan.md), instead of the options
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = [
        "vnfs", "size", "imix", "pattern", "nic", "link", "ports", "cards", "pcie", "mps", "mrrs", "iommu_small_pages", "remote_node",
        "hop", "pmd_cores", "ghz", "ingress", "vnf_pps", "vnf", "vnf_cores", "vhost_pps", "channel", "datapath", "must_migrate", "target",
        "from_host", "snapshot", "flows", "megaflows", "queues", "directions", "vxlan", "conntrack", "loss_free", "core_watts", "core_price",
    ])]
    file: Option<PathBuf>,
    /// VNFs of the chain, or parallel VMs with --pattern north-south; a list is answered one by one
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = vnfs)]
    vnfs: Vec<u32>,
    /// Frame size in bytes, FCS included; a list is answered one by one
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = frame)]
    size: Vec<Frames>,
    /// A mix of frame sizes with their weights: 64:7,594:4,1518:1
    #[arg(long, value_name = "MIX", value_parser = imix)]
    imix: Option<Frames>,
    /// Where packets go [default: chain, and designs are compared for both]
    #[arg(long, value_name = "WHERE", value_parser = named(Traffic::ALL, Traffic::name))]
    pattern: Option<Traffic>,
    /// The card: 82599, X520, X710, XL710, XXV710, E810-CQ, E810-XXV, ConnectX-5, -5-Ex, -6, -6-Dx, -7; a data sheet in TOML (docs/read/plan.md); or
    /// another one with --link
    #[arg(long, value_name = "MODEL", add = cards())]
    nic: Option<String>,
    /// Read cards, PCIe links, payloads and clocks of this host; --nic then names an interface, an address or a model
    #[arg(long)]
    from_host: bool,
    /// Read the same from a snapshot: a recording, or a directory with proc and sys
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath, conflicts_with = "from_host")]
    snapshot: Option<PathBuf>,
    /// Speed of a port: 40G [default: the card's]
    #[arg(long, value_name = "SPEED", value_parser = bits_per_s)]
    link: Option<f64>,
    /// Ports in use [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    ports: Option<u32>,
    /// Number of such cards: VFs are spread over them, neighbours of a chain on different cards, joined by an external switch [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    cards: Option<u32>,
    /// Generation and lanes of the card's link as negotiated: 3x8 [default: the card's]
    #[arg(long, value_name = "LINK", value_parser = pcie)]
    pcie: Option<(u8, u8)>,
    /// Largest PCIe payload of all bridges up to the root [default: 128, assumed]
    #[arg(long, value_name = "BYTES", value_parser = power)]
    mps: Option<u32>,
    /// Largest PCIe read request [default: 512, assumed]
    #[arg(long, value_name = "BYTES", value_parser = power)]
    mrrs: Option<u32>,
    /// The IOMMU maps pages of 4 KiB
    #[arg(long)]
    iommu_small_pages: bool,
    /// The card is on another NUMA node than the VMs
    #[arg(long)]
    remote_node: bool,
    /// Cycles per hop of OVS-DPDK on this host, plus cycles per byte: 240+0.24
    #[arg(long, value_name = "CYCLES", value_parser = hop)]
    hop: Option<HopCost>,
    /// Recordings of `kvmscope lab ovs` (what a hop takes, and the clock) and of `kvmscope bench channel` (what rings take) on this host
    #[arg(long, value_name = "DIR", value_delimiter = ',', value_hint = ValueHint::AnyPath)]
    calibrate: Vec<PathBuf>,
    /// CPUs that poll for OVS-DPDK [default: 1, assumed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pmd_cores: Option<u32>,
    /// Clock of these CPUs [default: 2.2, assumed]
    #[arg(long, value_name = "GHZ", value_parser = ghz)]
    ghz: Option<f64>,
    /// Flows at the same time: 10k; a hop takes longer with many of them [default: few]
    #[arg(long, value_name = "N", value_parser = flows)]
    flows: Option<f64>,
    /// Entries of the switch's classifier that they need [default: anything from a few to one for each flow]
    #[arg(long, value_name = "N", value_parser = flows)]
    megaflows: Option<f64>,
    /// Queues of each port and of each VM [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    queues: Option<u32>,
    /// 2: packets go both ways, and rates count both together [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    directions: Option<u32>,
    /// The switch takes frames out of VXLAN, and puts them in
    #[arg(long)]
    vxlan: bool,
    /// Each hop of the switch tracks connections
    #[arg(long)]
    conntrack: bool,
    /// What hops of the switch carry without any loss, in place of the most that they carry
    #[arg(long)]
    loss_free: bool,
    /// Watts of a CPU that a design keeps busy, for table designs
    #[arg(long, value_name = "WATTS", value_parser = amount)]
    core_watts: Option<f64>,
    /// Price of such a CPU, likewise
    #[arg(long, value_name = "MONEY", value_parser = amount)]
    core_price: Option<f64>,
    /// Maximum rate that OVS-DPDK takes from a port: '6 Mpps'
    #[arg(long, value_name = "RATE", value_parser = pps)]
    ingress: Option<f64>,
    /// Maximum forwarding rate of one VNF: '8 Mpps'
    #[arg(long, value_name = "RATE", value_parser = pps)]
    vnf_pps: Option<f64>,
    /// Cycles per packet in a VNF, plus cycles per byte: 900+0.1
    #[arg(long, value_name = "CYCLES", value_parser = hop)]
    vnf: Option<HopCost>,
    /// CPUs that all VNFs share [default: one each]; with --calibrate a VNF takes what testpmd took in the recording
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    vnf_cores: Option<u32>,
    /// Rate of one vhost-net thread on this host: '0.8 Mpps'
    #[arg(long, value_name = "RATE", value_parser = pps)]
    vhost_pps: Option<f64>,
    /// Nanoseconds to copy a frame into or out of a ring shared with the next VNF, plus nanoseconds per byte: 14+0.02
    #[arg(long, value_name = "NS", value_parser = channel)]
    channel: Option<ChannelCost>,
    /// With a recording of `bench channel`: the window of the rings, as in table rates [default: none]
    #[arg(long, value_name = "WINDOW", requires = "calibrate")]
    channel_window: Option<String>,
    /// With a recording of `bench channel`: frames per batch over the rings [default: 32]
    #[arg(long, value_name = "FRAMES", requires = "calibrate", value_parser = clap::value_parser!(u32).range(1..=1024))]
    channel_batch: Option<u32>,
    /// Datapaths to compare [default: all, and VFs at the ends of OVS-DPDK]
    #[arg(long, value_name = "PATH", value_delimiter = ',', value_parser = path)]
    datapath: Vec<Datapath>,
    /// Search designs with a path for each edge and up to --pmd-cores polling CPUs, and print those that no other design beats
    #[arg(long)]
    search: bool,
    /// Accept only designs whose VMs can be migrated
    #[arg(long)]
    must_migrate: bool,
    /// Required rate of the chain: '5 Mpps'
    #[arg(long, value_name = "RATE", value_parser = pps)]
    target: Option<f64>,
    #[arg(skip)]
    stdin: Stdin,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

fn frame(text: &str) -> Result<Frames, String> {
    text.parse().map_err(|_| "write bytes, such as 64".to_owned()).and_then(size)
}

fn power(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write bytes, such as 256".to_owned()).and_then(payload)
}

fn vnfs(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().filter(|vnfs| (1..=256).contains(vnfs));
    known.ok_or_else(|| "write how many, from 1 to 256".to_owned())
}

fn path(text: &str) -> Result<Datapath, String> {
    Datapath::called(text).ok_or_else(|| instead(text, Datapath::ALL.map(Datapath::name)))
}

impl ChainOptions {
    /// Predicts.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        self.output.check(1, self.replace.force)?;
        let interrupt = Interrupt::watch()?;
        let plan = self.plan(&interrupt)?;
        let is_missed = datapath::misses_target(&plan);
        let recording = Recording::of_nothing(concat!("kvmscope plan ", env!("CARGO_PKG_VERSION")));
        let given = Given::query(plan);
        let case = Case::new(analysis::open(recording)?, given);
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Plan]);
        failed.into_iter().for_each(|error| complain(&error.into()));
        let answered = Answered::of(case.input().recording.clone(), sections, problems);
        let exit = self.output.end("plan", &[answered], &interrupt)?;
        Ok(if is_missed && exit == Exit::Answered { Exit::FailOn } else { exit })
    }

    fn plan(&self, interrupt: &Interrupt) -> anyhow::Result<Plan> {
        if let Some(file) = &self.file {
            let mut stated = read_plan(file, interrupt)?;
            stated.search |= self.search;
            self.calibrated(&mut stated, interrupt)?;
            return Ok(stated.plan().map_err(WrongUse)?);
        }
        let (options, host) = (self.options()?, self.host(interrupt)?);
        if !options.is_enough(host.is_some()) {
            bail!(WrongUse(
                "name VNFs, a size and a card: --vnfs 8 --size 64 --nic XL710; or a plan in TOML".to_owned()
            ));
        }
        let of_host = host.map(|host| datapath::of_host(&host, self.nic.as_deref())).transpose().map_err(WrongUse)?;
        let mut stated = options.stated(of_host.unwrap_or_default());
        if let Some(idle) = options.idle(&stated, !self.calibrate.is_empty()) {
            bail!(WrongUse(would_not_act(idle).to_owned()));
        }
        self.calibrated(&mut stated, interrupt)?;
        Ok(stated.plan().map_err(WrongUse)?)
    }

    /// Puts in what the user's own recording measured, over what a file says.
    fn calibrated(&self, stated: &mut Stated, interrupt: &Interrupt) -> anyhow::Result<()> {
        let usual = ChannelUse::default();
        let used = ChannelUse {
            window: self.channel_window.clone().unwrap_or(usual.window),
            batch: self.channel_batch.unwrap_or(usual.batch),
        };
        let (mut switch, mut rings) = (false, false);
        for path in &self.calibrate {
            let input = analysis::open(opened(path, &self.stdin, interrupt)?)?;
            let from = input.recording.title();
            let measured = analysis::calibration(&input, stated.pattern, &used, &from).map_err(anyhow::Error::msg)?;
            switch |= measured.switch.is_some();
            rings |= measured.channel.is_some();
            stated.calibrate(measured);
        }
        if switch && (self.hop.is_some() || self.ghz.is_some()) {
            bail!(WrongUse("--hop and --ghz have no effect with a recording of lab ovs, which has both".to_owned()));
        }
        if rings && self.channel.is_some() {
            bail!(WrongUse("--channel has no effect with a recording of bench channel".to_owned()));
        }
        if !rings && (self.channel_window.is_some() || self.channel_batch.is_some()) {
            bail!(WrongUse("--channel-window and --channel-batch need a recording of bench channel".to_owned()));
        }
        Ok(())
    }

    /// The host that is asked, if one is.
    fn host(&self, interrupt: &Interrupt) -> anyhow::Result<Option<Snapshot>> {
        if self.from_host {
            return Ok(Some(Snapshot::open(Path::new("/"))?));
        }
        let Some(path) = &self.snapshot else { return Ok(None) };
        snapshot(path, &self.stdin, interrupt).map(Some)
    }

    /// What is stated, quantity by quantity.
    fn options(&self) -> anyhow::Result<Options> {
        let of_file = self.nic.as_deref().filter(|nic| Path::new(nic).extension().is_some_and(|end| end == "toml"));
        let sheet = of_file.map(|file| {
            datapath::read_sheet(file, &text_of(Path::new(file))?).map_err(|error| WrongUse(error.to_string()))
        });
        Ok(Options {
            vnfs: self.vnfs.clone(),
            sizes: self.size.clone(),
            imix: self.imix.clone(),
            pattern: self.pattern,
            nic: self.nic.clone(),
            line_bits_per_s: self.link,
            ports: self.ports,
            cards: self.cards,
            pcie: self.pcie,
            mps_bytes: self.mps,
            mrrs_bytes: self.mrrs,
            detours: Detours { iommu_small_pages: self.iommu_small_pages, remote_node: self.remote_node },
            hop: self.hop.clone(),
            pmd_cores: self.pmd_cores,
            core_hz: self.ghz,
            ingress_pps: self.ingress,
            guest_pps: self.vnf_pps,
            vnf: self.vnf.clone(),
            vnf_cores: self.vnf_cores,
            vhost_pps: self.vhost_pps,
            channel: self.channel.clone(),
            datapaths: self.datapath.clone(),
            search: self.search,
            must_migrate: self.must_migrate,
            target_pps: self.target,
            sheet: sheet.transpose()?,
            demands: Demands {
                flows: self.flows,
                megaflows: self.megaflows,
                conntrack: self.conntrack,
                vxlan: self.vxlan,
                loss_free: self.loss_free,
                ..Demands::default()
            },
            queues: self.queues,
            directions: self.directions,
            core_watts: self.core_watts,
            core_price: self.core_price,
        })
    }
}

/// Refuses an option that would not act.
fn would_not_act(idle: Idle) -> &'static str {
    match idle {
        Idle::Link => {
            "--mps, --mrrs, --iommu-small-pages and --remote-node are about the PCIe link, which is unknown of this card: --pcie 3x8"
        }
        Idle::VnfCores => {
            "--vnf-cores needs what a packet takes in a VNF: --vnf 900+0.1, --vnf-pps '8 Mpps', or --calibrate DIR"
        }
    }
}

/// The snapshot of a host: a directory with `sys`, or the last one of a recording.
fn snapshot(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Snapshot> {
    if path.join("sys").is_dir() {
        return Ok(Snapshot::open(path)?);
    }
    let recording = opened(path, stdin, interrupt)?;
    let is_host = |part: &&Part| part.kind == PartKind::Host && part.machine == "L0";
    let Some(part) = recording.parts.iter().rfind(is_host) else {
        bail!("{} has no snapshot of a host; kvmscope snapshot takes one", recording.title());
    };
    Ok(Snapshot::open(&recording.root.join(&part.path))?)
}

/// The plan in a file. Snapshots that it names lie where the file does, if they are not named from the root.
pub(crate) fn read_plan(file: &Path, interrupt: &Interrupt) -> anyhow::Result<Stated> {
    let (shown, text) = (file.display().to_string(), text_of(file)?);
    let beside = |name: &str| {
        let path = file.parent().unwrap_or(Path::new("")).join(name);
        snapshot(&path, &Stdin::default(), interrupt).map_err(|error| format!("{error:#}"))
    };
    Ok(datapath::read_with(&shown, &text, &beside).map_err(|error| WrongUse(error.to_string()))?)
}

/// What a file says that people write for a plan.
fn text_of(file: &Path) -> Result<String, WrongUse> {
    let mut text = String::new();
    // One byte more than is read, so that a longer file is refused and not cut.
    let read = base::files::open(file)
        .and_then(|file| file.take(analysis::MOST_PLAN_BYTES as u64 + 1).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| {
        let (shown, is_text) = (file.display(), error.kind() != std::io::ErrorKind::InvalidData);
        WrongUse(if is_text { format!("{shown}: {error}") } else { format!("{shown}: no text, and a plan is TOML") })
    })
}
