//! Which modules must be loaded, in which order, to have a given one?
//!
//! In: the directory of a kernel's modules. Out: paths, those first that others need. A module names those it needs in
//! its section `.modinfo`, as `depends=a,b`; `modules.dep` says the same, but it is made when a package is installed, and
//! ours are only unpacked.

use super::packages::Kernel;
use lab::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The modules of a kernel, by name.
pub struct Modules {
    paths: BTreeMap<String, PathBuf>,
}

impl Modules {
    /// Looks for all modules.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn of(kernel: &Kernel) -> Result<Self, Error> {
        let mut paths = BTreeMap::new();
        let mut directories = vec![kernel.modules.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))? {
                let path = entry.map_err(|error| Error::io(&directory, error))?.path();
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                if path.is_dir() && !path.is_symlink() {
                    directories.push(path);
                } else if let Some((name, "" | ".xz" | ".zst")) = name.split_once(".ko") {
                    paths.insert(module_name(name), path);
                }
            }
        }
        Ok(Self { paths })
    }

    /// The modules that `wanted` need and themselves, in an order in which they load. One that is not there is built
    /// into the kernel, or the kernel will say so when something that needs it is loaded.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn in_order(&self, wanted: &[&str]) -> Result<Vec<(String, PathBuf)>, Error> {
        let mut order = Vec::new();
        for name in wanted {
            self.visit(&module_name(name), &mut Vec::new(), &mut order)?;
        }
        Ok(order)
    }

    fn visit(&self, name: &str, above: &mut Vec<String>, order: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        if order.iter().any(|(done, _)| done == name) || above.iter().any(|waiting| waiting == name) {
            return Ok(());
        }
        above.push(name.to_owned());
        for needed in needs(&content(path)?) {
            self.visit(&needed, above, order)?;
        }
        above.pop();
        order.push((name.to_owned(), path.clone()));
        Ok(())
    }
}

/// The kernel takes `-` and `_` in the name of a module for the same.
fn module_name(name: &str) -> String {
    name.replace('-', "_")
}

/// The bytes of a module, unpacked.
///
/// # Errors
/// If it cannot be read, or if the program that unpacks it does not start.
pub fn content(path: &Path) -> Result<Vec<u8>, Error> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return std::fs::read(path).map_err(|error| Error::io(path, error)),
    };
    let output = std::process::Command::new(program).arg("-dcq").arg(path).output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(_) => Err(Error::Malformed(format!("{program} cannot decompress {}", path.display()))),
        Err(error) => {
            Err(Error::Absent(format!("{program} does not start ({error}); the modules are compressed with it")))
        }
    }
}

/// Names after `depends=` in a module's information.
fn needs(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|bytes| bytes == KEY) else { return Vec::new() };
    let value = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(module_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("kernel/arch");
        std::fs::create_dir_all(&inside).unwrap();
        let write = |name: &str, depends: &str| {
            std::fs::write(inside.join(name), format!("ELF\0license=GPL\0depends={depends}\0name=x\0")).unwrap();
        };
        write("kvm-amd.ko", "kvm,ccp");
        write("kvm.ko", "irqbypass");
        write("ccp.ko", "rng-core,kvm-amd");
        write("irqbypass.ko", "");
        write("rng-core.ko", "built_in");
        write("unwanted.ko", "kvm");
        let kernel = Kernel { version: String::new(), image: PathBuf::new(), modules: root.path().to_owned() };
        let order = Modules::of(&kernel).unwrap().in_order(&["kvm-amd", "kvm"]).unwrap();
        let names: Vec<_> = order.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["irqbypass", "kvm", "rng_core", "ccp", "kvm_amd"]);
    }
}
