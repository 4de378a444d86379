use super::*;
use lab::journal::Reverted;
use lab::journal::pci::PciDriver;
use std::os::unix::fs::symlink;

const ADDRESS: &str = "0000:3b:00.0";

/// A machine with one card, `ens1f0`, and one interface without PCI, `veth7`.
struct Tree {
    directory: tempfile::TempDir,
    host: Host,
}

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let host = Host::at(directory.path());
        let device = host.sys.join("devices/pci0000:3a").join(ADDRESS);
        let pci = host.sys.join("bus/pci");
        std::fs::create_dir_all(device.join("net/ens1f0")).unwrap();
        for made in ["devices", "drivers/i40e", "drivers/vfio-pci"] {
            std::fs::create_dir_all(pci.join(made)).unwrap();
        }
        std::fs::create_dir_all(host.sys.join("class/net/veth7")).unwrap();
        std::fs::create_dir_all(host.sys.join("kernel/iommu_groups/7")).unwrap();
        std::fs::create_dir_all(host.proc.join("self/net")).unwrap();
        symlink(&device, pci.join("devices").join(ADDRESS)).unwrap();
        symlink(&pci, device.join("subsystem")).unwrap();
        symlink(pci.join("drivers/i40e"), device.join("driver")).unwrap();
        symlink(host.sys.join("kernel/iommu_groups/7"), device.join("iommu_group")).unwrap();
        symlink(&device, device.join("net/ens1f0/device")).unwrap();
        symlink(device.join("net/ens1f0"), host.sys.join("class/net/ens1f0")).unwrap();
        std::fs::write(device.join("class"), "0x020000\n").unwrap();
        std::fs::write(device.join("local_cpulist"), "8-15\n").unwrap();
        Self { directory, host }
    }

    fn find(&self, name: &str) -> Result<Card, String> {
        Card::find(name, &self.host).map_err(|error| error.to_string())
    }

    fn device(&self) -> PathBuf {
        self.host.sys.join("bus/pci/devices").join(ADDRESS)
    }

    /// What was written to a file of the kernel's.
    fn written(&self, file: &str) -> String {
        std::fs::read_to_string(self.directory.path().join("sys/bus/pci").join(file)).unwrap_or_default()
    }

    fn driver(&self, name: &str) {
        let link = self.device().join("driver");
        let _ = std::fs::remove_file(&link);
        symlink(self.host.sys.join("bus/pci/drivers").join(name), link).unwrap();
    }
}

#[test]
fn a_port_is_found_by_its_name_and_by_its_address_with_the_cpus_of_its_node() {
    let tree = Tree::new();
    let (named, addressed) = (tree.find("ens1f0").unwrap(), tree.find(ADDRESS).unwrap());
    assert_eq!(named.way, addressed.way);
    assert_eq!((named.devargs(0), named.allowed()), (ADDRESS.to_owned(), Some(format!("-a {ADDRESS}"))));
    assert_eq!(named.near().map(ToString::to_string).as_deref(), Some("8-15"));
    assert_eq!(named.words(), "ens1f0, PCI 0000:3b:00.0, taken from i40e");
    let socket = tree.find("veth7").unwrap();
    assert_eq!((socket.devargs(1), socket.allowed()), ("net_af_packet1,iface=veth7".to_owned(), None));
}

#[test]
fn what_is_not_there_or_used_by_the_host_is_refused_with_what_to_do() {
    let tree = Tree::new();
    assert!(tree.find("ens9").unwrap_err().contains("interfaces here: ens1f0, veth7"));
    assert!(tree.find("../x").unwrap_err().contains("neither an interface nor a PCI address"));
    let net = tree.host.proc.join("self/net");
    std::fs::write(net.join("route"), "Iface\tDestination\nens1f0\t0000FEA9\t00000000\n").unwrap();
    assert!(tree.find(ADDRESS).unwrap_err().contains("this host uses ens1f0 itself"));
    std::fs::write(net.join("route"), "Iface\tDestination\nens1f01\t0000FEA9\n").unwrap();
    let address = |scope: &str| format!("fe800000000000000000000000000001 02 40 {scope} 80 ens1f0\n");
    std::fs::write(net.join("if_inet6"), address("20")).unwrap();
    assert!(tree.find("ens1f0").is_ok(), "every link has one of its own");
    std::fs::write(net.join("if_inet6"), address("00")).unwrap();
    assert!(tree.find("ens1f0").unwrap_err().contains("this host uses"));
    std::fs::write(net.join("if_inet6"), "").unwrap();
    symlink("../br0", tree.device().join("net/ens1f0/master")).unwrap();
    assert!(tree.find("ens1f0").unwrap_err().contains("part of br0"));
    std::fs::remove_file(tree.device().join("net/ens1f0/master")).unwrap();
    std::fs::remove_file(tree.device().join("iommu_group")).unwrap();
    assert!(tree.find("ens1f0").unwrap_err().contains("no IOMMU group"));
    tree.driver("mlx5_core");
    assert!(tree.find("ens1f0").is_ok(), "this driver shares its port");
    std::fs::write(tree.device().join("class"), "0x010802\n").unwrap();
    assert!(tree.find(ADDRESS).unwrap_err().contains("no network card"));
}

#[test]
fn a_card_is_given_to_vfio_and_back_to_its_driver_however_far_that_went() {
    let tree = Tree::new();
    let bound = PciDriver { address: ADDRESS.into(), driver: Some("i40e".into()) };
    bound.give_to_vfio(&tree.host.sys).unwrap();
    let overriding = format!("devices/{ADDRESS}/driver_override");
    assert_eq!(tree.written(&overriding), "vfio-pci\n");
    assert_eq!((tree.written("drivers/i40e/unbind"), tree.written("drivers_probe")), (ADDRESS.into(), ADDRESS.into()));
    // Killed before anything was unbound: there is nothing to take from its own driver.
    std::fs::remove_file(tree.host.sys.join("bus/pci/drivers/i40e/unbind")).unwrap();
    assert_eq!(bound.put_back(&tree.host.sys), Reverted::Done);
    assert_eq!((tree.written(&overriding), tree.written("drivers/i40e/unbind")), ("\n".into(), String::new()));
    tree.driver("vfio-pci");
    std::fs::remove_file(tree.host.sys.join("bus/pci/drivers_probe")).unwrap();
    assert_eq!(bound.put_back(&tree.host.sys), Reverted::Done);
    assert_eq!(
        (tree.written("drivers/vfio-pci/unbind"), tree.written("drivers_probe")),
        (ADDRESS.into(), ADDRESS.into())
    );
    tree.driver("ixgbe");
    assert!(matches!(bound.put_back(&tree.host.sys), Reverted::LeftAlone(why) if why.contains("ixgbe")));
    std::fs::remove_dir(tree.host.sys.join("bus/pci/drivers/vfio-pci")).ok();
    std::fs::remove_dir_all(tree.host.sys.join("bus/pci/drivers/vfio-pci")).ok();
    assert!(bound.give_to_vfio(&tree.host.sys).unwrap_err().to_string().contains("modprobe vfio-pci"));
}
