//! What the page may do: show what it holds, and nothing else.
//!
//! A content security policy in a `meta` element (CSP Level 3): everything is forbidden, then the page's own style and
//! script are allowed by the SHA-256 of their bytes. So a name that would get past the escaping still could not run,
//! load or send anything.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The policy for a page with these styles and scripts.
pub(super) fn policy(styles: &[&str], scripts: &[&str]) -> String {
    let mut policy = String::from("default-src 'none'");
    for (kind, texts) in [("style-src", styles), ("script-src", scripts)] {
        if !texts.is_empty() {
            let hashes: Vec<String> = texts.iter().map(|text| hash(text)).collect();
            policy.push_str(&format!("; {kind} {}", hashes.join(" ")));
        }
    }
    if !scripts.is_empty() {
        // Pictures of charts that a reader copies out of the page.
        policy.push_str("; img-src data: blob:");
    }
    policy.push_str("; base-uri 'none'; form-action 'none'");
    policy
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_by_its_hash_is_allowed() {
        // `printf "alert('Hello, world.');" | openssl sha256 -binary | openssl base64`, as MDN shows it.
        let policy = policy(&[], &["alert('Hello, world.');"]);
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='")
        );
        assert!(!super::policy(&["p{}"], &[]).contains("script-src"));
    }
}
