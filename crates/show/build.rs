//! Puts the report's script and its style where the crate includes it: the built files in a full build, nothing in a slim one.
//!
//! Cargo never runs npm: `make full` builds the script first. A full build without them makes pages without
//! interaction and says so while it builds.

use std::path::Path;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let full = std::env::var_os("CARGO_FEATURE_FULL").is_some();
    for (name, tag) in [("report.js", "script"), ("report.css", "style")] {
        let built = Path::new("../../ui/dist-report").join(name);
        let mut text = String::new();
        if full {
            println!("cargo::rerun-if-changed={}", built.display());
        }
        if full && built.exists() {
            // It goes between tags, which these words would end.
            text = std::fs::read_to_string(built)?.replace(&format!("</{tag}"), &format!("<\\/{tag}"));
            text = text.replace("<!--", "<\\!--");
        } else if full {
            println!("cargo::warning={} is not built; pages of report --html stay static", built.display());
        }
        std::fs::write(Path::new(&out).join(name), text.trim_end())?;
    }
    Ok(())
}
