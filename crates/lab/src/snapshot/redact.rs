//! Takes out of command lines and domain descriptions what may be a secret.
//!
//! The rule, which prefers to take out too much: the value of `key=value` or `"key": "value"` goes if the key speaks of a
//! password, a secret, a token or a credential, or is one under which QEMU takes free data (`data`, `string`, `value`,
//! `key`); the argument after `--some-password` goes; user and password before `@` in an address go; in XML also the text
//! of `<entry>`, which carries firmware data, and of elements called after a secret. What goes is replaced by `[redacted]`.
//!
//! ```text
//! -object secret,id=s0,data=hunter2,format=raw     ->  -object secret,id=s0,data=[redacted],format=raw
//! -drive file=rbd:pool/disk:key=AQB3==,if=virtio   ->  -drive file=rbd:pool/disk:key=[redacted],if=virtio
//! ```
//! Sources: QEMU's manual, "Device authentication"/`-object secret`, `-fw_cfg`, `-smbios type=11`; systemd's
//! `systemd-creds(1)`, which takes credentials from both.

/// What stands in place of what was taken out.
pub(crate) const REDACTED: &str = "[redacted]";

/// A key that has one of these in it, whatever the case of its letters.
const IN_KEY: &[&str] =
    &["passw", "passphrase", "secret", "token", "credential", "privkey", "private-key", "private_key"];

const KEY: &[&str] = &["data", "string", "value", "key", "pw", "pwd", "pass", "psk", "chap"];

/// Where a value without quotes ends.
#[derive(Clone, Copy)]
enum Ends {
    /// At a comma; a doubled one is part of it (QEMU's options).
    Comma,
    /// At a blank (the kernel's command line).
    Blank,
    /// At a blank or the end of a tag.
    Tag,
}

/// A command line as the kernel shows it, arguments ended by zero bytes.
pub(super) fn arguments(text: &str) -> String {
    let mut after_key = false;
    let redacted = text.split('\0').map(|argument| {
        let hide = after_key && !argument.starts_with('-') && !argument.is_empty();
        after_key = argument.starts_with('-') && is_secret(argument.trim_start_matches('-'));
        if hide { REDACTED.to_owned() } else { without_users(&without_values(argument, Ends::Comma)) }
    });
    redacted.collect::<Vec<_>>().join("\0")
}

/// The kernel's command line.
pub(super) fn words(text: &str) -> String {
    without_users(&without_values(text, Ends::Blank))
}

/// A domain's description.
pub(super) fn xml(text: &str) -> String {
    without_users(&without_texts(&without_values(text, Ends::Tag)))
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    KEY.contains(&key.as_str()) || IN_KEY.iter().any(|part| key.contains(part))
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Replaces values of secret keys. All places where the text is cut are before or after an ASCII character.
fn without_values(text: &str, ends: Ends) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let key = rest.iter().take_while(|byte| is_of_key(**byte)).count();
        if key == 0 {
            let plain = rest.iter().take_while(|byte| !is_of_key(**byte)).count();
            out.push_str(&text[at..at + plain]);
            at += plain;
            continue;
        }
        let quote = usize::from(matches!(rest.get(key), Some(b'"' | b'\'')));
        let assigned = matches!(rest.get(key + quote), Some(b'=' | b':'));
        let mut value = at + key;
        if assigned && is_secret(&text[at..at + key]) {
            value += quote + 1;
            value += bytes[value..].iter().take_while(|byte| **byte == b' ').count();
            let end = end_of_value(bytes, value, ends);
            out.push_str(&text[at..value]);
            out.push_str(&format!("{0}{REDACTED}{0}", quote_at(bytes, value)));
            at = end;
        } else {
            out.push_str(&text[at..value]);
            at = value;
        }
    }
    out
}

fn quote_at(bytes: &[u8], at: usize) -> &'static str {
    match bytes.get(at) {
        Some(b'"') => "\"",
        Some(b'\'') => "'",
        _ => "",
    }
}

/// Where the value that begins at `at` ends, a closing quote included.
fn end_of_value(bytes: &[u8], at: usize, ends: Ends) -> usize {
    let quote = quote_at(bytes, at).as_bytes().first().copied();
    let mut end = at + usize::from(quote.is_some());
    while end < bytes.len() {
        let (byte, next) = (bytes[end], bytes.get(end + 1));
        match (quote, ends) {
            (Some(_), _) if byte == b'\\' => end += 1,
            (Some(quote), _) if byte == quote => return end + 1,
            (Some(_), _) => {}
            (None, Ends::Comma) if byte == b',' && next == Some(&b',') => end += 1,
            (None, Ends::Comma) if byte == b',' => break,
            (None, Ends::Blank) if byte.is_ascii_whitespace() => break,
            (None, Ends::Tag) if byte.is_ascii_whitespace() || byte == b'>' || byte == b'<' => break,
            (None, _) => {}
        }
        end += 1;
    }
    end.min(bytes.len())
}

/// Replaces `user:password` before `@` in `scheme://user:password@host`.
fn without_users(text: &str) -> String {
    let mut parts = text.split("//");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let host = part.find(['/', ' ', ',', '"', '\'', '<', '\n']).unwrap_or(part.len());
        let from = part[..host].rfind('@').unwrap_or(0);
        out.push_str("//");
        out.push_str(if from > 0 { REDACTED } else { "" });
        out.push_str(&part[from..]);
    }
    out
}

/// Replaces the text of elements that carry free data.
fn without_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split('<').enumerate() {
        let name: String = part.chars().take_while(|character| u8::try_from(*character).is_ok_and(is_of_key)).collect();
        out.push_str(if index > 0 { "<" } else { "" });
        match part.split_once('>') {
            Some((tag, inside)) if !tag.ends_with('/') && (name == "entry" || is_secret(&name)) => {
                out.push_str(tag);
                out.push('>');
                out.push_str(if inside.trim().is_empty() { inside } else { REDACTED });
            }
            _ => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let cases = [
            ("-name\0guest=web,debug-threads=on", "-name\0guest=web,debug-threads=on"),
            ("-object\0secret,id=s0,data=hunter2,format=raw", "-object\0secret,id=s0,data=[redacted],format=raw"),
            ("secret,data=a,,b,id=s0", "secret,data=[redacted],id=s0"),
            (
                "-drive\0file=rbd:p/d:id=x:key=AQ==:auth=no,if=virtio",
                "-drive\0file=rbd:p/d:id=x:key=[redacted],if=virtio",
            ),
            (
                r#"{"qom-type":"secret","data":"hu\"nter2","id":"s"}"#,
                r#"{"qom-type":"secret","data":"[redacted]","id":"s"}"#,
            ),
            ("-spice\0port=1,password=hunter2", "-spice\0port=1,password=[redacted]"),
            ("-fw_cfg\0name=opt/x,string=hunter2", "-fw_cfg\0name=opt/x,string=[redacted]"),
            ("type=11,value=io.systemd.credential:a=hunter2", "type=11,value=[redacted]"),
            ("--api-token\0hunter2\0-m\x00512", "--api-token\0[redacted]\0-m\x00512"),
            ("file=https://me:hunter2@host/disk", "file=https://[redacted]@host/disk"),
            ("-netdev\0tap,id=n0,fds=3:4,vhost=on,vhostfds=5:6", "-netdev\0tap,id=n0,fds=3:4,vhost=on,vhostfds=5:6"),
            ("-append\0root=/dev/vda my.PassWord=a b", "-append\0root=/dev/vda my.PassWord=[redacted]"),
            ("data=", "data=[redacted]"),
            ("väter=ä,password=ö", "väter=ä,password=[redacted]"),
        ];
        for (given, expected) in cases {
            assert_eq!(arguments(given), expected);
        }
    }

    #[test]
    fn the_kernels_command_line_goes_on_after_a_secret() {
        let given = "quiet rd.iscsi.password=\"a b\" isolcpus=2-3 token=x nohz_full=2-3\n";
        let expected = "quiet rd.iscsi.password=\"[redacted]\" isolcpus=2-3 token=[redacted] nohz_full=2-3\n";
        assert_eq!(words(given), expected);
    }

    #[test]
    fn a_domain_keeps_its_pins() {
        let given = "<graphics type='vnc' passwd='hunter2' port='5900'/><vcpupin vcpu='0' cpuset='2'/>\
                     <entry name='opt/x'>hunter2</entry><secret type='ceph' uuid='1'/><password>hunter2</password>";
        let expected = "<graphics type='vnc' passwd='[redacted]' port='5900'/><vcpupin vcpu='0' cpuset='2'/>\
                        <entry name='opt/x'>[redacted]</entry><secret type='ceph' uuid='1'/><password>[redacted]</password>";
        assert_eq!(xml(given), expected);
    }
}
