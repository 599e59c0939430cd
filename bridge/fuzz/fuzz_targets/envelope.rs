//! Bytes as one request: lines that choose headers, an empty line, and the body.
//!
//! The first byte of a line chooses the header, the rest is its value. Where no line chooses `Host`, `Content-Type` or
//! `Accept`, they are what every client sends.
#![no_main]

use axum::http::{HeaderName, HeaderValue};
use clopen_mcp_fuzz::{Bridge, usual_headers};
use libfuzzer_sys::fuzz_target;

/// More headers find nothing that these don't.
const HEADERS: usize = 16;

fuzz_target!(|input: &[u8]| {
    let bridge = Bridge::of_process();
    let (mut headers, mut query) = (usual_headers(), String::new());
    let (mut rest, mut chosen) = (input, Vec::new());
    for _ in 0..HEADERS {
        let end = rest.iter().position(|it| *it == b'\n');
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(1..).unwrap_or_default();
        let Some((first, value)) = line.split_first() else {
            break;
        };
        let name = match first {
            b'v' => "mcp-protocol-version",
            b'm' => "mcp-method",
            b'n' => "mcp-name",
            b'p' => "mcp-param-value",
            b'c' => "mcp-param-count",
            b'f' => "mcp-param-flag",
            b'a' => "accept",
            b't' => "content-type",
            b's' => "mcp-session-id",
            b'o' => "origin",
            b'h' => "host",
            b'z' => "authorization",
            b'q' => {
                query = format!("?{}", String::from_utf8_lossy(value));
                continue;
            }
            _ => continue,
        };
        // The ids of sessions are random, so an input names them by their place.
        let value = match (first, value) {
            (b's', [b'@', at]) => bridge.session(usize::from(*at)).as_bytes(),
            _ => value,
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            chosen.push((HeaderName::from_static(name), value));
        }
    }
    for (name, _) in &chosen {
        headers.remove(name);
    }
    for (name, value) in chosen {
        headers.append(name, value);
    }
    bridge.send(&query, &headers, rest);
});
