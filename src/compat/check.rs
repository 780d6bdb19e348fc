//! stub
use super::*;
use crate::model::{kind::Kind, version::Namespace};
use std::path::Path;
/// x
pub async fn check(_folder: impl AsRef<Path>, _kinds: &[Kind], _n: &Namespace) -> Result<Checked, Error> {
    Err(Error::usage("x"))
}
