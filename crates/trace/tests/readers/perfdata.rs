//! perf.data: damaged files, files that perf records and prints, and cuts of both.

mod cut;
mod damage;
mod made;
mod oracle;

use super::write::support;
