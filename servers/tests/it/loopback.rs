//! HTTP servers on this machine, for tests.

use axum::Router;
use tokio::net::TcpListener;

/// Serves on a free port until the test ends; returns the base URL.
pub(crate) async fn serve(router: Router) -> String {
    let (listener, url) = listen().await;
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Returns the base URL of a port on which nobody listens.
pub(crate) async fn nobody() -> String {
    listen().await.1
}

pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    (listener, format!("http://{address}"))
}

/// Runs a test of this binary once more, as if the machine had a proxy. Nobody listens there.
#[track_caller]
pub(crate) fn passes_with_proxy(test: &str) {
    let binary = std::env::current_exe().expect("a test runs from a file");
    let output = std::process::Command::new(binary)
        .args(["--exact", test])
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("http_proxy", "http://127.0.0.1:1")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .expect("the tests can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
