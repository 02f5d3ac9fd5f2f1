//! What all requests share.

use std::sync::Arc;

use lone_energy::EnergyWatch;
use lone_engine::Scheduler;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::error::ApiError;
use crate::meter::Meter;
use crate::metrics::Metrics;
use crate::model::ServedModel;
use crate::options::ServeOptions;

/// How many large bodies are parsed at a time.
const LARGE_BODIES: usize = 2;

/// The server, as handlers get it.
pub(crate) type Shared = Arc<Server>;

/// A model, the engine that runs it, and how it is offered.
#[derive(Debug)]
pub struct Server {
    pub(crate) model: ServedModel,
    pub(crate) scheduler: Scheduler,
    pub(crate) slots: usize,
    pub(crate) options: ServeOptions,
    pub(crate) metrics: Metrics,
    /// Where there is one.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Whether answers that have not come to their end are cut off.
    pub(crate) ending: watch::Sender<bool>,
    /// Places for large bodies: fewer than threads that prepare requests, so that small ones do not wait for them.
    pub(crate) large_bodies: Arc<Semaphore>,
}

impl Server {
    /// Offers `model`, answered by `scheduler`, which takes `slots` jobs at a time.
    pub fn new(model: ServedModel, scheduler: Scheduler, slots: usize, options: ServeOptions) -> Self {
        let (metrics, ending) = (Metrics::default(), watch::Sender::new(false));
        let large_bodies = Arc::new(Semaphore::new(LARGE_BODIES));
        Server { model, scheduler, slots, options, metrics, meter: None, ending, large_bodies }
    }

    /// Shows what `watch` counts, if there is one, at `/metrics` and with answers.
    pub fn with_meter(mut self, watch: Option<EnergyWatch>) -> Self {
        self.meter = watch.map(|watch| Arc::new(Meter::new(watch)));
        if let Some(meter) = &self.meter {
            self.metrics.add_meter(Arc::clone(meter));
        }
        self
    }

    /// Does what takes long enough to hold up other requests, and waits for it as long as for a whole answer.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Server) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let server = Arc::clone(self);
        let limit = self.options.request_timeout;
        let outcome = tokio::time::timeout(limit, done(move || work(&server))).await;
        let outcome = outcome.map_err(|_| ApiError::timed_out(limit))?;
        outcome.unwrap_or_else(|| Err(ApiError::internal("the request could not be prepared")))
    }
}

/// What `work` comes to on a thread where it holds up nobody; `None` if it panicked. If nobody waits for it any more
/// when its turn comes, it is not done.
async fn done<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (waiting, outcome) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        if !waiting.is_closed() {
            waiting.send(work()).ok();
        }
    });
    outcome.await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn work_that_nobody_waits_for_is_not_done() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (begin, begun) = channel();
            let mut first = Box::pin(done(move || begun.recv().unwrap()));
            assert_eq!((&mut first).now_or_never(), None);
            let (tell, told) = channel();
            let in_vain = tell.clone();
            assert!(done(move || in_vain.send("in vain").unwrap()).now_or_never().is_none());
            begin.send(5).unwrap();
            assert_eq!(first.await, Some(5));
            done(move || tell.send("wanted").unwrap()).await.unwrap();
            assert_eq!(told.iter().collect::<Vec<_>>(), ["wanted"]);
            assert_eq!(done(|| panic!("as if preparing a request had failed badly")).await, None::<()>);
        });
    }
}
