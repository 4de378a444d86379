//! Puts the report's script where the crate includes it: the built file in a full build, nothing in a slim one.
//!
//! Cargo never runs npm: `make full` builds the script first. A full build without it makes pages without interaction
//! and says so while it builds.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let built = Path::new("../../ui/dist-report/report.js");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", built.display());
    let mut script = String::new();
    if std::env::var_os("CARGO_FEATURE_FULL").is_some() {
        if built.exists() {
            // It goes between script tags, which these words would end.
            script = std::fs::read_to_string(built)?.replace("</script", "<\\/script").replace("<!--", "<\\!--");
        } else {
            println!(
                "cargo::warning=ui/dist-report/report.js is not built; pages of report --html will not be interactive"
            );
        }
    }
    let place = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&place).join("report.js"), script.trim_end())
}
