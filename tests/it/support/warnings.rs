//! What a piece of work logs at WARN.

use std::sync::{Arc, Mutex};

/// The WARN lines that a piece of work logs on this thread.
pub(crate) struct Warnings(Arc<Mutex<Vec<u8>>>, #[allow(dead_code)] tracing::subscriber::DefaultGuard);

struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Warnings {
    pub(crate) fn listen() -> Self {
        let text = Arc::new(Mutex::default());
        let sink = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .with_writer(move || Sink(Arc::clone(&sink)))
            .finish();
        Self(text, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|l| l.contains("delta_migrate")).map(str::to_owned).collect()
    }
}
