//! What is asked of Glue, page by page.

use std::collections::HashSet;

use aws_sdk_glue::Client;
use aws_sdk_glue::config::http::HttpResponse;
use aws_sdk_glue::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_glue::types::Table;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use tokio::task::JoinSet;

use super::fault::{About, Asked};
use super::full_name;
use crate::error::{Error, ErrorCode, Stage};

/// Somebody who may ask Glue.
pub(super) struct Caller {
    pub(super) client: Client,
    /// The account whose catalog is asked; none: the caller's own.
    pub(super) catalog_id: Option<String>,
    /// What must not show in an error.
    pub(super) secrets: Vec<String>,
}

impl Caller {
    /// The names of all databases.
    pub(super) fn databases(&self) -> BoxStream<'static, Result<Vec<String>, Error>> {
        let about = self.about(Asked::Databases);
        let request = self.client.get_databases().set_catalog_id(self.catalog_id.clone());
        let mut pages = request.into_paginator().stop_on_duplicate_token(false).send();
        let pages = stream::poll_fn(move |cx| pages.poll_next(cx));
        to_the_end(pages, about, |page| {
            (page.database_list.into_iter().map(|database| database.name).collect(), page.next_token)
        })
        .boxed()
    }

    /// The tables of a database.
    pub(super) fn tables(
        &self,
        asked: Asked,
        database: &str,
    ) -> BoxStream<'static, Result<Vec<Table>, Error>> {
        let about = self.about(asked);
        let request = self.client.get_tables().set_catalog_id(self.catalog_id.clone());
        let mut pages =
            request.database_name(database).into_paginator().stop_on_duplicate_token(false).send();
        let pages = stream::poll_fn(move |cx| pages.poll_next(cx));
        to_the_end(pages, about, |page| (page.table_list.unwrap_or_default(), page.next_token)).boxed()
    }

    /// One table.
    pub(super) async fn table(&self, database: &str, name: &str) -> Result<Table, Error> {
        let about = self.about(Asked::Table(full_name(database, name)));
        let request = self.client.get_table().set_catalog_id(self.catalog_id.clone());
        let answer = in_task(request.database_name(database).name(name).send()).await?;
        let table = answer.map_err(|e| about.error(&e))?.table;
        table.ok_or_else(|| about.fault("the answer holds no table"))
    }

    fn about(&self, asked: Asked) -> About {
        About { asked, secrets: self.secrets.clone() }
    }
}

/// Each page when the one before was taken, until there is no further one.
fn to_the_end<S, P, T, E>(
    pages: S,
    about: About,
    split: fn(P) -> (Vec<T>, Option<String>),
) -> impl Stream<Item = Result<Vec<T>, Error>> + Send
where
    S: Stream<Item = Result<P, SdkError<E, HttpResponse>>> + Send + Unpin + 'static,
    P: Send + 'static,
    T: Send + 'static,
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    stream::unfold(Some(Ok((pages, HashSet::new()))), move |state| {
        let about = about.clone();
        async move {
            let (mut pages, mut seen) = match state? {
                Ok(further) => further,
                Err(e) => return Some((Err(e), None)),
            };
            let (page, pages) = match in_task(async move { (pages.next().await, pages) }).await {
                Ok(answered) => answered,
                Err(e) => return Some((Err(e), None)),
            };
            let (items, token) = match page? {
                Ok(page) => split(page),
                Err(e) => return Some((Err(about.error(&e)), None)),
            };
            // The paginator itself would take a token that comes twice in a row for the end, and
            // would go round for ever where two take turns.
            let further = token.filter(|t| !t.is_empty()).map(|token| match seen.insert(token) {
                true => Ok((pages, seen)),
                false => Err(about.fault("its pages go round in circles")),
            });
            Some((Ok(items), further))
        }
    })
}

/// Runs a request in a task of its own: whoever takes the tables may be busy for minutes with those
/// he has, and a request that nobody polls would run into its timeout. Ends with the stream.
async fn in_task<F>(request: F) -> Result<F::Output, Error>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut task = JoinSet::new();
    task.spawn(request);
    let ended = || Error::new(ErrorCode::Storage, Stage::Read, "a request to Glue was ended from outside");
    match task.join_next().await {
        Some(answer) => answer.map_err(|e| ended().with_source(e)),
        None => Err(ended()),
    }
}
