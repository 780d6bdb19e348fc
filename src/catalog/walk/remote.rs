//! One look at a folder of an object store.

use futures::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, Result};

use super::{Inside, LOG, Look, is_log_file};

/// Looks at a folder, and into it where `into` says so and it is no table.
pub(super) async fn look(store: &dyn ObjectStore, at: &Path, into: bool) -> Result<Look> {
    if has_log(store, at).await? {
        return Ok(Look::Table);
    }
    if !into {
        return Ok(Look::Other(Inside::default()));
    }
    let listed = store.list_with_delimiter(Some(at)).await?;
    let name = |folder: &Path| folder.prefix_match(at)?.next().map(|part| part.as_ref().to_owned());
    let folders = listed.common_prefixes.iter().filter_map(name).collect();
    Ok(Look::Other(Inside { folders, ..Inside::default() }))
}

/// Ends at the first log file, which the first page shows; the stream, and with it the permit for a
/// request, is given back on return.
async fn has_log(store: &dyn ObjectStore, at: &Path) -> Result<bool> {
    let log = at.clone().join(LOG);
    let mut files = store.list(Some(&log));
    let mut is_empty = true;
    while let Some(file) = files.next().await {
        let location = file?.location;
        let mut below = location.prefix_match(&log).into_iter().flatten();
        if let (Some(name), None) = (below.next(), below.next())
            && is_log_file(name.as_ref())
        {
            return Ok(true);
        }
        is_empty = false;
    }
    if !is_empty {
        tracing::debug!(folder = %at, "no table: `_delta_log` holds no log file");
    }
    Ok(false)
}
