//! A client's connection, whose end is noticed while nobody reads from it.
//!
//! HTTP's parser does not read while it holds bytes of a next request, be it only an empty line, and so does not see
//! that the client has gone.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How often a connection that nobody reads from is looked at. A look is no system call.
const LOOK: Duration = Duration::from_millis(50);

/// Both directions of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// Knows when the client has closed its side.
#[derive(Debug)]
pub(crate) struct End(Arc<OwnedReadHalf>);

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Connection { read: Arc::new(read), write }
    }

    pub(crate) fn end(&self) -> End {
        End(Arc::clone(&self.read))
    }
}

impl End {
    /// Until the client has closed its side, or the connection has broken.
    pub(crate) async fn come(self) {
        // Readiness to read is told again at once while there is something to read: waiting for it would not wait.
        while !matches!(self.0.ready(Interest::READABLE).now_or_never(), Some(Ok(now)) if now.is_read_closed())
        {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.read.as_ref().as_ref().poll_read_ready(context))?;
            match self.read.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome.map(|count| buffer.advance(count))),
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
