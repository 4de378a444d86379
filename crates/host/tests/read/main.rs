//! Hosts, read from trees, dumps and what people paste.

mod budgets;
mod configuration;
mod damage;
mod libvirt_xml;
mod lstopo;
mod machine;
mod paste;
mod topologies;
mod trees;
