//! `kvmscope serve`: a dashboard over the recordings of a folder, and the API behind it.
//!
//! Only the full program has the server; the slim one takes the same arguments and says how to get it.

use crate::arguments::BudgetOption;
use clap::Args;
use process::exit::Exit;
use std::net::IpAddr;
use std::path::PathBuf;

/// Show the recordings of a folder in a browser
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope serve\n  \
    kvmscope serve recordings --port 0\n  \
    kvmscope serve recordings --listen 0.0.0.0\n  \
    kvmscope serve recordings --allow-upload --upload-limit 500\n  \
    kvmscope serve recordings --budget kvm4nfv-2015\n\n\
    Without --listen, only this machine can reach it; over ssh: ssh -L 7890:localhost:7890 host\n\
    Ctrl-C, SIGTERM and a hangup of its terminal stop it. Exit status: 0 stopped, 1 the server could not start, 2 wrong usage.")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the slim program only parses them"))]
pub(crate) struct Serve {
    /// The folder; recordings and bare traces in it and its subfolders are shown
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The port; 0 takes any free port
    #[arg(long, default_value = "7890")]
    port: u16,
    /// The address to listen on; if other machines can reach it, every request needs a token, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Accept traces dropped onto the page, and keep them in DIR
    #[arg(long)]
    allow_upload: bool,
    /// Maximum size of an uploaded trace, in MiB
    #[arg(long, value_name = "MIB", default_value = "200", requires = "allow_upload")]
    upload_limit: u32,
    #[command(flatten)]
    budget: BudgetOption,
}

impl Serve {
    /// Says that this program has no server.
    #[cfg(not(feature = "full"))]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        anyhow::bail!("this is the slim build, without the server; `make full` builds the full one")
    }

    /// Serves until a signal ends it.
    #[cfg(feature = "full")]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        const BYTES_PER_MIB: u64 = 1 << 20;
        let options = ::serve::Options {
            folder: self.folder.clone(),
            address: (self.listen, self.port).into(),
            token: if self.listen.is_loopback() { None } else { Some(token()?) },
            upload_bytes: self.allow_upload.then(|| u64::from(self.upload_limit) * BYTES_PER_MIB),
            budget: self.budget.read()?,
        };
        let server = ::serve::Server::start(&options)?.ending_on(&process::interrupt::signals())?;
        println!("{}", server.url());
        if let Some(token) = &options.token {
            println!("The token, for programs (Authorization: Bearer): {token}");
        }
        server.until_signalled()?;
        Ok(Exit::Answered)
    }
}

/// 128 bits that nobody can guess, in hexadecimal.
#[cfg(feature = "full")]
fn token() -> anyhow::Result<String> {
    use std::io::Read;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
