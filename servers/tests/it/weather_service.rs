//! The weather server against a weather service on this machine.

use crate::{check_error, loopback};
use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header::LOCATION},
    routing::get,
};
use expect_test::expect;
use servers::weather_service::{URL_VARIABLE, Unit, WeatherError, WeatherService};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tool_runtime::Environment;

fn service(url: &str) -> WeatherService {
    WeatherService::start(&Environment::new([(URL_VARIABLE, url)])).expect("the URL is good")
}

/// Asks a server that gives one fixed answer; returns the error with its port taken out.
async fn error_of(status: StatusCode, body: impl Into<String>) -> String {
    let body = body.into();
    let router = Router::new().fallback(move || async move { (status, body) });
    let url = loopback::serve(router).await;
    let error = service(&url).get_temperature(1.0, 2.0, Unit::Celsius).await;
    let error = error.expect_err("the answer is no weather");
    error.to_string().replace(&url, "http://SERVER")
}

#[tokio::test]
async fn temperature_in_both_units() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let router = Router::new().route(
        "/base/v1/forecast",
        get({
            let seen = Arc::clone(&seen);
            move |request: Request| async move {
                let query = request.uri().query().unwrap_or_default().to_owned();
                seen.lock().unwrap().push(query);
                r#"{"current_units": {"temperature_2m": "°C"}, "current": {"time": "2026-07-28T12:00", "temperature_2m": 21.5}}"#
            }
        }),
    );
    let url = loopback::serve(router).await;
    // With and without a slash at the end is the same.
    for base in [format!("{url}/base"), format!("{url}/base/")] {
        let service = service(&base);
        let celsius = service.get_temperature(48.85, 2.35, Unit::Celsius).await;
        assert_eq!(celsius.unwrap(), "Temperature at 48.85, 2.35: 21.5 °C");
        let fahrenheit = service
            .get_temperature(-90.0, 180.0, Unit::Fahrenheit)
            .await;
        assert_eq!(fahrenheit.unwrap(), "Temperature at -90, 180: 21.5 °F");
    }
    let seen = seen.lock().unwrap();
    expect![[r"
        latitude=48.85&longitude=2.35&current=temperature_2m&temperature_unit=celsius
        latitude=-90&longitude=180&current=temperature_2m&temperature_unit=fahrenheit"]]
    .assert_eq(&seen[..2].join("\n"));
    assert_eq!(seen[..2], seen[2..]);
}

#[tokio::test]
async fn refusals() {
    let body = r#"{"error": true, "reason": "Latitude must be in range of -90 to 90°."}"#;
    expect!["the weather server http://SERVER answered 400 Bad Request: Latitude must be in range of -90 to 90°; check the coordinates"].assert_eq(&error_of(StatusCode::BAD_REQUEST, body).await);
    expect!["the weather server http://SERVER answered 502 Bad Gateway; try again in a minute"]
        .assert_eq(&error_of(StatusCode::BAD_GATEWAY, "<html>").await);
    expect![
        "the weather server http://SERVER answered 429 Too Many Requests; try again in a minute"
    ]
    .assert_eq(&error_of(StatusCode::TOO_MANY_REQUESTS, "").await);
    expect!["the weather server http://SERVER answered 404 Not Found; check `OPEN_METEO_URL`"]
        .assert_eq(&error_of(StatusCode::NOT_FOUND, "").await);
}

#[tokio::test]
async fn answers_that_are_no_weather() {
    expect!["the weather server http://SERVER sent something that is no weather report (expected value at line 1 column 1); check `OPEN_METEO_URL`"].assert_eq(&error_of(StatusCode::OK, "<html>").await);
    expect!["the weather server http://SERVER sent something that is no weather report (missing field `temperature_2m` at line 1 column 14); check `OPEN_METEO_URL`"].assert_eq(&error_of(StatusCode::OK, r#"{"current": {}}"#).await);
    expect!["the weather server http://SERVER sent more than 65536 bytes, which is no weather report; check `OPEN_METEO_URL`"].assert_eq(&error_of(StatusCode::OK, "x".repeat(100_000)).await);
}

#[tokio::test]
async fn nobody_answers() {
    let url = loopback::nobody().await;
    let error = service(&url).get_temperature(1.0, 2.0, Unit::Celsius).await;
    let error = error
        .unwrap_err()
        .to_string()
        .replace(&url, "http://SERVER");
    expect!["the weather server http://SERVER can't be reached: connection refused; try again in a minute"].assert_eq(&error);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = loopback::serve(
        Router::new().fallback(|| async { r#"{"current": {"temperature_2m": 1.0}}"# }),
    )
    .await;
    let router = Router::new()
        .fallback(move || async move { (StatusCode::FOUND, [(LOCATION, elsewhere.clone())]) });
    let service = service(&loopback::serve(router).await);
    let error = service
        .get_temperature(1.0, 2.0, Unit::Celsius)
        .await
        .unwrap_err();
    assert!(matches!(error, WeatherError::Refused { status, .. } if status.as_u16() == 302));
}

#[tokio::test]
async fn slow_answers() {
    let asked = Arc::new(Notify::new());
    let router = Router::new().fallback({
        let asked = Arc::clone(&asked);
        || async move {
            asked.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let url = loopback::serve(router).await;
    let service = service(&url);
    let call = tokio::spawn(async move { service.get_temperature(1.0, 2.0, Unit::Celsius).await });
    asked.notified().await;
    // From here on, the clock jumps to the next timer whenever all wait.
    tokio::time::pause();
    let error = call.await.unwrap().unwrap_err();
    expect!["the weather server http://SERVER did not answer within 10 s; try again in a minute"]
        .assert_eq(&error.to_string().replace(&url, "http://SERVER"));
}

#[test]
fn proxies_are_for_the_world() {
    loopback::passes_with_proxy("weather_service::temperature_in_both_units");
}

#[test]
fn bad_settings() {
    let start = |url| {
        let environment = Environment::new([(URL_VARIABLE, url)]);
        WeatherService::start(&environment).unwrap_err()
    };
    check_error(
        start("weather"),
        &expect![
            "`OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: relative URL without a base"
        ],
    );
    check_error(
        start("ftp://weather.example"),
        &expect![
            "`OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: the scheme `ftp` is not HTTP"
        ],
    );
    check_error(
        start("http://weather.example"),
        &expect![
            "`OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: `http` is only allowed to this machine; use `https`"
        ],
    );
    check_error(
        start("https://me:secret@weather.example"),
        &expect![
            "`OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: it can't hold a user or password"
        ],
    );
    check_error(
        start("https://weather.example/?key=1"),
        &expect![
            "`OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: a base URL has no `?` and no `#`"
        ],
    );
    // Nothing set means the public server, and is no error.
    WeatherService::start(&Environment::default()).unwrap();
}
