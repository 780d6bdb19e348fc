//! Listings of a Unity catalog, page by page.

use std::collections::HashSet;

use futures::stream::{self, Stream};
use serde_json::Value;

use super::answer::Page;
use super::client::Client;
use crate::error::{Error, ErrorCode, Stage};
use crate::model::text::clean;

/// A page may be empty and not the last one; so many in a row mean that the server walks in a circle.
const EMPTY_PAGES: usize = 1_000;

/// What is listed.
#[derive(Debug, Clone)]
pub(super) enum Level {
    /// All catalogs.
    Catalogs,
    /// The schemas of a catalog.
    Schemas { catalog: String },
    /// The tables of a schema.
    Tables { catalog: String, schema: String },
}

impl Level {
    /// The resource, which is also the key of the items.
    fn key(&self) -> &'static str {
        match self {
            Self::Catalogs => "catalogs",
            Self::Schemas { .. } => "schemas",
            Self::Tables { .. } => "tables",
        }
    }

    fn query(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Catalogs => Vec::new(),
            Self::Schemas { catalog } => vec![("catalog_name", catalog)],
            Self::Tables { catalog, schema } => vec![("catalog_name", catalog), ("schema_name", schema)],
        }
    }

    /// What a message calls it.
    fn shown(&self) -> String {
        match self {
            Self::Catalogs => "the catalogs".to_owned(),
            Self::Schemas { catalog } => format!("the schemas of `{}`", clean(catalog)),
            Self::Tables { catalog, schema } => {
                format!("the tables of `{}.{}`", clean(catalog), clean(schema))
            }
        }
    }
}

/// What is known between two pages.
struct State {
    level: Level,
    next: Next,
    tokens: HashSet<String>,
    empty: usize,
}

enum Next {
    First,
    Page(String),
    Circles,
    End,
}

/// The pages of a listing, each asked for when the one before has been taken; it ends with the first
/// error.
pub(super) fn pages(
    client: &Client,
    level: Level,
) -> impl Stream<Item = Result<Vec<Value>, Error>> + Send + '_ {
    let first = State { level, next: Next::First, tokens: HashSet::new(), empty: 0 };
    stream::unfold(first, move |mut state| async move {
        let page = match std::mem::replace(&mut state.next, Next::End) {
            Next::End => return None,
            Next::Circles => Err(in_circles(&state.level)),
            Next::First => ask(client, &state.level, None).await,
            Next::Page(token) => ask(client, &state.level, Some(&token)).await,
        };
        let page = match page {
            Ok(page) => page,
            Err(error) => return Some((Err(error), state)),
        };
        state.empty = if page.items.is_empty() { state.empty + 1 } else { 0 };
        state.next = match page.next {
            None => Next::End,
            Some(token) if state.empty < EMPTY_PAGES && state.tokens.insert(token.clone()) => {
                Next::Page(token)
            }
            Some(_) => Next::Circles,
        };
        Some((Ok(page.items), state))
    })
}

async fn ask(client: &Client, level: &Level, token: Option<&str>) -> Result<Page, Error> {
    let mut query = level.query();
    // 0: as many as the server likes; without it, some servers give all at once, or will refuse.
    query.push(("max_results", "0"));
    query.extend(token.map(|token| ("page_token", token)));
    let failed = || format!("{} can't be listed", level.shown());
    let text = client.read(&[level.key()], &query).await.map_err(|f| f.into_error(&failed()))?;
    Page::read(&text, level.key()).ok_or_else(|| client.no_answer().into_error(&failed()))
}

fn in_circles(level: &Level) -> Error {
    let message = format!("the catalog's pages of {} never end", level.shown());
    Error::new(ErrorCode::Storage, Stage::Read, message)
        .with_hint("run it again; if it stays so, the server or a proxy before it drops the page token")
}
