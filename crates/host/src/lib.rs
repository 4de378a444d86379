//! What a machine is: topology, memory, KVM's features, tasks and their pins, interrupts, NICs, domains.
//!
//! Everything is read from a snapshot, a directory that holds copies of `/proc` and `/sys` files. The live machine is a
//! snapshot taken a moment ago.
