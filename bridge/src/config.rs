//! The settings: flags, variables and a file become one [`Config`], once.

mod error;
mod file;
mod folders;
mod kind;
mod registries;
mod sign_in;

pub use error::{ConfigError, Place, Problem};
pub use registries::Registry;
pub use sign_in::SignIn;

pub(crate) use kind::{normal_origin, split_authority};

use crate::secret::Secret;
use error::closest;
use file::{File, find_file, parse};
use folders::data_folder;
use kind::{Found, Kind};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The settings file that is looked for in the current folder, and in the folder for settings.
pub const FILE_NAME: &str = "clopen-mcp.toml";

const PREFIX: &str = "CLOPEN_MCP_";

/// The keys of the settings file which are variables too.
const KEYS: [&str; 11] = [
    "listen",
    "data",
    "skills",
    "no_auth",
    "allowed_hosts",
    "allowed_origins",
    "database_url",
    "call_timeout",
    "max_output",
    "max_body",
    "drain",
];

/// The tables of the settings file.
const TABLES: [&str; 3] = ["servers", "registries", "sign_in"];

/// The variables which are no keys of the settings file.
const ONLY_VARIABLES: [&str; 4] = [
    "CLOPEN_MCP_CONFIG",
    "CLOPEN_MCP_LOG",
    "CLOPEN_MCP_TOKEN",
    "CLOPEN_MCP_WITHIN",
];

/// What the command line says. A flag that isn't given is `None`, empty or `false`.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`: the settings file.
    pub config: Option<PathBuf>,
    /// `--listen`: the address to listen on.
    pub listen: Option<String>,
    /// `--data`: the data folder.
    pub data: Option<PathBuf>,
    /// `--skills`: the folder of skills.
    pub skills: Option<PathBuf>,
    /// `--no-auth`: nobody needs a token.
    pub no_auth: bool,
    /// `--allowed-host`, as often as it is given.
    pub allowed_hosts: Vec<String>,
    /// `--allowed-origin`, as often as it is given.
    pub allowed_origins: Vec<String>,
}

/// Every setting, checked. A flag wins over a variable, a variable over the file, the file over the default.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder with everything that outlives the process.
    pub data: PathBuf,
    /// The folder of skills, where skills are served.
    pub skills: Option<PathBuf>,
    /// The service token, where it doesn't come from the data folder.
    pub token: Option<Secret>,
    /// Whether nobody needs a token; only on a loopback address.
    pub no_auth: bool,
    /// Hosts that requests may name besides this machine's own: `name` or `name:port`, in lower case.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call besides those of this machine: `scheme://host` or `scheme://host:port`, in lower
    /// case, without a port where it is the scheme's own.
    pub allowed_origins: Vec<String>,
    /// The PostgreSQL database, where it isn't the SQLite file in the data folder.
    pub database_url: Option<Secret>,
    /// How long, how much.
    pub limits: Limits,
    /// What is on, by server. A server that isn't named is on with all its tools.
    pub servers: BTreeMap<String, ServerSelection>,
    /// Where servers are looked for, by name.
    pub registries: BTreeMap<String, Registry>,
    /// How long a call may take, by external server, where it isn't `limits.call_timeout`.
    pub timeouts: BTreeMap<String, Duration>,
    /// How one signs in to external servers.
    pub sign_in: SignIn,
    /// The settings file that was read.
    pub file: Option<PathBuf>,
    /// What looks like a mistake but stops nothing.
    pub warnings: Vec<String>,
}

/// How long, how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may take.
    pub call_timeout: Duration,
    /// How many bytes a tool's answer may have.
    pub max_output: usize,
    /// How many bytes a request's body may have.
    pub max_body: usize,
    /// How long calls that are under way may take to end when the bridge stops.
    pub drain: Duration,
    /// How many requests may be under way. No setting: it is far above what one machine's engines do.
    pub requests: usize,
    /// How many sessions there may be. No setting either.
    pub sessions: usize,
    /// How many items a page of a list has. No setting: all known clients ask for further pages, but not all did so
    /// always.
    pub page: usize,
    /// How long a session may be unused. At rest it costs little, and people come back after a weekend.
    pub session_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_mins(1),
            max_output: 100_000,
            max_body: 4 * 1024 * 1024,
            drain: Duration::from_secs(10),
            requests: 1_024,
            sessions: 20_000,
            page: 1_000,
            session_idle: Duration::from_hours(72),
        }
    }
}

/// What is on of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSelection {
    /// Whether the server is on at all.
    pub enabled: bool,
    /// Only these tools; `None` is all.
    pub tools: Option<Vec<String>>,
    /// All but these tools.
    pub without: Vec<String>,
    /// What stands before the names of its tools instead of its own, where something must.
    pub prefix: Option<String>,
}

impl Default for ServerSelection {
    fn default() -> Self {
        Self {
            enabled: true,
            tools: None,
            without: Vec::new(),
            prefix: None,
        }
    }
}

/// Reads the variables of this process. Called once, by whoever loads the settings.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        })
        .collect()
}

impl Config {
    /// Reads the settings. Relative paths start at `folder`, those in the settings file at the file's own folder.
    ///
    /// Every problem is found at once.
    pub fn load(
        flags: &Flags,
        variables: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let found = find_file(flags, variables, folder).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let table = found.as_ref().map(|file| parse(file, &mut problems));
        let mut sources = Sources {
            variables,
            file: found.as_ref().zip(table.as_ref()),
            problems,
        };
        let config = sources.config(flags, folder);
        let mut problems = sources.problems;
        if problems.is_empty()
            && let Some(config) = config
        {
            return Ok(config);
        }
        problems.sort_by_key(Problem::position);
        Err(ConfigError { problems })
    }
}

/// Where the settings come from, and what was wrong with them so far.
struct Sources<'a> {
    variables: &'a BTreeMap<String, String>,
    file: Option<(&'a File, &'a DeTable<'a>)>,
    problems: Vec<Problem>,
}

impl<'a> Sources<'a> {
    fn config(&mut self, flags: &Flags, folder: &Path) -> Option<Config> {
        let listen = self.one(
            flag("--listen", flags.listen.as_deref()),
            "listen",
            &kind::ADDRESS,
        );
        let no_auth = flags.no_auth.then_some("true");
        let no_auth = self.one(flag("--no-auth", no_auth), "no_auth", &kind::SWITCH);
        let data = self.data(flags, folder);
        let skills = self.folder(flags.skills.as_deref(), "skills", folder);
        let allowed_hosts = joined(&flags.allowed_hosts);
        let allowed_hosts = self.many(
            flag("--allowed-host", allowed_hosts.as_deref()),
            "allowed_hosts",
            &kind::HOST,
        );
        let allowed_origins = joined(&flags.allowed_origins);
        let allowed_origins = self.many(
            flag("--allowed-origin", allowed_origins.as_deref()),
            "allowed_origins",
            &kind::ORIGIN,
        );
        let token = self
            .variable("CLOPEN_MCP_TOKEN")
            .and_then(|(text, place)| self.read(Found::Text(text), place, &kind::TOKEN));
        let database_url = self.one(None, "database_url", &kind::DATABASE_URL);
        let limits = self.limits();
        let (servers, timeouts) = self.servers();
        let registries = self.registries();
        let sign_in = self.sign_in();
        self.unknown_keys();

        let listen = listen.map_or(
            SocketAddr::from((Ipv4Addr::LOCALHOST, 9151)),
            |(listen, _)| listen,
        );
        if let Some((true, place)) = &no_auth
            && !listen.ip().is_loopback()
        {
            self.problems.push(Problem::NoAuthInTheOpen {
                place: place.clone(),
                listen,
            });
        }
        Some(Config {
            listen,
            data: data?,
            skills,
            token,
            no_auth: no_auth.is_some_and(|(it, _)| it),
            allowed_hosts,
            allowed_origins,
            database_url: database_url.map(|(it, _)| it),
            limits,
            servers,
            warnings: self.unknown_variables(&registries),
            registries,
            timeouts,
            sign_in,
            file: self.file.map(|(file, _)| file.path.clone()),
        })
    }

    fn data(&mut self, flags: &Flags, folder: &Path) -> Option<PathBuf> {
        let before = self.problems.len();
        if let Some(data) = self.folder(flags.data.as_deref(), "data", folder) {
            return Some(data);
        }
        let default = data_folder(self.variables).map(|it| it.join("clopen-mcp"));
        if default.is_none() && self.problems.len() == before {
            self.problems.push(Problem::NoDataFolder);
        }
        default
    }

    /// Reads a setting that is a folder. A flag isn't text, since a path needn't be UTF-8.
    fn folder(&mut self, flag: Option<&Path>, key: &'static str, folder: &Path) -> Option<PathBuf> {
        if let Some(path) = flag {
            return Some(folder.join(path));
        }
        let (path, place) = self.one(None, key, &kind::FOLDER)?;
        let start = match (&place, self.file) {
            (Place::File { .. }, Some((file, _))) => file.path.parent().unwrap_or(folder),
            _ => folder,
        };
        Some(start.join(path))
    }

    fn limits(&mut self) -> Limits {
        let default = Limits::default();
        let mut limits = default;
        if let Some((it, _)) = self.one(None, "call_timeout", &kind::TIMEOUT) {
            limits.call_timeout = it;
        }
        if let Some((it, _)) = self.one(None, "max_output", &kind::BYTES) {
            limits.max_output = it;
        }
        if let Some((it, _)) = self.one(None, "max_body", &kind::BYTES) {
            limits.max_body = it;
        }
        if let Some((it, _)) = self.one(None, "drain", &kind::DURATION) {
            limits.drain = it;
        }
        limits
    }

    fn servers(
        &mut self,
    ) -> (
        BTreeMap<String, ServerSelection>,
        BTreeMap<String, Duration>,
    ) {
        let (mut selections, mut timeouts) = (BTreeMap::new(), BTreeMap::new());
        let Some((file, servers)) = self.tables("servers") else {
            return (selections, timeouts);
        };
        for (name, value) in servers {
            let (selection, timeout) = self.server(file, name.get_ref(), value);
            let name = name.get_ref().to_string();
            timeouts.extend(timeout.map(|it| (name.clone(), it)));
            selections.extend(selection.map(|it| (name, it)));
        }
        (selections, timeouts)
    }

    /// Returns the tables below a key.
    fn tables(&mut self, key: &'static str) -> Option<(&'a File, &'a DeTable<'a>)> {
        let (file, table) = self.file?;
        Some((file, self.table(file, key, table.get(key)?)?))
    }

    /// Reads what is said of a server. A time alone selects nothing.
    fn server(
        &mut self,
        file: &File,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> (Option<ServerSelection>, Option<Duration>) {
        let (mut selection, mut timeout) = (ServerSelection::default(), None);
        let path = format!("servers.{name}");
        let Some(table) = self.table(file, &path, value) else {
            return (Some(selection), timeout);
        };
        for (key, value) in table {
            let path = format!("{path}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "enabled" => {
                    let place = file.place(path, value.span().start);
                    let enabled = self.read(Found::Toml(value.get_ref()), place, &kind::SWITCH);
                    selection.enabled = enabled.unwrap_or(true);
                }
                "tools" => selection.tools = Some(self.array(file, &path, value, &kind::TOOL)),
                "without" => selection.without = self.array(file, &path, value, &kind::TOOL),
                "prefix" => {
                    let place = file.place(path, value.span().start);
                    selection.prefix =
                        self.read(Found::Toml(value.get_ref()), place, &kind::PREFIX);
                }
                "timeout" => {
                    let place = file.place(path, value.span().start);
                    timeout = self.read(Found::Toml(value.get_ref()), place, &kind::TIMEOUT);
                }
                unknown => self.problems.push(Problem::UnknownKey {
                    suggestion: closest(
                        unknown,
                        ["enabled", "tools", "without", "prefix", "timeout"],
                    ),
                    place: file.place(path, key.span().start),
                }),
            }
        }
        let selects = table.is_empty() || table.keys().any(|it| it.get_ref() != "timeout");
        (selects.then_some(selection), timeout)
    }

    fn table<'t>(
        &mut self,
        file: &File,
        key: &str,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<&'t DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.problems.push(Problem::Value {
                place: file.place(key, value.span().start),
                expected: "a table such as `[servers.weather-service]`",
                found: Some(Found::Toml(value.get_ref()).to_string()),
            });
        }
        table
    }

    /// Reads a setting that has one value.
    fn one<T>(
        &mut self,
        flag: Option<(&'static str, &str)>,
        key: &'static str,
        kind: &Kind<T>,
    ) -> Option<(T, Place)> {
        if let Some((flag, text)) = flag {
            let place = Place::Flag(flag);
            return Some((self.read(Found::Text(text), place.clone(), kind)?, place));
        }
        if let Some((text, place)) = self.variable(&variable(key)) {
            return Some((self.read(Found::Text(text), place.clone(), kind)?, place));
        }
        let (file, value) = self.file_value(key)?;
        let place = file.place(key, value.span().start);
        Some((
            self.read(Found::Toml(value.get_ref()), place.clone(), kind)?,
            place,
        ))
    }

    /// Reads a setting that is a list.
    fn many(
        &mut self,
        flag: Option<(&'static str, &str)>,
        key: &'static str,
        kind: &Kind<String>,
    ) -> Vec<String> {
        let text = match flag {
            Some((flag, text)) => Some((text, Place::Flag(flag))),
            None => self.variable(&variable(key)),
        };
        if let Some((text, place)) = text {
            let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            return items
                .filter_map(|item| self.read(Found::Text(item), place.clone(), kind))
                .collect();
        }
        match self.file_value(key) {
            Some((file, value)) => self.array(file, key, value, kind),
            None => Vec::new(),
        }
    }

    fn array(
        &mut self,
        file: &File,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        kind: &Kind<String>,
    ) -> Vec<String> {
        let Some(items) = value.get_ref().as_array() else {
            self.problems.push(Problem::Value {
                place: file.place(key, value.span().start),
                expected: "an array of texts",
                found: Some(Found::Toml(value.get_ref()).to_string()),
            });
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| {
                let place = file.place(key, item.span().start);
                self.read(Found::Toml(item.get_ref()), place, kind)
            })
            .collect()
    }

    fn read<T>(&mut self, found: Found<'_>, place: Place, kind: &Kind<T>) -> Option<T> {
        let value = (kind.read)(found);
        if value.is_none() {
            self.problems.push(Problem::Value {
                place,
                expected: kind.expected,
                found: (!kind.secret).then(|| found.to_string()),
            });
        }
        value
    }

    /// An empty variable counts as one that isn't set, since container files pass variables on that way.
    fn variable(&self, name: &str) -> Option<(&'a str, Place)> {
        let text = self.variables.get(name).filter(|it| !it.is_empty())?;
        Some((text, Place::Variable(name.to_owned())))
    }

    fn file_value(&self, key: &str) -> Option<(&'a File, &'a Spanned<DeValue<'a>>)> {
        let (file, table) = self.file?;
        Some((file, table.get(key)?))
    }

    fn unknown_keys(&mut self) {
        let Some((file, table)) = self.file else {
            return;
        };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if TABLES.contains(&name) || KEYS.contains(&name) {
                continue;
            }
            let place = file.place(name, key.span().start);
            self.problems.push(if name == "token" {
                Problem::TokenInFile { place }
            } else {
                Problem::UnknownKey {
                    suggestion: closest(name, KEYS.into_iter().chain(TABLES)),
                    place,
                }
            });
        }
    }

    fn unknown_variables(&self, registries: &BTreeMap<String, Registry>) -> Vec<String> {
        let known: Vec<String> = KEYS
            .into_iter()
            .map(variable)
            .chain(ONLY_VARIABLES.map(str::to_owned))
            .chain(registries.keys().flat_map(|it| registries::variables(it)))
            .collect();
        self.variables
            .keys()
            .filter(|name| name.starts_with(PREFIX) && !known.contains(name))
            .map(|name| {
                let hint = match closest(name, known.iter().map(String::as_str)) {
                    Some(suggestion) => format!("; did you mean `{suggestion}`?"),
                    None => String::new(),
                };
                format!("the variable `{name}` is not a setting, so nothing reads it{hint}")
            })
            .collect()
    }
}

fn flag<'t>(name: &'static str, text: Option<&'t str>) -> Option<(&'static str, &'t str)> {
    text.map(|text| (name, text))
}

fn joined(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| items.join(","))
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}
