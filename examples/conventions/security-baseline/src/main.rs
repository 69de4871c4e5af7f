//! Serves the convention.

use convention_webhook_sdk::{Server, init_logs};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_logs();
    let server = Server::from_env()?.convention("/", security_baseline::security_baseline);
    Ok(server.serve().await?)
}
