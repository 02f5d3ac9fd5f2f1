//! What all requests share.

use std::sync::Arc;

use lone_energy::EnergyWatch;
use lone_engine::Scheduler;
use tokio::sync::watch;

use crate::error::ApiError;
use crate::meter::Meter;
use crate::metrics::Metrics;
use crate::model::ServedModel;
use crate::options::ServeOptions;

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
}

impl Server {
    /// Offers `model`, answered by `scheduler`, which takes `slots` jobs at a time.
    pub fn new(model: ServedModel, scheduler: Scheduler, slots: usize, options: ServeOptions) -> Self {
        let (metrics, ending) = (Metrics::default(), watch::Sender::new(false));
        Server { model, scheduler, slots, options, metrics, meter: None, ending }
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
        let outcome = tokio::time::timeout(limit, tokio::task::spawn_blocking(move || work(&server))).await;
        let outcome = outcome.map_err(|_| ApiError::timed_out(limit))?;
        outcome.unwrap_or_else(|_| Err(ApiError::internal("the request could not be prepared")))
    }
}
