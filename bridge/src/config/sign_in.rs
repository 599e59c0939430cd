//! How one signs in to external servers: the table `[sign_in]`.

use super::{Found, Problem, Sources, closest, kind};
use std::collections::BTreeSet;

const KEYS: [&str; 3] = ["public_url", "allow_private", "without_resource"];

/// How one signs in to external servers.
#[derive(Clone, Debug, Default)]
pub struct SignIn {
    /// The address at which browsers and authorization servers reach this bridge.
    pub public_url: Option<String>,
    /// Whether what a server names may be at a private address.
    pub allow_private: bool,
    /// Servers whose authorization server can't bear to be told what a token is for.
    pub without_resource: BTreeSet<String>,
}

impl Sources<'_> {
    pub(super) fn sign_in(&mut self) -> SignIn {
        let mut sign_in = SignIn::default();
        let table = self.file.and_then(|(file, table)| {
            let table = self.table(file, "sign_in", table.get("sign_in")?)?;
            Some((file, table))
        });
        let Some((file, table)) = table else {
            return sign_in;
        };
        for (key, value) in table {
            let path = format!("sign_in.{}", key.get_ref());
            let place = file.place(path.clone(), value.span().start);
            let found = Found::Toml(value.get_ref());
            match key.get_ref().as_ref() {
                "public_url" => sign_in.public_url = self.read(found, place, &kind::PUBLIC_URL),
                "allow_private" => {
                    sign_in.allow_private = self.read(found, place, &kind::SWITCH) == Some(true);
                }
                "without_resource" => {
                    let servers = self.array(file, &path, value, &kind::SERVER);
                    sign_in.without_resource = servers.into_iter().collect();
                }
                unknown => self.problems.push(Problem::UnknownKey {
                    suggestion: closest(unknown, KEYS),
                    place: file.place(path, key.span().start),
                }),
            }
        }
        sign_in
    }
}
