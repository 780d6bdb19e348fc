//! Requests to a Unity catalog's server: bounded in time and size, tried again where that helps.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use chrono::{DateTime, Utc};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;

use super::answer;
use super::endpoint::Endpoint;
use super::failure::{Failure, Why};
use crate::error::Error;
use crate::migrator::moments::Real;
use crate::model::text::shorten;
use crate::retry::Budget;

const CONNECT: Duration = Duration::from_secs(10);
/// From the first byte sent to the last one received.
const REQUEST: Duration = Duration::from_secs(30);
/// No new attempt is begun later than that.
const ALL_ATTEMPTS: Duration = Duration::from_secs(120);
const RETRIES: usize = 4;
/// A server that wants a longer pause is asked again all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const LARGEST_BODY: usize = 64 << 20;
const REDIRECTS: usize = 5;

/// A client of one server. It has no `Debug`: it holds the token.
pub(super) struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    token: Option<Token>,
}

struct Token {
    text: String,
    header: HeaderValue,
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// `Usage`: the token can't be sent, or would be sent in clear text.
    pub(super) fn new(endpoint: Endpoint, token: Option<&str>) -> Result<Self, Error> {
        let token = token.map(Token::read).transpose()?;
        if !endpoint.is_private() {
            if token.is_some() {
                let message = format!("the token would go to `{}` in clear text", endpoint.host());
                return Err(Error::usage(message)
                    .with_hint("use https; http is for a server on this machine, or one without a token"));
            }
            tracing::warn!(
                host = endpoint.host(),
                "credentials that this catalog lends travel in clear text"
            );
        }
        let builder = reqwest::Client::builder()
            .user_agent(concat!("delta-migrate/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .referer(false)
            .redirect(same_origin());
        // What is for this machine must not go through a proxy, which would see the token.
        let builder = if endpoint.is_this_machine() { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|e| {
            Error::usage("no HTTPS client can be had for the unity catalog").with_source(e.without_url())
        })?;
        Ok(Self { http, endpoint, token })
    }

    /// A resource, as JSON.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.json(self.read(path, query).await?)
    }

    /// A resource, as bytes.
    pub(super) async fn read(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<u8>, Failure> {
        let url = self.endpoint.at(path, query);
        self.send(|| self.http.get(url.clone())).await
    }

    /// The answer to a question that changes nothing, and so may be asked twice.
    pub(super) async fn ask(&self, path: &[&str], question: &Value) -> Result<Value, Failure> {
        let url = self.endpoint.at(path, &[]);
        self.json(self.send(|| self.http.post(url.clone()).json(question)).await?)
    }

    /// The failure that an answer is no JSON, or other JSON than the API's.
    pub(super) fn no_answer(&self) -> Failure {
        self.failure(Why::NoApi)
    }

    // The parser's error is dropped: it may quote what it read.
    fn json(&self, body: Vec<u8>) -> Result<Value, Failure> {
        serde_json::from_slice(&body).ok().filter(Value::is_object).ok_or_else(|| self.no_answer())
    }

    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Vec<u8>, Failure> {
        let budget = Budget::start(ALL_ATTEMPTS, Arc::new(Real));
        let mut pauses = pauses();
        loop {
            let failure = match self.once(request()).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let pause = pauses.next().filter(|_| failure.may_pass());
            let wait = pause.map(|pause| pause + failure.wait.unwrap_or_default());
            match wait.filter(|wait| *wait < budget.left()) {
                None => return Err(failure),
                Some(wait) => {
                    tracing::debug!(host = failure.host, ?wait, "the unity catalog is asked again");
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn once(&self, request: RequestBuilder) -> Result<Vec<u8>, Failure> {
        let request = match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.header.clone()),
            None => request,
        };
        let broken = |e: reqwest::Error| self.failure(Why::Transport(e.without_url()));
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        let wait = wait_of(response.headers(), Utc::now());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > LARGEST_BODY {
                return Err(self.failure(Why::TooLarge));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() { Ok(body) } else { Err(Failure { wait, ..self.refusal(status, &body) }) }
    }

    /// What the server says about its refusal, without what must not be shown.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> Failure {
        let said: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let code = answer::text(&said, "error_code").map(|c| shorten(&self.without_token(&c), 60));
        let message = answer::text(&said, "message").map(|m| shorten(&self.without_token(m.trim()), 300));
        self.failure(Why::Refused { status, code, message, had_token: self.token.is_some() })
    }

    fn without_token(&self, text: &str) -> String {
        match &self.token {
            Some(token) => text.replace(&token.text, "…"),
            None => text.to_owned(),
        }
    }

    fn failure(&self, why: Why) -> Failure {
        Failure { host: self.endpoint.host(), why, wait: None }
    }
}

impl Token {
    fn read(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::usage("the token of the unity catalog is empty")
                .with_hint("leave it out for a server that asks for none"));
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| {
            Error::usage("the token of the unity catalog holds characters that can't be sent")
        })?;
        header.set_sensitive(true);
        Ok(Self { text: text.to_owned(), header })
    }
}

/// Redirects stay with the server: elsewhere there is a login page, or somebody who must not be asked.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if stays && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(5))
        .with_factor(2.0)
        .with_jitter()
        .with_max_times(RETRIES)
        .build()
}

/// How long the server asks to wait: seconds, or a date.
fn wait_of(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => (DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc) - now).to_std().ok()?,
    };
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_seconds_or_as_a_date_and_is_bounded() {
        let now = DateTime::parse_from_rfc2822("Wed, 21 Oct 2026 07:28:00 GMT").unwrap().to_utc();
        let wait = |text: &'static str| {
            wait_of(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]), now)
        };
        assert_eq!(wait("3"), Some(Duration::from_secs(3)));
        assert_eq!(wait("86400"), Some(LONGEST_WAIT));
        assert_eq!(wait("Wed, 21 Oct 2026 07:28:07 GMT"), Some(Duration::from_secs(7)));
        for text in ["Wed, 21 Oct 2026 07:27:00 GMT", "-1", "soon", ""] {
            assert_eq!(wait(text), None, "{text}");
        }
    }

    #[test]
    fn there_are_few_and_short_pauses() {
        let all: Vec<Duration> = pauses().collect();
        assert_eq!(all.len(), RETRIES);
        assert!(all.iter().all(|p| *p < Duration::from_secs(10)), "{all:?}");
    }

    #[test]
    fn a_token_never_goes_over_a_network_in_clear_text() {
        let new = |url: &str, token| Client::new(Endpoint::parse(url).unwrap(), token).err();
        let error = new("http://uc.example.com", Some("SECRET")).unwrap();
        assert_eq!(error.code(), crate::ErrorCode::Usage);
        assert!(!format!("{error:?}").contains("SECRET"));
        for (url, token) in [
            ("http://uc.example.com", None),
            ("http://localhost:1", Some("t")),
            ("https://uc.example.com", Some("t")),
        ] {
            assert!(new(url, token).is_none(), "{url}");
        }
        for token in ["", " \n", "SECRET\nx"] {
            let error = new("https://h", Some(token)).unwrap();
            assert_eq!(error.code(), crate::ErrorCode::Usage, "{token:?}");
            assert!(!format!("{error:?}").contains("SECRET"));
        }
    }
}
