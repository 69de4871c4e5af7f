//! A second process of the controller, beside the stage's own.

use super::PATIENCE;
use super::port::Port;
use crate::scrape::{http_get, metric};
use crate::{Process, eventually};

/// A second process of the controller.
pub struct Another {
    pub(super) process: Process,
    pub(super) metrics: Port,
}

impl Another {
    /// Sends it a signal by name, such as `TERM`.
    pub fn signal(&mut self, name: &str) {
        self.process.signal(name).unwrap();
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) {
        eventually("the process has ended", PATIENCE, async || {
            !self.process.is_running()
        })
        .await;
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.process.log()).unwrap()
    }

    /// All it says of itself in numbers.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn metrics(&self) -> String {
        http_get(self.metrics.number(), "/metrics").await.unwrap()
    }

    /// As [`super::Stage::metric`].
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        metric(self.metrics.number(), name, labels).await
    }
}
