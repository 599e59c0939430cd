//! The server `weather-service`: the current temperature at a place, from Open-Meteo.

use crate::http::{self, BaseUrlError, Beginning, ClientError, Clients};
use reqwest::{StatusCode, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};
use thiserror::Error;
use tool_runtime::{Environment, tool_server};

/// Variable with the base URL of an Open-Meteo server.
pub const URL_VARIABLE: &str = "OPEN_METEO_URL";

const PUBLIC_SERVER: &str = "https://api.open-meteo.com";
const TIMEOUT: Duration = Duration::from_secs(10);
/// A good answer has less than 1 kB.
const MAX_ANSWER: usize = 64 * 1024;
const MAX_REASON: usize = 300;

/// Asks one Open-Meteo server.
#[derive(Debug)]
pub struct WeatherService {
    clients: Clients,
    forecast: Url,
}

/// Weather for any place on Earth.
#[tool_server(name = "weather-service", version = "1.0.0", start)]
impl WeatherService {
    /// Makes the server. The public Open-Meteo is asked unless `OPEN_METEO_URL` names another.
    pub fn start(environment: &Environment) -> Result<Self, StartError> {
        let base = environment.get(URL_VARIABLE).unwrap_or(PUBLIC_SERVER);
        Ok(Self {
            clients: Clients::new(TIMEOUT)?,
            forecast: forecast_of(base).map_err(|error| StartError::InvalidUrl {
                reason: error.to_string(),
            })?,
        })
    }

    /// Get the current air temperature at a place. Look up the coordinates of a city first if you don't know them.
    #[tool(
        title = "Current temperature",
        read_only,
        idempotent,
        open_world,
        timeout = "15s"
    )]
    pub async fn get_temperature(
        &self,
        /// Latitude in degrees; north of the equator is positive.
        #[arg(range = -90.0..=90.0, example = 48.85)]
        latitude: f64,
        /// Longitude in degrees; east of Greenwich is positive.
        #[arg(range = -180.0..=180.0, example = 2.35)]
        longitude: f64,
        /// Unit of the answer.
        #[arg(default = Unit::Celsius)]
        unit: Unit,
    ) -> Result<String, WeatherError> {
        let degrees = self.ask(latitude, longitude, unit).await?;
        Ok(format!(
            "Temperature at {latitude}, {longitude}: {degrees} {unit}"
        ))
    }
}

impl WeatherService {
    async fn ask(&self, latitude: f64, longitude: f64, unit: Unit) -> Result<f64, WeatherError> {
        let mut url = self.forecast.clone();
        url.query_pairs_mut()
            .append_pair("latitude", &latitude.to_string())
            .append_pair("longitude", &longitude.to_string())
            .append_pair("current", "temperature_2m")
            .append_pair("temperature_unit", unit.as_str());

        let broken = |error: reqwest::Error| self.broken(&error);
        let mut response = self
            .clients
            .to(&url)
            .get(url)
            .send()
            .await
            .map_err(broken)?;
        let status = response.status();
        let Beginning { bytes, truncated } = http::read_up_to(&mut response, MAX_ANSWER)
            .await
            .map_err(broken)?;

        if !status.is_success() {
            return Err(WeatherError::Refused {
                server: self.server(),
                status,
                reason: refusal(&bytes),
            });
        }
        if truncated {
            return Err(WeatherError::TooLong {
                server: self.server(),
            });
        }
        let answer: Answer =
            serde_json::from_slice(&bytes).map_err(|source| WeatherError::NotWeather {
                server: self.server(),
                source,
            })?;
        Ok(answer.current.temperature_2m)
    }

    fn broken(&self, error: &reqwest::Error) -> WeatherError {
        let server = self.server();
        if error.is_timeout() {
            WeatherError::TimedOut { server }
        } else {
            WeatherError::Unreachable {
                server,
                reason: http::reason(error),
            }
        }
    }

    fn server(&self) -> String {
        self.forecast.origin().ascii_serialization()
    }
}

/// A scale of temperatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// °C
    Celsius,
    /// °F
    Fahrenheit,
}

impl Unit {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Celsius => "celsius",
            Self::Fahrenheit => "fahrenheit",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Celsius => "°C",
            Self::Fahrenheit => "°F",
        })
    }
}

#[derive(Deserialize)]
struct Answer {
    current: Current,
}

#[derive(Deserialize)]
struct Current {
    temperature_2m: f64,
}

/// Returns why Open-Meteo refused, as far as it says so.
fn refusal(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        reason: String,
    }
    match serde_json::from_slice(body) {
        Ok(Refusal { reason }) => {
            let short: String = reason.chars().take(MAX_REASON).collect();
            format!(": {}", short.trim_end_matches('.'))
        }
        Err(_) => String::new(),
    }
}

fn forecast_of(base: &str) -> Result<Url, BaseUrlError> {
    let mut url = http::base_url(base)?;
    url.path_segments_mut()
        .expect("an HTTP URL has a path")
        .pop_if_empty()
        .extend(["v1", "forecast"]);
    Ok(url)
}

/// Why the server can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The base URL is none.
    #[error("`{URL_VARIABLE}` is not a base URL like `{PUBLIC_SERVER}`: {reason}")]
    InvalidUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// There is no HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why there is no temperature.
#[derive(Debug, Error)]
pub enum WeatherError {
    /// No connection, or one that broke.
    #[error("the weather server {server} can't be reached: {reason}; try again in a minute")]
    Unreachable {
        /// Scheme, host and port of the server.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// No answer in time.
    #[error(
        "the weather server {server} did not answer within {} s; try again in a minute",
        TIMEOUT.as_secs()
    )]
    TimedOut {
        /// Scheme, host and port of the server.
        server: String,
    },
    /// An answer that is an error.
    #[error("the weather server {server} answered {status}{reason}; {}", advice(*.status))]
    Refused {
        /// Scheme, host and port of the server.
        server: String,
        /// The HTTP status.
        status: StatusCode,
        /// What it says about it, with a colon before it, or nothing.
        reason: String,
    },
    /// An answer that never ends.
    #[error(
        "the weather server {server} sent more than {MAX_ANSWER} bytes, which is no weather report; check `{URL_VARIABLE}`"
    )]
    TooLong {
        /// Scheme, host and port of the server.
        server: String,
    },
    /// An answer that is something else.
    #[error(
        "the weather server {server} sent something that is no weather report ({source}); check `{URL_VARIABLE}`"
    )]
    NotWeather {
        /// Scheme, host and port of the server.
        server: String,
        /// Where the answer stops making sense.
        source: serde_json::Error,
    },
}

fn advice(status: StatusCode) -> &'static str {
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        "try again in a minute"
    } else if status == StatusCode::BAD_REQUEST {
        "check the coordinates"
    } else {
        "check `OPEN_METEO_URL`"
    }
}
