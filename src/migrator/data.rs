//! Data steps as the loop sees them; without the feature `datafusion` no plan has one.

#[cfg(feature = "datafusion")]
pub(crate) use crate::delta::data::{Work, estimate};

#[cfg(not(feature = "datafusion"))]
pub(crate) use without::{Work, estimate};

#[cfg(not(feature = "datafusion"))]
mod without {
    use crate::delta::location::Location;
    use crate::error::{Error, ErrorCode, Stage};
    use crate::model::data::{Counts, Next, Settings};
    use crate::model::plan::{DataWork, Plan, PlannedCommit, Rewrite};
    use crate::model::state::TableState;

    #[derive(Debug)]
    pub(crate) struct Work;

    impl Work {
        pub(crate) async fn begin(
            _: &Location,
            _: &Plan,
            _: &TableState,
            _: Settings,
        ) -> Result<Self, Error> {
            Err(unsupported())
        }

        pub(crate) async fn next(
            &mut self,
            _: &Location,
            _: &Plan,
            _: &PlannedCommit,
            _: &DataWork,
            _: &TableState,
        ) -> Result<Next, Error> {
            Err(unsupported())
        }

        pub(crate) fn notes(&mut self) -> Vec<String> {
            Vec::new()
        }

        pub(crate) fn rounds(&self) -> u32 {
            0
        }

        pub(crate) fn counts(&self) -> Counts {
            Counts::default()
        }

        pub(crate) fn landed(&mut self, _: bool) {}
    }

    pub(crate) async fn estimate(_: &Location, _: &Plan) -> Result<Rewrite, Error> {
        Err(unsupported())
    }

    fn unsupported() -> Error {
        Error::new(ErrorCode::UnsupportedStep, Stage::Plan, "this build has no DataFusion")
            .with_hint("build it with the feature `datafusion`")
    }
}
