//! More than two: by pairs, through a switch, in halves that the other side can only read, and between users of one host.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use kvmscope_channel::grant::{self, Grant};
use kvmscope_channel::{
    Access, Consumer, FlowView, Flows, Forwarded, FrameBuf, Header, Lengths, Open, PeerFault, Port, Producer, Region,
    Ring, Shape, Switch,
};

fn shape() -> Shape {
    Shape::for_frames(64, 64, Lengths::Apart).unwrap()
}

fn ring(producer: u32, consumer: u32) -> Ring {
    Ring::shared(Header { shape: shape(), generation: 1, producer, consumer }).unwrap()
}

fn again(region: &Region, access: Access) -> Region {
    Region::received(region.file().try_clone_to_owned().unwrap(), access).unwrap()
}

fn sends(ring: &Ring) -> Producer<Open> {
    Producer::new(ring, Open::over(ring.halves()))
}

fn receives(ring: &Ring) -> Consumer<Open> {
    Consumer::new(ring, Open::over(ring.halves()))
}

#[test]
fn halves_carry_frames_though_each_side_can_only_read_the_other() {
    let header = Header { shape: shape(), generation: 1, producer: 0, consumer: 1 };
    let (front, back) = (Ring::producers_half(header).unwrap(), Ring::consumers_half(header).unwrap());
    assert!(front.is_read_only_for_others() && back.is_read_only_for_others());
    let ours = Ring::of_halves(front.clone(), again(&back, Access::Read)).unwrap();
    let theirs = Ring::of_halves(again(&front, Access::Read), back.clone()).unwrap();
    let (mut producer, mut consumer) = (sends(&ours), receives(&theirs));
    let mut out = FrameBuf::new(32, 64);
    for lap in 0..200u8 {
        assert_eq!(producer.push_batch(&[&[lap; 64][..], &[lap; 1]]).unwrap().frames, 2);
        assert_eq!(consumer.pop_batch(&mut out, 32), Ok(2));
        assert_eq!(out.iter().collect::<Vec<_>>(), [&[lap; 64][..], &[lap; 1]]);
    }
    assert!(consumer.arm().unwrap() && producer.push_batch(&[b"a"]).unwrap().kick, "its wish is in its own half");
    // Halves of two different rings.
    let other = Ring::consumers_half(Header { generation: 2, ..header }).unwrap();
    assert_eq!(Ring::of_halves(front, other).unwrap_err().to_string(), "the two halves describe different rings");
}

#[test]
fn every_machine_gets_what_was_sent_to_it_through_a_switch_and_nothing_else() {
    const MACHINES: u16 = 4;
    let rings: Vec<(Ring, Ring)> =
        (0..u32::from(MACHINES)).map(|machine| (ring(machine, 99), ring(99, machine))).collect();
    let ports = rings.iter().map(|(from, to)| Port { from: receives(from), to: sends(to) }).collect();
    let mut switch = Switch::new(ports, 32, 64);
    let mut flows = Flows::new(64, 0).unwrap();
    for machine in 0..MACHINES - 1 {
        flows.allow(u64::from(machine), machine).unwrap();
    }
    let mut view = FlowView::of(again(flows.region(), Access::Read)).unwrap();
    view.refresh().unwrap();
    let mut machines: Vec<_> = rings.iter().map(|(from, to)| (sends(from), receives(to))).collect();
    for (machine, (producer, _)) in machines.iter_mut().enumerate() {
        let frames: Vec<[u8; 2]> = (0..MACHINES as u8).map(|to| [to, machine as u8]).collect();
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        producer.push_batch(&frames).unwrap();
    }
    assert_eq!(switch.turn(|_, frame| view.route(u64::from(frame[0]))), []);
    let mut out = FrameBuf::new(32, 64);
    for (machine, (_, consumer)) in machines.iter_mut().enumerate() {
        consumer.pop_batch(&mut out, 32).unwrap();
        let from: Vec<u8> = if machine == 3 { vec![] } else { vec![0, 1, 2, 3] };
        let wanted: Vec<Vec<u8>> = from.iter().map(|&from| vec![machine as u8, from]).collect();
        assert_eq!(out.iter().collect::<Vec<_>>(), wanted);
    }
    // The last one has no rule.
    assert_eq!(switch.forwarded(), Forwarded { frames: 12, without_rule: 4, without_room: 0 });

    // One that breaks the rules loses its port, the others go on.
    rings[1].0.revoke();
    machines[0].0.push_batch(&[&[2, 7]]).unwrap();
    assert_eq!(switch.turn(|_, frame| view.route(u64::from(frame[0]))), [(1, PeerFault::Gone)]);
    machines[2].1.pop_batch(&mut out, 32).unwrap();
    assert_eq!(out.iter().collect::<Vec<_>>(), [[2, 7]]);
    assert!(switch.port(1).is_none() && switch.port(0).is_some());
    // A machine that does not look loses frames, and holds nobody up.
    for _ in 0..4 {
        machines[0].0.push_batch(&[&[2, 0][..]; 32]).unwrap();
        switch.turn(|_, frame| view.route(u64::from(frame[0])));
    }
    assert_eq!(switch.forwarded().without_room, 64);
}

#[test]
fn a_descriptor_comes_with_a_word_on_what_it_is_and_nothing_else_is_taken() {
    let (here, there) = UnixStream::pair().unwrap();
    let ours = ring(1, 2);
    grant::send(&here, Grant::ToReceive, 1, ours.region().file()).unwrap();
    let (what, with, file) = grant::receive(&there).unwrap().unwrap();
    assert_eq!((what, with), (Grant::ToReceive, 1));
    let mut consumer = receives(&Ring::of(Region::received(file, Access::ReadWrite).unwrap()).unwrap());
    sends(&ours).push_batch(&[b"over a socket"]).unwrap();
    assert_eq!(consumer.pop_batch(&mut FrameBuf::new(4, 64), 4), Ok(1));
    for message in [&b"kvmc\0\0\0\0"[..], b"who are you?", b"k"] {
        rustix::io::write(&here, message).unwrap();
        assert!(grant::receive(&there).is_err(), "{message:?}");
        // What is left of a longer one.
        let _ = rustix::net::recv(&there, &mut [0; 64][..], rustix::net::RecvFlags::DONTWAIT);
    }
    drop(here);
    assert!(grant::receive(&there).unwrap().is_none());
}

/// Not a test of its own: another user's process, which tries to open what it was not given.
#[test]
fn a_stranger() {
    if let Ok(path) = std::env::var("CHANNEL_STRANGER") {
        let opened = std::fs::File::open(path).map(|_| ());
        println!("opened: {opened:?}");
    }
}

#[test]
fn a_process_of_another_user_cannot_open_a_region_that_it_was_not_given() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start processes of other users");
        return;
    }
    let ring = ring(1, 2);
    // Its own program may lie where others cannot go.
    let copy = std::env::temp_dir().join(format!("kvmscope-stranger-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let door = format!("/proc/{}/fd/{}", std::process::id(), ring.region().file().as_raw_fd());
    let said = |user: u32| {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&copy);
        command.args(["a_stranger", "--exact", "--nocapture"]).env("CHANNEL_STRANGER", &door).stderr(Stdio::null());
        let output = command.current_dir("/").uid(user).gid(user).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (stranger, root) = (said(65534), said(0));
    std::fs::remove_file(&copy).unwrap();
    assert!(stranger.contains("opened: Err") && stranger.contains("ermission"), "{stranger}");
    assert!(root.contains("opened: Ok"), "root can, so the way was right: {root}");
}
