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
