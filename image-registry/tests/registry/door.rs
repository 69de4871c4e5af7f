//! Where connections to a registry come in, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use test_support::TestAuthority;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) struct Door {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    /// Whether new connections have TLS.
    secure: Arc<AtomicBool>,
}

impl Door {
    pub(crate) async fn open(authority: Option<&TestAuthority>) -> Self {
        let server = |authority: &TestAuthority| {
            let names = ["127.0.0.1", "localhost"];
            authority.sign(&names).unwrap().server_config().unwrap()
        };
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            tls: authority.map(|it| TlsAcceptor::from(Arc::new(server(it)))),
            secure: Arc::new(AtomicBool::new(authority.is_some())),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn secure(&self) -> Arc<AtomicBool> {
        self.secure.clone()
    }
}

impl axum::serve::Listener for Door {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let (tcp, address) = self.listener.accept().await.unwrap();
            let tls = self
                .tls
                .as_ref()
                .filter(|_| self.secure.load(Ordering::SeqCst));
            match tls {
                None => return (Connection::Plain(tcp), address),
                // A client that does not trust us, or speaks no TLS, goes.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(tcp).await {
                        return (Connection::Tls(Box::new(stream)), address);
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(crate) enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

trait Both: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Both for T {}

impl Connection {
    fn inner(&mut self) -> Pin<&mut dyn Both> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().inner().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().inner().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner().poll_shutdown(cx)
    }
}
