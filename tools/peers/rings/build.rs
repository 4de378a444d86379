//! Compiles the calls of `rte_ring`, which are inline functions of C, with the flags that DPDK's own packages give.

use std::path::Path;
use std::process::Command;

fn flags(what: &str) -> Vec<String> {
    let output = Command::new("pkg-config").args([what, "libdpdk"]).output().expect("pkg-config runs");
    assert!(output.status.success(), "libdpdk is not installed (Debian: libdpdk-dev)");
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

fn main() {
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = Path::new(&out).join("rte.o");
    let library = Path::new(&out).join("librte_calls.a");
    let done = Command::new("gcc").args(["-O3", "-c", "src/rte.c", "-o"]).arg(&object).args(flags("--cflags")).status();
    assert!(done.is_ok_and(|status| status.success()), "gcc compiles src/rte.c");
    let done = Command::new("ar").arg("rcs").args([&library, &object]).status();
    assert!(done.is_ok_and(|status| status.success()), "ar packs it");
    println!("cargo:rerun-if-changed=src/rte.c");
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=rte_calls");
    for directory in flags("--libs-only-L").iter().filter_map(|flag| flag.strip_prefix("-L")) {
        println!("cargo:rustc-link-search=native={directory}");
    }
    for library in ["rte_ring", "rte_eal"] {
        println!("cargo:rustc-link-lib={library}");
    }
}
