//! What results have in common, whatever the method.

use super::{
    Door,
    peer::Peer,
    rpc::{INTERNAL_ERROR, RpcError},
};
use serde_json::{Value, json};
use tool_runtime::NAMESPACE;

/// Marks a result as the last word on its request, and says whose word it is: both only 2026-07-28 knows.
pub(super) fn complete_result(peer: &Peer, mut result: Value) -> Value {
    if peer.is_modern() {
        result["resultType"] = "complete".into();
        sign(&mut result);
    }
    result
}

pub(super) fn sign(result: &mut Value) {
    let info = json!({ "name": NAMESPACE, "version": env!("CARGO_PKG_VERSION") });
    result["_meta"]["io.modelcontextprotocol/serverInfo"] = info;
}

/// Says how long a result may be kept, and by whom. With tokens it depends on the caller.
pub(super) fn hint(door: &Door, peer: &Peer, result: &mut Value) {
    if peer.is_modern() {
        result["ttlMs"] = 0.into();
        let scope = if door.is_open { "public" } else { "private" };
        result["cacheScope"] = scope.into();
    }
}

/// Runs what reads files where it holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(RpcError::new(INTERNAL_ERROR, "reading ended in the middle")))
}
