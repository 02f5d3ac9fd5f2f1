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
use tokio::sync::watch;

/// How often a connection that nobody reads from is looked at. A look is no system call.
const LOOK: Duration = Duration::from_millis(50);

/// Both directions of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
    /// Whether somebody waits to read more, and so will hear of the end.
    awaited: watch::Sender<bool>,
}

/// Knows when the client has closed its side, where nobody waits to hear of it.
#[derive(Debug)]
pub(crate) struct End {
    read: Arc<OwnedReadHalf>,
    awaited: watch::Receiver<bool>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Connection { read: Arc::new(read), write, awaited: watch::Sender::new(false) }
    }

    pub(crate) fn end(&self) -> End {
        End { read: Arc::clone(&self.read), awaited: self.awaited.subscribe() }
    }

    fn poll_bytes(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.read.as_ref().as_ref().poll_read_ready(context))?;
            match self.read.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome.map(|count| buffer.advance(count))),
            }
        }
    }
}

impl End {
    /// Until the client has closed its side, or the connection has broken.
    pub(crate) async fn come(mut self) {
        while !self.is_here() {
            tokio::time::sleep(LOOK).await;
            // Fails when the connection has been dropped, which its owner need not be told.
            self.awaited.wait_for(|is_awaited| !is_awaited).await.ok();
        }
    }

    fn is_here(&self) -> bool {
        // Readiness to read is told again at once while there is something to read: waiting for it would not wait.
        let now = self.read.ready(Interest::READABLE).now_or_never();
        matches!(now, Some(Ok(now)) if now.is_read_closed())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = self.poll_bytes(context, buffer);
        let is_awaited = outcome.is_pending();
        self.awaited.send_if_modified(|before| std::mem::replace(before, is_awaited) != is_awaited);
        outcome
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
