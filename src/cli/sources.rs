//! From entries of the configuration to sources of tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::{CatalogEntry, DiscoverEntry, Service};
use crate::catalog::{Source, Walk};
use crate::delta::stores::Stores;
use crate::error::Error;

type Options = BTreeMap<String, String>;

/// The common options, and above them the source's own.
pub(super) fn merged(common: &Options, own: Option<&Options>) -> Options {
    let mut options = common.clone();
    options.extend(own.into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    options
}

pub(super) fn walk(
    entry: &DiscoverEntry,
    storage: &Options,
    stores: &Arc<Stores>,
) -> Result<Box<dyn Source>, Error> {
    let DiscoverEntry { root, include, exclude, kind, storage: own } = entry;
    let mut walk = Walk::new(stores.clone(), root, merged(storage, Some(own)))?
        .include(include.iter().map(String::as_str))?
        .exclude(exclude.iter().map(String::as_str))?;
    if let Some(kind) = kind {
        walk = walk.kind(kind);
    }
    Ok(Box::new(walk))
}

pub(super) fn catalog(entry: &CatalogEntry, storage: &Options) -> Result<Box<dyn Source>, Error> {
    let kind = entry.kind.clone();
    let storage = merged(storage, Some(&entry.storage));
    match entry.service {
        Service::Glue => glue(entry, kind, storage),
        Service::Unity => unity(entry, kind, storage),
    }
}

#[cfg(feature = "glue")]
fn glue(entry: &CatalogEntry, kind: Option<String>, storage: Options) -> Result<Box<dyn Source>, Error> {
    let CatalogEntry { service: _, endpoint, token: _, region, catalog_id, tables, exclude, .. } = entry;
    let options = crate::catalog::GlueOptions {
        tables: tables.clone(),
        exclude: exclude.clone(),
        kind,
        storage,
        region: region.clone(),
        endpoint: endpoint.clone(),
        catalog_id: catalog_id.clone(),
    };
    Ok(Box::new(crate::catalog::GlueCatalog::new(options)?))
}

#[cfg(not(feature = "glue"))]
fn glue(_: &CatalogEntry, _: Option<String>, _: Options) -> Result<Box<dyn Source>, Error> {
    Err(not_in_this_build("glue"))
}

#[cfg(feature = "unity")]
fn unity(entry: &CatalogEntry, kind: Option<String>, storage: Options) -> Result<Box<dyn Source>, Error> {
    let CatalogEntry { service: _, endpoint, token, region: _, catalog_id: _, tables, exclude, .. } = entry;
    let options = crate::catalog::UnityOptions {
        tables: tables.clone(),
        exclude: exclude.clone(),
        kind,
        storage,
        endpoint: endpoint.clone().unwrap_or_default(),
        token: token.clone(),
    };
    Ok(Box::new(crate::catalog::UnityCatalog::new(options)?))
}

#[cfg(not(feature = "unity"))]
fn unity(_: &CatalogEntry, _: Option<String>, _: Options) -> Result<Box<dyn Source>, Error> {
    Err(not_in_this_build("unity"))
}

#[cfg(not(all(feature = "glue", feature = "unity")))]
fn not_in_this_build(service: &str) -> Error {
    Error::usage(format!("this build has no catalogs of type `{service}`"))
        .with_hint(format!("build it with `cargo install delta-migrate --features {service}`"))
}
