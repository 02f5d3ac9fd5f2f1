//! Connections: accepted one by one, watched for idleness, and let finish when the server is to stop.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use crate::connection::Connection;
use crate::options::ServeOptions;
use crate::router::router;
use crate::state::Server;

/// How often somebody who waits for the end asks whether it has come.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// A pause after a connection could not be accepted, as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for the last words to those whose answers are cut off.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Threads that requests are prepared on: more would not be faster, and each keeps memory.
const PREPARING_THREADS: usize = 4;

/// Serves those who connect to `listener` until `is_stopping`, and then until the answers that are being given have
/// come to their end, or had their time.
///
/// # Errors
/// If the system refuses threads, or `listener` cannot be used.
pub fn serve(
    listener: std::net::TcpListener,
    server: Server,
    is_stopping: impl Fn() -> bool + Send + 'static,
) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(PREPARING_THREADS).enable_all().build()?;
    listener.set_nonblocking(true)?;
    let stop = async move {
        while !is_stopping() {
            tokio::time::sleep(STOP_CHECK).await;
        }
    };
    let outcome = runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let server = Arc::new(server);
        let connections = accept(listener, &server, stop).await;
        // Who is being answered is answered to the end; who comes now is told that it is too late.
        server.scheduler.close();
        let limit = server.options.shutdown_timeout;
        let mut ended = pin!(connections.shutdown());
        if tokio::time::timeout(limit, &mut ended).await.is_err() {
            tracing::warn!(
                seconds = limit.as_secs_f64(),
                "what was still open was cut off by the end of the server"
            );
            server.ending.send_replace(true);
            tokio::time::timeout(LAST_WORDS, ended).await.ok();
        }
        Ok(())
    });
    // What is still being prepared is for nobody.
    runtime.shutdown_background();
    outcome
}

/// Accepts connections until `stop`, and returns those there are then.
async fn accept(
    listener: TcpListener,
    server: &Arc<Server>,
    stop: impl Future<Output = ()>,
) -> GracefulShutdown {
    let options = &server.options;
    let router = router(Arc::clone(server));
    let places = Arc::new(Semaphore::new(options.most_connections));
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stop);
    let mut is_failing = false;
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => return connections,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Said once, until one could be.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "connections cannot be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        is_failing = false;
        // Tokens are to arrive as they are made.
        stream.set_nodelay(true).ok();
        let stream = Connection::new(stream);
        let end = stream.end();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.idle_timeout)
            .serve_connection(timed(stream, options), TowerToHyperService::new(router.clone()));
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                outcome = connection => if let Err(error) = outcome {
                    tracing::debug!(%error, "a connection broke");
                },
                // Whoever has closed its side hears no answer, and what was computed for it stops.
                () = end.come() => tracing::debug!("a client has gone"),
            }
            drop(place);
        });
    }
}

type Io = TokioIo<std::pin::Pin<Box<TimeoutStream<Connection>>>>;

/// A stream that ends when its client does not read what is written to it.
fn timed(connection: Connection, options: &ServeOptions) -> Io {
    let mut stream = TimeoutStream::new(connection);
    stream.set_write_timeout(Some(options.write_timeout));
    TokioIo::new(Box::pin(stream))
}
