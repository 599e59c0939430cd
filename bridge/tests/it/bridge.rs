//! A bridge in this process, on a port of its own.

use crate::client::{Client, Era, Profile, soon};
use clopen_mcp::{
    Bridge, StartError,
    config::{Config, FILE_NAME, Flags},
    credentials::Vault,
    store::{ExternalServer, NewToken, Store},
    upstream::{Address, Entry},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, net::SocketAddr, path::Path};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "the-token-of-this-test";

/// A bridge that serves.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    stop: CancellationToken,
    served: JoinHandle<Result<(), StartError>>,
}

impl Serving {
    /// Starts a bridge with these lines in its settings file.
    pub(crate) async fn start(settings: &str) -> Self {
        Self::start_with(settings, |_| ()).await
    }

    /// Starts one with settings that no file has.
    pub(crate) async fn start_with(settings: &str, change: impl FnOnce(&mut Config)) -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        let mut config = config(folder.path(), settings);
        change(&mut config);
        Self::serve(folder, &config).await
    }

    /// Starts one that has these external servers, with what they have listed before.
    pub(crate) async fn start_before(settings: &str, external: &[External<'_>]) -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        let config = config(folder.path(), settings);
        keep(&config.data, external).await;
        Self::serve(folder, &config).await
    }

    async fn serve(folder: TempDir, config: &Config) -> Self {
        let bridge = Bridge::start(config, &BTreeMap::new()).await;
        let bridge = bridge.expect("it starts");
        let (address, stop) = (bridge.address, CancellationToken::new());
        let served = tokio::spawn(bridge.serve(stop.clone()));
        Self {
            address,
            folder,
            stop,
            served,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn client(&self, era: Era) -> Client {
        self.client_with(profile(era)).await
    }

    pub(crate) async fn client_with(&self, profile: Profile) -> Client {
        Client::http(&self.url(), profile).await
    }

    /// Makes a project token.
    pub(crate) async fn token(&self, new: NewToken) -> String {
        let store = Store::open(&self.folder.path().join("data"), None).await;
        let store = store.expect("it opens");
        let (_, text) = store.create_token(new, 0).await.expect("it can be made");
        store.close().await;
        text.expose().to_owned()
    }

    /// Asks the bridge to stop.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the bridge has stopped.
    pub(crate) async fn stopped(self) {
        let served = soon(self.served).await.expect("it doesn't panic");
        served.expect("it ends well");
    }
}

/// An external server: its name, its address, and the tools that it has listed before.
pub(crate) type External<'a> = (&'a str, Address, Option<Value>);

/// Adds external servers to the database of a bridge.
pub(crate) async fn keep(data: &Path, external: &[External<'_>]) {
    let store = Store::open(data, None).await.expect("it opens");
    let vault = Vault::open(data).expect("it opens");
    for (name, address, listed) in external {
        let entry = Entry {
            name: (*name).to_owned(),
            source: "by hand".to_owned(),
            address: address.clone(),
            origin: None,
        };
        let listed = listed.as_ref().map(Value::to_string);
        let server = ExternalServer {
            listed_at: listed.is_some().then_some(1),
            listed,
            ..entry.sealed(&vault, 1).expect("it can be sealed")
        };
        let saved = store.save_external_server(&server).await;
        saved.expect("it can be kept");
    }
    store.close().await;
}

/// Settings with a token, on any port, with these lines in the settings file.
pub(crate) fn config(folder: &Path, settings: &str) -> Config {
    let settings = format!("data = \"data\"\nlisten = \"127.0.0.1:0\"\n{settings}");
    fs::write(folder.join(FILE_NAME), settings).expect("it can be written");
    let variables = BTreeMap::from([("CLOPEN_MCP_TOKEN".to_owned(), TOKEN.to_owned())]);
    match Config::load(&Flags::default(), &variables, folder) {
        Ok(config) => config,
        Err(error) => panic!("{error}"),
    }
}

/// A client that shows the token and can't be asked anything.
pub(crate) fn profile(era: Era) -> Profile {
    Profile {
        token: Some(TOKEN.to_owned()),
        ..Profile::of(era)
    }
}
