//! Tables that somebody listed by name.

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use super::{Found, Source};
use crate::error::Error;

/// A list of tables, in its own order.
#[derive(Debug, Clone)]
pub struct TableList {
    tables: Vec<Found>,
}

impl TableList {
    /// The tables, each with the trust that the caller has in it.
    pub fn new(tables: Vec<Found>) -> Self {
        Self { tables }
    }
}

impl Source for TableList {
    fn name(&self) -> String {
        "the list of tables".to_owned()
    }

    fn tables(&self) -> BoxStream<'_, Result<Found, Error>> {
        stream::iter(self.tables.iter().cloned().map(Ok)).boxed()
    }
}
