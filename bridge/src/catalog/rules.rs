//! What a record may not say. It is written by strangers, and ends up in a command line.

use super::{
    record::Package,
    template::Piece,
    text::{is_invisible, line},
    way::{Kind, Part, Slot},
};
use reqwest::Url;

/// What may stand alone before the package. Anything else could take the package for its value, or change what is
/// started or from where.
const ALONE_FOR_NPX: [&str; 8] = [
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "--prefer-offline",
    "--prefer-online",
    "--no-audit",
    "--no-fund",
];
const ALONE_FOR_UVX: [&str; 5] = ["-q", "--quiet", "--refresh", "--isolated", "--no-progress"];
const ALONE_FOR_DOCKER: [&str; 10] = [
    "-i",
    "--interactive",
    "-t",
    "--tty",
    "-it",
    "-ti",
    "--rm",
    "--init",
    "--read-only",
    "--no-healthcheck",
];

/// What may have a value of its own before the package, of the names with one dash: `docker run --rm evil` would start
/// `evil`. Those with two are joined with theirs.
const SHORT_FOR_UVX: [&str; 1] = ["-p"];
const SHORT_FOR_DOCKER: [&str; 9] = ["-e", "-v", "-p", "-u", "-w", "-h", "-l", "-m", "-c"];

/// What `docker run` may not be told: what takes the container's walls down, or starts something else.
const NOT_FOR_DOCKER: [&str; 15] = [
    "--privileged",
    "--pid",
    "--ipc",
    "--uts",
    "--userns",
    "--cgroupns",
    "--cap-add",
    "--device",
    "--security-opt",
    "--entrypoint",
    "--env-file",
    "--group-add",
    "--runtime",
    "--volumes-from",
    "--detach",
];

/// Variables that change what other programs do, by how they begin.
const DANGEROUS: [&str; 9] = [
    "PATH",
    "LD_",
    "DYLD_",
    "NODE_OPTIONS",
    "NPM_CONFIG_",
    "UV_",
    "PIP_",
    "PYTHONPATH",
    "DOCKER_",
];

/// Returns what the command line has for a package: its name with its exact version.
pub(super) fn package(kind: &Kind, package: &Package) -> Result<String, String> {
    let (name, version) = (&*package.identifier, &*package.version);
    let shown = line(name, 100);
    let of_registry = |bases: &[&str]| {
        let base = package.registry_base_url.trim_end_matches('/');
        if base.is_empty() || bases.contains(&base) {
            return Ok(());
        }
        Err(format!(
            "it is of the registry `{}`, and would be fetched from another one here",
            line(base, 100)
        ))
    };
    let refused = |what: &str| Err(format!("`{shown}` is no name of {what}"));
    match kind {
        Kind::Npm => {
            of_registry(&["https://registry.npmjs.org", "https://registry.npmjs.com"])?;
            if !is_npm_name(name) {
                return refused("a package of npm");
            }
            Ok(format!("{name}@{}", exact(version, is_npm_version)?))
        }
        Kind::Pypi => {
            of_registry(&["https://pypi.org", "https://pypi.org/simple"])?;
            if !is_of(name, b"-._") {
                return refused("a package of PyPI");
            }
            Ok(format!("{name}@{}", exact(version, is_plain_version)?))
        }
        Kind::Oci => {
            if !is_of(name, b"-._/:@") {
                return refused("an image");
            }
            image(&package.registry_base_url, name, version)
        }
        Kind::Remote | Kind::Other(_) => refused("a package"),
    }
}

/// An image with its tag or digest, which newer records have in the name and older ones apart.
fn image(base: &str, name: &str, version: &str) -> Result<String, String> {
    let host = name.split_once('/').map_or("", |(first, _)| first);
    let base = base.trim_start_matches("https://").trim_end_matches('/');
    let is_usual = matches!(base, "" | "docker.io" | "registry.hub.docker.com");
    let name = if is_usual || host.contains(['.', ':']) {
        name.to_owned()
    } else if is_of(base, b"-.:") {
        format!("{base}/{name}")
    } else {
        return Err(format!("`{}` is no registry of images", line(base, 100)));
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    let named = match (last.split_once('@'), last.split_once(':')) {
        (Some((_, digest)), _) => Some(digest),
        (None, Some((_, tag))) => Some(tag),
        (None, None) => None,
    };
    let between = if version.starts_with("sha256:") {
        '@'
    } else {
        ':'
    };
    match named {
        Some(tag) => exact(tag, is_tag).map(|_| name.clone()),
        None => exact(version, is_tag).map(|it| format!("{name}{between}{it}")),
    }
}

fn exact(version: &str, is_exact: fn(&str) -> bool) -> Result<&str, String> {
    if is_exact(version) {
        return Ok(version);
    }
    if version.is_empty() {
        return Err("it names no version, and so nobody knows what would be started".to_owned());
    }
    Err(format!(
        "its version `{}` is not an exact one, and so nobody knows what would be started",
        line(version, 40)
    ))
}

/// Says whether a version means one package and no other.
pub(super) fn is_exact(kind: &Kind, version: &str) -> bool {
    match kind {
        Kind::Npm => is_npm_version(version),
        _ => is_plain_version(version),
    }
}

/// Says whether it is a word such as `next`, which npm has a version for, or nothing.
pub(super) fn is_tag_of_npm(version: &str) -> bool {
    let is_word = |it: u8| it.is_ascii_lowercase() || it == b'-';
    !version.starts_with('-') && version != "x" && version.bytes().all(is_word)
}

/// To npm, anything but three numbers and what follows them is a range.
fn is_npm_version(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = numbers.split('.').collect();
    let is_number = |it: &&str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    numbers.len() == 3 && numbers.iter().all(is_number) && is_of(version, b"-.+")
}

fn is_plain_version(version: &str) -> bool {
    version.starts_with(|it: char| it.is_ascii_digit()) && is_of(version, b"-.+!_")
}

fn is_tag(tag: &str) -> bool {
    tag != "latest" && is_of(tag, b"-._:")
}

/// Says whether a text is of letters, digits and these others, and begins with a letter or a digit.
fn is_of(text: &str, others: &[u8]) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    text.len() <= 255
        && text.starts_with(|it: char| it.is_ascii_alphanumeric())
        && text.bytes().all(is_right)
}

fn is_npm_name(name: &str) -> bool {
    match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_of(scope, b"-._") && is_of(name, b"-._")),
        None => is_of(name, b"-._"),
    }
}

/// Checks the name of a named argument.
pub(super) fn flag(name: &str) -> Result<(), String> {
    let rest = name.trim_start_matches('-');
    let dashes = name.len() - rest.len();
    if (1..=2).contains(&dashes) && is_of(rest, b"-._:") {
        return Ok(());
    }
    // Some programs take words such as `port=80`.
    if dashes == 0 && is_of(rest, b"-._") {
        return Ok(());
    }
    Err(format!("`{}` is no name of an argument", line(name, 60)))
}

/// Says whether an argument only says what our own command says already.
pub(super) fn is_ours(kind: &Kind, part: &Part) -> bool {
    let word = match (&part.flag, &part.slot) {
        (Some(flag), None) => flag,
        (None, Some(Slot::Fixed(template))) => match template.pieces() {
            [Piece::Text(text)] => text,
            _ => return false,
        },
        _ => return false,
    };
    let ours: &[&str] = match kind {
        Kind::Npm => &["-y", "--yes"],
        Kind::Oci => &["run", "-i", "--interactive", "--rm"],
        _ => &[],
    };
    ours.contains(&word.as_str())
}

/// Checks an argument that stands before the package, where it could take the package's place.
pub(super) fn before(kind: &Kind, part: &Part) -> Result<(), String> {
    let has_value = part.flag.is_some() && part.slot.is_some() && !part.is_switch;
    let word = match (&part.flag, &part.slot) {
        (Some(flag), _) => flag.as_str(),
        (None, Some(Slot::Fixed(template))) => match template.pieces().first() {
            Some(Piece::Text(text)) => text,
            _ => return Err(in_place_of_package()),
        },
        (None, _) => return Err(in_place_of_package()),
    };
    if !word.starts_with('-') {
        return Err(in_place_of_package());
    }
    let (name, is_joined) = match word.split_once('=') {
        Some((name, _)) => (name, true),
        None => (word, has_value && word.starts_with("--")),
    };
    let is_allowed = match kind {
        Kind::Npm => !has_value && ALONE_FOR_NPX.contains(&word),
        Kind::Pypi if is_joined => name == "--python",
        Kind::Pypi if has_value => SHORT_FOR_UVX.contains(&name),
        Kind::Pypi => ALONE_FOR_UVX.contains(&word),
        _ if is_joined => name.starts_with("--") && !NOT_FOR_DOCKER.contains(&name),
        _ if has_value => SHORT_FOR_DOCKER.contains(&name),
        _ => ALONE_FOR_DOCKER.contains(&word),
    };
    if is_allowed {
        return Ok(());
    }
    Err(format!(
        "it tells `{}` to what starts it, which could change what is started",
        line(word, 60)
    ))
}

fn in_place_of_package() -> String {
    "it puts a word where the package is expected".to_owned()
}

/// Checks the name of a variable, and whether it may be fixed.
pub(super) fn variable(name: &str, is_fixed: bool) -> Result<(), String> {
    let is_right = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    let starts_right = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    if !starts_right || !name.bytes().all(is_right) || name.len() > 255 {
        return Err(format!("`{}` is no name of a variable", line(name, 60)));
    }
    let upper = name.to_ascii_uppercase();
    let is_dangerous = DANGEROUS.iter().any(|it| {
        if it.ends_with('_') {
            upper.starts_with(it)
        } else {
            upper == *it
        }
    });
    if is_fixed && is_dangerous {
        return Err(format!(
            "it sets the variable `{name}`, which changes what other programs do"
        ));
    }
    Ok(())
}

/// Checks the name of a header.
pub(super) fn header(name: &str) -> Result<(), String> {
    let is_right = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok();
    let is_of_connection = [
        "host",
        "content-length",
        "content-type",
        "connection",
        "transfer-encoding",
        "accept",
    ];
    if !is_right {
        return Err(format!("`{}` is no name of a header", line(name, 60)));
    }
    if is_of_connection
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it))
    {
        return Err(format!(
            "it sets the header `{name}`, which is not its to set"
        ));
    }
    Ok(())
}

/// Checks an address that may have variables.
pub(super) fn address(url: &str) -> Result<(), String> {
    let refused = || format!("`{}` is no `http://` or `https://` address", line(url, 100));
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    if !is_http || has_odd(url) {
        return Err(refused());
    }
    // Any word will do for the variables.
    let filled: String = super::template::Template::read(url)
        .pieces()
        .iter()
        .map(|it| match it {
            Piece::Text(text) => text.as_str(),
            Piece::Variable(_) => "x",
        })
        .collect();
    let parsed = Url::parse(&filled).map_err(|_| refused())?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("its address has a name or a password in it".to_owned());
    }
    Ok(())
}

/// Says whether a text has control characters, or such as show nothing.
pub(super) fn has_odd(text: &str) -> bool {
    text.chars().any(|it| it.is_control() || is_invisible(it))
}
