//! Trees of `/proc` and `/sys` of hosts that do not exist: from 2 CPUs to 512, with VMs, vhost workers and a busy NIC.
//!
//! ```text
//! package 0         package 1          nodes are packages, CPUs are numbered as firmware does it: first one thread of every
//!   core 0  CPU 0 8   core 0  CPU 1 9    core, alternating between the nodes, then the siblings
//!   core 1  CPU 2 10  core 1  CPU 3 11
//! ```
//! In: a [`Tree`], a directory, the number of the sample. Out: files as Linux 6.12 has them, those that a snapshot takes;
//! hwloc reads the same tree (`lstopo --if fsroot`). Two samples lie 2 s apart, by `times.json`.

use crate::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Time between two samples.
pub const SPAN_NS: u64 = 2_000_000_000;

/// A host to be written.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    pub nodes: u32,
    pub cores: u32,
    /// Threads of a core.
    pub siblings: u32,
    /// VMs, each with 4 to 8 vCPUs, an iothread and up to 4 vhost workers.
    pub vms: u32,
    /// Interrupts of a NIC on node 0.
    pub irqs: u32,
    /// Equal seeds give equal trees.
    pub seed: u64,
}

/// Files of a tree, by their paths, and those among them whose reads are timed.
struct Files {
    texts: BTreeMap<String, String>,
    timed: Vec<String>,
}

impl Files {
    fn put(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.texts.insert(path.into(), text.into() + "\n");
    }

    fn timed(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let path = path.into();
        self.timed.push(path.clone());
        self.put(path, text);
    }
}

impl Tree {
    pub fn cpus(&self) -> u32 {
        self.nodes * self.cores * self.siblings
    }

    /// Node of a CPU, and its core in there.
    pub fn place(&self, cpu: u32) -> (u32, u32) {
        let core = cpu % (self.nodes * self.cores);
        (core % self.nodes, core / self.nodes)
    }

    /// CPUs for which `wanted` holds.
    fn list(&self, wanted: impl Fn(u32) -> bool) -> base::CpuSet {
        (0..self.cpus()).filter(|cpu| wanted(*cpu)).collect()
    }

    /// Writes sample 0 or 1 below `root`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, root: &Path, sample: u64) -> std::io::Result<()> {
        let mut files = Files { texts: BTreeMap::new(), timed: Vec::new() };
        self.topology(&mut files);
        self.vms(&mut files, sample);
        self.interrupts(&mut files, sample);
        let at_ns = SPAN_NS * (sample + 1);
        let times: Vec<String> = files.timed.iter().map(|path| format!("\"{path}\": {at_ns}")).collect();
        files.put("times.json", format!("{{\"clock\": \"monotonic\", \"files\": {{{}}}}}", times.join(", ")));
        for (path, text) in files.texts {
            let path = root.join(path);
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            std::fs::write(path, text)?;
        }
        Ok(())
    }

    fn topology(&self, files: &mut Files) {
        const CPUS: &str = "sys/devices/system/cpu";
        let all = self.list(|_| true);
        for file in ["online", "possible", "present"] {
            files.put(format!("{CPUS}/{file}"), all.to_string());
        }
        files.put(format!("{CPUS}/isolated"), "");
        let mask = |set: &base::CpuSet| set.mask_like(&all.mask_like("0"));
        for cpu in 0..self.cpus() {
            let (node, core) = self.place(cpu);
            let of_core = self.list(|other| self.place(other) == (node, core));
            let of_package = self.list(|other| self.place(other).0 == node);
            let mut of = |file: &str, text: String| files.put(format!("{CPUS}/cpu{cpu}/topology/{file}"), text);
            of("core_id", core.to_string());
            of("physical_package_id", node.to_string());
            for name in ["thread_siblings", "core_cpus"] {
                of(name, mask(&of_core));
                of(&format!("{name}_list"), of_core.to_string());
            }
            for name in ["core_siblings", "package_cpus"] {
                of(name, mask(&of_package));
                of(&format!("{name}_list"), of_package.to_string());
            }
        }
        for node in 0..self.nodes {
            let mut of =
                |file: &str, text: String| files.put(format!("sys/devices/system/node/node{node}/{file}"), text);
            let cpus = self.list(|cpu| self.place(cpu).0 == node);
            of("cpulist", cpus.to_string());
            of("cpumap", mask(&cpus));
            let far: Vec<&str> = (0..self.nodes).map(|other| if other == node { "10" } else { "21" }).collect();
            of("distance", far.join(" "));
            of("meminfo", format!("Node {node} MemTotal: 67108864 kB\nNode {node} MemFree: 33554432 kB"));
        }
        files.put("sys/devices/system/node/online", self.range(self.nodes));
        files.put("sys/devices/virtual/workqueue/cpumask", mask(&all));
        files.put("proc/cpuinfo", (0..self.cpus()).map(|cpu| format!("processor\t: {cpu}\n\n")).collect::<String>());
    }

    /// `0-3`, `0`.
    fn range(&self, count: u32) -> String {
        (0..count).collect::<base::CpuSet>().to_string()
    }

    /// VMs: two of three have pins, one has none. Helpers of the pinned ones are where their vCPUs are.
    fn vms(&self, files: &mut Files, sample: u64) {
        let mut random = Random::new(self.seed);
        let mut next = 0;
        for vm in 0..self.vms {
            let (vcpus, workers) = (4 + random.between(0, 5) as u32, random.between(0, 5) as u32);
            let (pinned, first) = (vm % 3 > 0, next);
            next += vcpus;
            let of_vcpu = |vcpu: u32| base::CpuSet::one((first + vcpu) % self.cpus());
            let own = (0..vcpus).fold(base::CpuSet::default(), |all, vcpu| all.or(&of_vcpu(vcpu)));
            let anywhere = self.list(|_| true);
            let pid = 1_000 + 100 * vm;
            let helpers = if pinned { &own } else { &anywhere };
            let mut tasks: Vec<(u32, String, String)> = vec![
                (0, "qemu-system-x86".into(), helpers.to_string()),
                (1, "IO iothread1".into(), helpers.to_string()),
            ];
            tasks.extend((0..vcpus).map(|vcpu| {
                let cpus = if pinned { of_vcpu(vcpu) } else { anywhere.clone() };
                (10 + vcpu, format!("CPU {vcpu}/KVM"), cpus.to_string())
            }));
            tasks.extend((0..workers).map(|worker| (30 + worker, format!("vhost-{pid}"), helpers.to_string())));
            for (offset, comm, cpus) in tasks {
                let ran_ns = SPAN_NS * random.between(0, 35) / 100;
                let waited_ns = SPAN_NS * random.between(0, 12) / 100;
                let of = |file: &str| format!("proc/{pid}/task/{}/{file}", pid + offset);
                let last = base::CpuSet::parse(&cpus).and_then(|set| set.first()).unwrap_or(0);
                let before_cpu = ["0"; 18].join(" ") + " 77 " + &["0"; 16].join(" ");
                files.put(of("comm"), &*comm);
                files.put(of("stat"), format!("{} ({comm}) S {before_cpu} {last} 0 0 0", pid + offset));
                files.put(of("status"), format!("Name:\t{comm}\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0"));
                files.timed(of("schedstat"), format!("{} {} 7", ran_ns * sample + 1, waited_ns * sample));
            }
            files.put(
                format!("proc/{pid}/cmdline"),
                format!("qemu-system-x86_64\0-name\0guest=vm{vm},debug-threads=on\0"),
            );
            files.put(format!("proc/{pid}/cgroup"), format!("0::/machine.slice/vm{vm}"));
            files
                .put(format!("libvirt/vm{vm}.xml"), definition(vm, vcpus, workers, pinned.then_some((&own, &of_vcpu))));
        }
    }

    fn interrupts(&self, files: &mut Files, sample: u64) {
        let mut random = Random::new(self.seed ^ 1);
        let mut text: String = (0..self.cpus()).map(|cpu| format!(" CPU{cpu}")).collect();
        let mut softirq = vec![0; self.cpus() as usize];
        for queue in 0..self.irqs {
            let (irq, cpu) = (100 + queue, queue % self.cpus());
            let per_s = 200 + random.between(0, 9_000);
            softirq[cpu as usize] += per_s / 300 * 2 * sample;
            let counts = (0..self.cpus()).map(|at| if at == cpu { per_s * 2 * sample + 1 } else { 0 });
            let counts: String = counts.map(|count| format!(" {count}")).collect();
            let _ = write!(text, "\n {irq}:{counts} IR-PCI-MSI {irq}-edge eth0-TxRx-{queue}");
            files.put(format!("proc/irq/{irq}/smp_affinity_list"), cpu.to_string());
            files.put(format!("proc/irq/{irq}/effective_affinity_list"), cpu.to_string());
            files.put(format!("sys/class/net/eth0/device/msi_irqs/{irq}"), "msix");
        }
        files.timed("proc/interrupts", text);
        files.put("sys/class/net/eth0/device/numa_node", "0");
        let mut stat = "cpu  0 0 0 0 0 0 0 0 0 0".to_owned();
        for (cpu, softirq) in softirq.iter().enumerate() {
            let idle = (200 * sample).saturating_sub(*softirq);
            let _ = write!(stat, "\ncpu{cpu} 0 0 0 {idle} 0 0 {softirq} 0 0 0");
        }
        files.timed("proc/stat", stat);
    }
}

/// Where all vCPUs of a VM are, and where each is.
type Pins<'a> = (&'a base::CpuSet, &'a dyn Fn(u32) -> base::CpuSet);

fn definition(vm: u32, vcpus: u32, workers: u32, pins: Option<Pins<'_>>) -> String {
    let mut xml = format!("<domain type='kvm'><name>vm{vm}</name><vcpu>{vcpus}</vcpu><iothreads>1</iothreads>");
    if let Some((own, of_vcpu)) = pins {
        xml += "<cputune>";
        for vcpu in 0..vcpus {
            let _ = write!(xml, "<vcpupin vcpu='{vcpu}' cpuset='{}'/>", of_vcpu(vcpu));
        }
        let _ = write!(xml, "<emulatorpin cpuset='{own}'/></cputune>");
    }
    if workers > 0 {
        let _ = write!(
            xml,
            "<devices><interface type='bridge'><source bridge='br0'/><model type='virtio'/>\
             <driver name='vhost' queues='{workers}'/></interface></devices>"
        );
    }
    xml + "</domain>"
}
