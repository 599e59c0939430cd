//! What it means that a request fails, which servers have many ways to say.

use super::{LONGEST_FAILURE, LONGEST_HEADER, SHOWN, Shared};
use crate::upstream::connector::{
    UpstreamError,
    clients::origin,
    error::refused,
    message::{self, Failure, INVALID_PARAMS, METHOD_NOT_FOUND, Message, Outcome},
};
use reqwest::{
    Response, StatusCode,
    header::{LOCATION, WWW_AUTHENTICATE},
};
use std::sync::atomic::Ordering;

impl Shared {
    /// Lets success pass, and says what another status means.
    pub(super) async fn check_status(
        &self,
        method: &str,
        mut response: Response,
    ) -> Result<Response, UpstreamError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let challenges: Vec<_> = challenges
                .map(|it| String::from_utf8_lossy(it.as_bytes()))
                .collect();
            let challenge = (!challenges.is_empty()).then(|| challenges.join(", "));
            return Err(UpstreamError::Unauthorized {
                server: self.ears.server().to_owned(),
                method: method.to_owned(),
                status: status.as_u16(),
                challenge: challenge.map(|it| self.given.beginning(&it, LONGEST_HEADER)),
            });
        }
        let body = read_up_to(&mut response, LONGEST_FAILURE).await;
        let text = String::from_utf8_lossy(&body);
        let failure = message::read(&body).into_iter().find_map(|it| match it {
            Message::Answer(answer) => match answer.outcome {
                Outcome::Refused(failure) => Some(failure),
                Outcome::Done(_) | Outcome::Nothing => None,
            },
            Message::Request { .. } | Message::Notification { .. } => None,
        });
        if self.session.get().is_some() && means_lost(status, &text, failure.as_ref()) {
            self.lost.store(true, Ordering::Relaxed);
            self.over.cancel();
            return Err(self.over_error(method));
        }
        if let Some(failure) = failure {
            return Err(refused(method, &failure, &self.ears));
        }
        let body = if status.is_redirection() {
            self.where_to(&response)
        } else {
            self.ears.masks().beginning(&text, SHOWN)
        };
        Err(UpstreamError::Status {
            server: self.ears.server().to_owned(),
            method: method.to_owned(),
            status: status.as_u16(),
            body,
        })
    }

    /// Says where a redirect points. It is not followed to another server, which would learn what this one is given.
    fn where_to(&self, response: &Response) -> String {
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|it| it.to_str().ok());
        match location.map(|it| self.url.join(it)) {
            Some(Ok(url)) if url.origin() == self.url.origin() => {
                "it has moved on the same host; check the path of its URL".to_owned()
            }
            Some(Ok(url)) => {
                let there = self.ears.masks().beginning(&origin(&url), SHOWN);
                format!("it has moved to {there}; if that is right, use its URL there")
            }
            _ => "it has moved, and does not say where".to_owned(),
        }
    }
}

/// Says whether a failure means that the server doesn't know the session. Servers have many ways to say so.
fn means_lost(status: StatusCode, body: &str, failure: Option<&Failure>) -> bool {
    let code = failure.map(|it| it.code);
    match status {
        StatusCode::NOT_FOUND => code != Some(METHOD_NOT_FOUND),
        StatusCode::GONE => true,
        StatusCode::BAD_REQUEST => {
            code != Some(INVALID_PARAMS) && body.to_lowercase().contains("session")
        }
        _ => false,
    }
}

/// Reads the beginning of a body, as far as it comes.
async fn read_up_to(response: &mut Response, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() == limit {
            break;
        }
    }
    bytes
}
