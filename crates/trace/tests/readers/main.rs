//! Readers and writers of traces, held against the programs whose formats they are.

mod coverage;
mod ctf_reader;
mod example;
mod perfdata;
mod text_cut;
mod text_damage;
mod text_fixtures;
mod text_oracle;
mod text_perf_script;
mod tracedat_cut;
mod tracedat_oracle;
mod write;
