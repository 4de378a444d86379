//! How does a bare kernel become a host that runs KVM? File systems and modules; and how it is switched off.

use lab::Error;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use std::ffi::CString;
use std::fs::File;

pub(crate) fn mount_all() -> Result<(), Error> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tracefs", "/sys/kernel/tracing"),
        ("tmpfs", "/tmp"),
    ] {
        mount("none", place, kind, MountFlags::empty(), None).map_err(|error| Error::io(place, error.into()))?;
    }
    Ok(())
}

/// Loads `modules`, in their order, with those of the `parameters` that name them.
pub(super) fn load(modules: &[String], parameters: &[(String, String)]) -> Result<(), Error> {
    for name in modules {
        let path = format!("/modules/{name}.ko");
        let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
        let parameters = parameters.iter().find(|(module, _)| module == name);
        let parameters = parameters.map_or("", |(_, parameters)| parameters.as_str());
        let text = CString::new(parameters).map_err(|error| Error::io(&path, error.into()))?;
        match finit_module(&file, &text, 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            // kvm_amd needs ccp only for encrypted guests, whose hardware nobody emulates.
            Err(rustix::io::Errno::NODEV) if name == "ccp" => {}
            Err(error) => {
                return Err(Error::refused(
                    format_args!("the machine's kernel does not load {name} {parameters}"),
                    error,
                ));
            }
        }
    }
    Ok(())
}

/// Switches the machine off, once its last words are out. A machine that cannot is stopped from outside.
pub(crate) fn power_off() -> ! {
    // A console that is no terminal has nothing to wait for.
    let _ = rustix::termios::tcdrain(std::io::stdout());
    loop {
        let _ = reboot(RebootCommand::PowerOff);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}
