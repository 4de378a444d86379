//! One made-up answer, rendered in every way.

mod brief;
mod csv;
mod drawing;
mod glance;
mod html;
mod json;
mod packets;
mod sample;
mod tables;
mod text;
