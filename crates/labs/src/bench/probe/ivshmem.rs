//! The server of QEMU's device `ivshmem-doorbell`: it hands over the memory, and the eventfd that is the interrupt.
//!
//! ```text
//! number (8 bytes, little endian)   with it
//! 0                                                       the protocol's version
//! 0                                                       the device's own id
//! -1                                the memory's file
//! 0                                 an eventfd            an interrupt of the device with that id
//! ```
//! QEMU connects as a client and never answers. One end of a pair of sockets is its, so all can be said before it starts, and no
//! path is needed. Source: docs/specs/ivshmem-spec.txt, QEMU 7.2, "Client-Server protocol".

use lab::Error;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

const VERSION: i64 = 0;
const OWN_ID: i64 = 0;
const MEMORY: i64 = -1;

/// What QEMU reads from, with everything said; the other end must live as long.
///
/// # Errors
/// If the operating system refuses.
pub(super) fn serve(memory: &File, interrupt: &EventFd) -> Result<(UnixStream, UnixStream), Error> {
    let refused = |error: &dyn std::fmt::Display| Error::refused("no connection for QEMU's device ivshmem", error);
    let (ours, theirs) = UnixStream::pair().map_err(|error| refused(&error))?;
    for (number, file) in
        [(VERSION, None), (OWN_ID, None), (MEMORY, Some(memory.as_raw_fd())), (OWN_ID, Some(interrupt.as_raw_fd()))]
    {
        let (bytes, files) = (number.to_le_bytes(), file.as_slice());
        let sent = ours.send_with_fds(&[&bytes[..]], files).map_err(|error| refused(&error))?;
        if sent != bytes.len() {
            return Err(refused(&"it took part of a message"));
        }
    }
    Ok((ours, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    /// A device as the specification describes it, which reads what a server says.
    struct Device {
        id: i64,
        memory: File,
        interrupts: Vec<File>,
    }

    impl Device {
        fn connect(socket: &UnixStream) -> Self {
            socket.set_nonblocking(true).unwrap();
            let next = || {
                let mut bytes = [0; 8];
                let (read, file) = socket.recv_with_fd(&mut bytes[..]).ok()?;
                (read == 8).then(|| (i64::from_le_bytes(bytes), file))
            };
            let (version, none) = next().unwrap();
            assert!(version == 0 && none.is_none(), "the version comes first, without a file");
            let (id, none) = next().unwrap();
            assert!((0..=65535).contains(&id) && none.is_none(), "an id of 16 bits, without a file");
            let (number, memory) = next().unwrap();
            assert_eq!(number, -1);
            let mut interrupts = Vec::new();
            while let Some((peer, file)) = next() {
                assert_eq!(peer, id, "no other device is there");
                interrupts.push(file.unwrap());
            }
            Self { id, memory: memory.unwrap(), interrupts }
        }
    }

    #[test]
    fn a_device_gets_memory_and_interrupt() {
        let mut memory = tempfile::tempfile().unwrap();
        memory.write_all(b"shared").unwrap();
        let interrupt = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        let (ours, theirs) = serve(&memory, &interrupt).unwrap();
        let mut device = Device::connect(&theirs);
        assert_eq!((device.id, device.interrupts.len()), (0, 1));
        device.memory.rewind().unwrap();
        let mut text = String::new();
        device.memory.read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared");
        interrupt.write(1).unwrap();
        interrupt.write(1).unwrap();
        let mut count = [0; 8];
        device.interrupts[0].read_exact(&mut count).unwrap();
        assert_eq!(u64::from_le_bytes(count), 2, "two that nobody took between are one event of 2");
        drop(ours);
    }
}
