//! What it means that a request fails, which servers have many ways to say.

use super::{LONGEST_FAILURE, LONGEST_HEADER, SHOWN, Shared};
use crate::upstream::connector::{
    UpstreamError,
    clients::origin,
    error::result,
    message::{self, Message, Outcome, Refusal},
};
use reqwest::{
    Response, StatusCode,
    header::{LOCATION, WWW_AUTHENTICATE},
};
use std::sync::atomic::Ordering;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

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
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.map(|it| String::from_utf8_lossy(it.as_bytes()));
            return Err(UpstreamError::Unauthorized {
                server: self.server.to_string(),
                method: method.to_owned(),
                status: status.as_u16(),
                challenge: challenge.map(|it| self.given.beginning(&it, LONGEST_HEADER)),
            });
        }
        let body = read_up_to(&mut response, LONGEST_FAILURE).await;
        let text = String::from_utf8_lossy(&body);
        let refusal = message::read(&body).into_iter().find_map(|it| match it {
            Message::Answer(answer) => match answer.outcome {
                Outcome::Refused(refusal) => Some(refusal),
                Outcome::Done(_) | Outcome::Nothing => None,
            },
            Message::Request { .. } | Message::Notification { .. } => None,
        });
        if self.session.get().is_some() && means_lost(status, &text, refusal.as_ref()) {
            self.lost.store(true, Ordering::Relaxed);
            self.over.cancel();
            return Err(self.over_error(method));
        }
        if let Some(refusal) = refusal {
            let refused = Outcome::Refused(refusal);
            return Err(match result(&self.server, method, refused, &self.masks) {
                Err(error) => error,
                Ok(_) => self.malformed(method, format!("status {status}")),
            });
        }
        let body = if status.is_redirection() {
            self.where_to(&response)
        } else {
            self.masks.beginning(&text, SHOWN)
        };
        Err(UpstreamError::Status {
            server: self.server.to_string(),
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
                let there = self.masks.beginning(&origin(&url), SHOWN);
                format!("it has moved to {there}; if that is right, use its URL there")
            }
            _ => "it has moved, and does not say where".to_owned(),
        }
    }
}

/// Says whether a failure means that the server doesn't know the session. Servers have many ways to say so.
fn means_lost(status: StatusCode, body: &str, refusal: Option<&Refusal>) -> bool {
    let code = refusal.map(|it| it.code);
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
