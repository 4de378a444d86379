//! The program `kvmscope`.

fn main() -> std::process::ExitCode {
    kvmscope_cli::main()
}
