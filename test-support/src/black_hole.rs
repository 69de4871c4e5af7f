//! A network that swallows all: connections stay, new ones are accepted, and not a byte arrives on the other side.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ControlPlane;

/// What one read takes.
const PIECE: usize = 16 * 1024;

/// Stands between processes and the API server until it is dropped. TLS goes through it, so that requests are what they were.
///
/// What was on its way when it was closed arrives when it is opened, as packets do that are sent again.
#[derive(Debug)]
pub struct BlackHole {
    kubeconfig: PathBuf,
    is_open: watch::Sender<bool>,
    /// Ends with the set.
    _serving: JoinSet<Infallible>,
}

impl BlackHole {
    /// One that is open as yet.
    ///
    /// # Errors
    ///
    /// When no port is free, or the kubeconfig cannot be written.
    pub async fn before(plane: &ControlPlane) -> anyhow::Result<Self> {
        let server = plane.server_url();
        let address = server.strip_prefix("https://").unwrap_or(&server);
        let upstream: SocketAddr = address.parse().context("the address of the API server")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let direct = std::fs::read_to_string(plane.kubeconfig_path())?;
        let kubeconfig = plane.folder().join(format!("black-hole-{port}.kubeconfig"));
        let here = format!("https://127.0.0.1:{port}");
        std::fs::write(&kubeconfig, direct.replace(&server, &here))?;
        let (is_open, gate) = watch::channel(true);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, upstream, gate));
        Ok(Self {
            kubeconfig,
            is_open,
            _serving: serving,
        })
    }

    /// Leads to the API server by this way.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on nothing arrives.
    pub fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// From now on all arrives.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}

async fn serve(
    listener: TcpListener,
    upstream: SocketAddr,
    gate: watch::Receiver<bool>,
) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((near, _)) = accepted {
                connections.spawn(connection(near, upstream, gate.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Until one side ends it, or the network is gone.
async fn connection(near: TcpStream, upstream: SocketAddr, mut gate: watch::Receiver<bool>) {
    if gate.wait_for(|is_open| *is_open).await.is_err() {
        return;
    }
    let Ok(far) = TcpStream::connect(upstream).await else {
        return;
    };
    let ((from_near, to_near), (from_far, to_far)) = (split(near), split(far));
    tokio::join!(
        pass_on(from_near, to_far, gate.clone()),
        pass_on(from_far, to_near, gate),
    );
}

async fn pass_on(
    mut from: ReadHalf<TcpStream>,
    mut to: WriteHalf<TcpStream>,
    mut gate: watch::Receiver<bool>,
) {
    let mut piece = vec![0; PIECE];
    while let Ok(length) = from.read(&mut piece).await {
        // Also the end of a connection is a packet.
        if gate.wait_for(|is_open| *is_open).await.is_err() || length == 0 {
            break;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            break;
        }
    }
    // Who does not hear any more has ended it.
    let _ = to.shutdown().await;
}
