//! How tables rank their rows for people: by what, how many, and which overview. Programs get all rows in their own order.

use base::{Shown, Table};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ranking {
    /// By what rows are ranked.
    pub sort: Sort,
    /// Rows to show of each ranked table; `None`: what the table suggests.
    pub top: Option<usize>,
    /// The overview to show; `None`: those that the number of vCPUs calls for.
    pub by: Option<By>,
}

base::named! {
    /// What puts a row first.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Sort {
        /// The most time.
        #[default]
        Time = "time",
        /// The most exits.
        Count = "count",
        /// The highest 99th percentile.
        P99 = "p99",
    }
}

base::named! {
    /// What a row of the overview is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum By {
        /// A VM: table `vms`.
        Vm = "vm",
        /// A vCPU: table `worst_vcpus`.
        Vcpu = "vcpu",
        /// An exit reason over all vCPUs: table `reasons`.
        Reason = "reason",
    }
}

/// Tables that give the overview of a host, with what each row is about.
const OVERVIEWS: &[(&str, By)] = &[("vms", By::Vm), ("reasons", By::Reason), ("worst_vcpus", By::Vcpu)];

/// Ranked tables beside the overviews.
const RANKED: &[&str] = &["exits", "exit_details"];

impl Sort {
    /// Columns that say it, in the order in which tables are asked for them: tables without percentiles rank by time.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Sort::Time => &["overhead_ns", "total_ns"],
            Sort::Count => &["exits", "count"],
            Sort::P99 => &["p99_ns", "overhead_ns", "total_ns"],
        }
    }

    fn bar(self) -> &'static str {
        if self == Sort::Count { "count_share" } else { "time_share" }
    }
}

impl Ranking {
    /// Sets how people see the ranked tables. Overviews are for more than `few` vCPUs, or for who asks for one.
    pub fn arrange(&self, tables: &mut [Table], overview: bool) {
        for table in tables {
            let about = OVERVIEWS.iter().find(|(name, _)| *name == table.spec.name).map(|(_, by)| *by);
            if about.is_none() && !RANKED.contains(&table.spec.name) {
                continue;
            }
            let largest_first = self.sort.columns().iter().copied().find(|name| table.column(name).is_some());
            let bar = table.column(self.sort.bar()).is_some().then(|| self.sort.bar());
            let wanted = match (about, self.by) {
                (Some(about), Some(by)) => about == by,
                (Some(_), None) => overview,
                (None, _) => true,
            };
            let shown = table.shown.take().filter(|_| wanted);
            table.shown = shown.map(|shown| Shown {
                largest_first,
                most_rows: self.top.unwrap_or(shown.most_rows),
                leads: about.is_some(),
                bar: bar.or(shown.bar),
                ..shown
            });
        }
    }
}
