//! The ways in which a server can be had: each package and each remote of its record, and whether it can be used here.

use super::{
    client::is_this_machine,
    input::{Asked, Inputs},
    record::{Argument, Input, Package, Record, Remote},
    rules,
    template::Template,
    text::line,
};
use reqwest::Url;
use std::{collections::BTreeSet, fmt, path::Path};

/// Where a way leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To an address where the server runs already.
    Remote,
    /// To a package of npm, which `npx` starts.
    Npm,
    /// To a package of `PyPI`, which `uvx` starts.
    Pypi,
    /// To a container image, which `docker` starts.
    Oci,
    /// To something that this program can't use.
    Other(String),
}

impl Kind {
    pub(super) fn of(package: &Package) -> Self {
        match &*package.registry_type {
            "npm" => Self::Npm,
            "pypi" => Self::Pypi,
            "oci" | "docker" => Self::Oci,
            other => Self::Other(line(other, 20)),
        }
    }

    /// Returns what registries and command lines call it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Remote => "remote",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One way to have a server.
#[derive(Clone, Debug)]
pub struct Way {
    /// Where it leads.
    pub kind: Kind,
    /// The package or the address, as it may be shown.
    pub shown: String,
    /// What is done, or why it can't be.
    pub recipe: Result<Recipe, String>,
    /// What a person should know of it.
    pub notes: Vec<String>,
    /// Whether any other way is better: this one is of an old version of the protocol.
    pub is_old: bool,
}

/// What is done to have a server, before anything is filled in.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub(super) kind: Kind,
    pub(super) base: Base,
    /// What may or must be said for it, in order.
    pub asked: Vec<Asked>,
}

#[derive(Clone, Debug)]
pub(super) enum Base {
    Command {
        /// The package with its version, or the image.
        package: String,
        before: Vec<Part>,
        after: Vec<Part>,
        environment: Vec<(String, Slot)>,
    },
    Remote {
        url: Template,
        headers: Vec<(String, Slot)>,
    },
}

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// What stands before its value.
    pub(super) flag: Option<String>,
    /// Its value. A flag without one stands alone.
    pub(super) slot: Option<Slot>,
    /// Whether the flag alone says `true`.
    pub(super) is_switch: bool,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Fixed(Template),
    /// From the input of this name.
    Asked(String),
}

/// Returns the ways of a record, packages first.
pub fn ways(record: &Record) -> Vec<Way> {
    let packages = record.packages.iter().map(|it| match it {
        Ok(package) => of_package(package),
        Err(reason) => unreadable("a package", reason),
    });
    let remotes = record.remotes.iter().map(|it| match it {
        Ok(remote) => of_remote(remote),
        Err(reason) => unreadable("an address", reason),
    });
    packages.chain(remotes).collect()
}

/// Returns the kinds of the ways, each once.
pub(super) fn kinds(record: &Record) -> Vec<String> {
    let packages = record.packages.iter().flatten().map(Kind::of);
    let remotes = record.remotes.iter().flatten().map(|_| Kind::Remote);
    let mut kinds = Vec::new();
    for kind in packages.chain(remotes) {
        let kind = kind.as_str().replace(char::is_whitespace, "-");
        if !kind.is_empty() && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Says whether a server has ways that can be used, and each of them needs a secret.
pub(super) fn needs_key(record: &Record) -> bool {
    let recipes = ways(record).into_iter().filter_map(|it| it.recipe.ok());
    let mut keys = recipes
        .map(|it| {
            it.asked
                .iter()
                .any(|it| it.is_secret && it.is_required && it.default.is_none())
        })
        .peekable();
    keys.peek().is_some() && keys.all(|needs| needs)
}

fn unreadable(what: &str, reason: &str) -> Way {
    Way {
        kind: Kind::Other("unreadable".to_owned()),
        shown: what.to_owned(),
        recipe: Err(format!("its description can't be read: {reason}")),
        notes: Vec::new(),
        is_old: false,
    }
}

fn of_package(package: &Package) -> Way {
    let kind = Kind::of(package);
    let mut notes = Vec::new();
    if !package.file_sha256.is_empty() && !matches!(kind, Kind::Other(_)) {
        notes.push(
            "its record names a hash of the file, which can't be checked here: the package's own registry checks what it hands out"
                .to_owned(),
        );
    }
    Way {
        shown: line(&shown_package(package), 200),
        recipe: recipe_of_package(package, &kind),
        kind,
        notes,
        is_old: false,
    }
}

fn shown_package(package: &Package) -> String {
    let Package {
        identifier,
        version,
        ..
    } = package;
    if version.is_empty() {
        identifier.clone()
    } else {
        format!("{identifier} {version}")
    }
}

fn recipe_of_package(package: &Package, kind: &Kind) -> Result<Recipe, String> {
    if let Kind::Other(name) = kind {
        return Err(match &**name {
            "mcpb" => "bundles (mcpb) are not started here".to_owned(),
            name => format!("packages of `{name}` are not started here"),
        });
    }
    if !matches!(&*package.transport.kind, "" | "stdio") {
        return Err(format!(
            "it would serve over `{}` at an address of its own; only programs on standard input and output are started here",
            line(&package.transport.kind, 40)
        ));
    }
    let name = rules::package(kind, package)?;
    let mut inputs = Inputs::default();
    let mut before = Vec::new();
    for argument in &package.runtime_arguments {
        let part = part(argument, true, &mut inputs)?;
        if !rules::is_ours(kind, &part) {
            rules::before(kind, &part)?;
            before.push(part);
        }
    }
    let after = package.package_arguments.iter();
    let after = after.map(|it| part(it, false, &mut inputs));
    let after = after.collect::<Result<Vec<Part>, String>>()?;
    let mut environment = Vec::new();
    for it in &package.environment_variables {
        rules::variable(&it.name, it.input.value.is_some())?;
        environment.push((it.name.clone(), inputs.slot(&it.name, &it.input)?));
    }
    Ok(Recipe {
        kind: kind.clone(),
        base: Base::Command {
            package: name,
            before,
            after,
            environment,
        },
        asked: inputs.asked(),
    })
}

/// Makes a part of an argument. Before the package, a named argument without a value is a switch: `--rm`; after it, one
/// whose value is asked for.
fn part(argument: &Argument, is_before: bool, inputs: &mut Inputs) -> Result<Part, String> {
    let Argument {
        name,
        value_hint,
        input,
        ..
    } = argument;
    let is_named = argument.kind == "named" || argument.kind.is_empty() && !name.is_empty();
    if !is_named {
        let key = if value_hint.is_empty() {
            format!("argument-{}", inputs.count() + 1)
        } else {
            value_hint.clone()
        };
        return Ok(Part {
            flag: None,
            slot: Some(inputs.repeated(&key, input, argument.is_repeated)?),
            is_switch: false,
        });
    }
    rules::flag(name)?;
    let says_nothing = input.value.is_none()
        && input.default.is_none()
        && input.choices.is_empty()
        && input.format.is_empty()
        && input.placeholder.is_empty()
        && value_hint.is_empty()
        && !input.is_secret;
    let slot = if is_before && says_nothing {
        None
    } else {
        let key = name.trim_start_matches('-');
        Some(inputs.repeated(key, input, argument.is_repeated)?)
    };
    Ok(Part {
        flag: Some(name.clone()),
        slot,
        is_switch: input.format == "boolean",
    })
}

fn of_remote(remote: &Remote) -> Way {
    let is_old = remote.kind == "sse";
    let old = "it speaks over HTTP+SSE, which newer versions of the protocol have replaced";
    let is_open =
        Url::parse(&remote.url).is_ok_and(|it| it.scheme() == "http" && !is_this_machine(&it));
    let open = "what is sent to its address is not encrypted: whoever is on the way can read it";
    Way {
        kind: Kind::Remote,
        shown: line(&remote.url, 200),
        recipe: recipe_of_remote(remote),
        notes: [is_old.then_some(old), is_open.then_some(open)]
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect(),
        is_old,
    }
}

fn recipe_of_remote(remote: &Remote) -> Result<Recipe, String> {
    match &*remote.kind {
        "streamable-http" | "streamable" | "http" | "sse" => {}
        other => return Err(format!("it speaks over `{}`", line(other, 40))),
    }
    rules::address(&remote.url)?;
    let mut inputs = Inputs::default();
    let url = Template::read(&remote.url);
    // An address has no parts that may be left out.
    let whole = Input {
        is_required: true,
        ..Input::default()
    };
    inputs.variables(&url, &remote.variables, &whole, false)?;
    let mut headers = Vec::new();
    for it in &remote.headers {
        rules::header(&it.name)?;
        headers.push((it.name.clone(), inputs.slot(&it.name, &it.input)?));
    }
    Ok(Recipe {
        kind: Kind::Remote,
        base: Base::Remote { url, headers },
        asked: inputs.asked(),
    })
}

/// The programs that start packages, as far as they are here.
#[derive(Clone, Debug, Default)]
pub struct Programs(BTreeSet<&'static str>);

impl Programs {
    /// Looks for them in the folders of `PATH`.
    pub fn of_path(path: &str) -> Self {
        let folders: Vec<_> = std::env::split_paths(path).collect();
        let is_here = |name: &&str| {
            let endings = ["", ".exe", ".cmd"];
            let is_in = |folder: &Path, ending| folder.join(format!("{name}{ending}")).is_file();
            let mut folders = folders.iter();
            folders.any(|it| endings.iter().any(|ending| is_in(it, ending)))
        };
        let names = ["npx", "uvx", "uv", "docker"];
        Self(names.into_iter().filter(is_here).collect())
    }

    /// Returns what starts packages of a kind, and where to have it if it is not here.
    pub(super) fn command(&self, kind: &Kind) -> (&'static [&'static str], Option<&'static str>) {
        let (command, missing): (&[&str], &str) = match kind {
            Kind::Npm => (
                &["npx", "-y"],
                "it needs `npx`; install Node.js, https://nodejs.org",
            ),
            Kind::Pypi if self.0.contains("uv") && !self.0.contains("uvx") => {
                (&["uv", "tool", "run"], "")
            }
            Kind::Pypi => (
                &["uvx"],
                "it needs `uvx`; install uv, https://docs.astral.sh/uv",
            ),
            Kind::Oci => (
                &["docker", "run", "-i", "--rm"],
                "it needs `docker`; install Docker, https://docs.docker.com",
            ),
            Kind::Remote | Kind::Other(_) => (&[], ""),
        };
        let program = command.first();
        let is_missing = program.is_some_and(|it| !self.0.contains(it));
        (command, is_missing.then_some(missing))
    }
}

impl Way {
    /// Says why it can't be used on this machine.
    pub fn is_refused(&self, programs: &Programs) -> Option<String> {
        match &self.recipe {
            Err(reason) => Some(reason.clone()),
            Ok(_) => programs.command(&self.kind).1.map(str::to_owned),
        }
    }
}
