//! Serves the convention; requests go to standard output, logs to standard error.

use convention_webhook_sdk::{Server, init_logs};
use dumper::Dumper;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_logs();
    let dumper = Dumper::to(std::io::stdout());
    let server = Server::from_env()?.convention("/", dumper);
    Ok(server.serve().await?)
}
