//! `doctor`: what a store can and can't do.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Exit;
use super::args::{DoctorArgs, Global};
use super::context::read_config;
use super::output::Output;
use crate::delta::doctor::{Check, CheckOutcome, Diagnosis, diagnose};
use crate::error::Error;
use crate::model::text;

/// Every JSON document says which command it is from.
#[derive(Serialize)]
struct WithCommand {
    command: &'static str,
    #[serde(flatten)]
    diagnosis: Diagnosis,
}

pub(crate) async fn run(global: &Global, args: &DoctorArgs, output: &Output) -> Result<Exit, Error> {
    let options = storage_options(global)?;
    let interrupted = async {
        // Where signals can't be watched there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let diagnosis = diagnose(&args.uri, &options, interrupted).await?;
    let exit = if diagnosis.ok { Exit::Fine } else { Exit::Errors };
    if output.is_json() {
        output.json(&WithCommand { command: "doctor", diagnosis });
    } else {
        output.text(&rendered(&diagnosis));
    }
    Ok(exit)
}

/// The `[storage]` of the configuration, if there is one, and the options of the command line over it.
fn storage_options(global: &Global) -> Result<BTreeMap<String, String>, Error> {
    let mut options = read_config(global, true)?.map(|config| config.storage).unwrap_or_default();
    for option in &global.storage_option {
        let (key, value) = option.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            // The text is not repeated: it may be a secret.
            Error::usage("--storage-option wants KEY=VALUE")
                .with_hint("the text before the first `=` is the key")
        })?;
        options.insert(key.to_owned(), value.to_owned());
    }
    Ok(options)
}

/// One line a check, then what that means. Colours are taken out where stdout takes none.
fn rendered(diagnosis: &Diagnosis) -> String {
    let paint = |code: &str, text: &str| format!("\u{1b}[{code}m{text}\u{1b}[0m");
    let Diagnosis { uri, checks, median_write_ms, ok } = diagnosis;
    let mut out = format!("{}\n", paint("1", &text::clean(uri)));
    for Check { check, outcome, message, hint } in checks {
        let mark = match outcome {
            CheckOutcome::Ok => paint("32", "✓"),
            CheckOutcome::Failed => paint("31", "✗"),
            CheckOutcome::Skipped => paint("2", "-"),
        };
        out.push_str(&format!("{mark} {:<18}  {}\n", text::spaced(check), text::clean(message)));
        if let Some(hint) = hint {
            out.push_str(&format!("    → {}\n", text::clean(hint)));
        }
    }
    let failed: Vec<String> =
        checks.iter().filter(|c| c.outcome == CheckOutcome::Failed).map(|c| text::spaced(c.check)).collect();
    let speed = median_write_ms.map(|ms| format!("; a write takes {ms} ms (median)")).unwrap_or_default();
    out.push_str(&match ok {
        true => format!("fine: tables can be migrated here{speed}\n"),
        false => format!("not fine: {} failed; migrate no table here{speed}\n", text::list(&failed)),
    });
    out
}
