//! What is started or reached for a server of a registry, and what is refused.

use crate::{
    catalog_sync::client_of,
    endpoint::{Answer, Endpoint},
};
use clopen_mcp::{
    catalog::{Entry, Indexes, Programs, Record, Values, choose, needs_pin, pin, ways},
    secret::Secret,
};
use expect_test::{Expect, expect};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json, value::RawValue};
use std::{collections::BTreeMap, fs, path::absolute};
use tempfile::TempDir;

/// A machine with these programs.
fn programs(names: &[&str]) -> (TempDir, Programs) {
    let folder = TempDir::new().unwrap();
    for name in names {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let programs = Programs::of_path(folder.path().to_str().unwrap());
    (folder, programs)
}

fn values(said: &[&str]) -> Values {
    let mut values = Values::new();
    for said in said {
        let (key, value) = said.split_once('=').unwrap();
        let values = values.entry(key.to_owned()).or_default();
        values.push(Secret::new(value));
    }
    values
}

fn record(rest: &Value) -> Record {
    let mut record = json!({ "name": "com.example/it", "version": "1.0.0" });
    let all = record.as_object_mut().unwrap();
    all.extend(rest.as_object().unwrap().clone());
    Record::read(&record.to_string()).unwrap()
}

fn made(rest: &Value, wanted: Option<&str>, said: &[&str], programs: &Programs) -> String {
    let ways = ways(&record(rest));
    let values = values(said);
    let choice = match choose(&ways, wanted, &values, programs, false) {
        Ok(choice) => choice,
        Err(error) => return error.to_string(),
    };
    let here = absolute(".").unwrap().display().to_string();
    match choice.recipe.fill(&values, &BTreeMap::new(), programs) {
        Ok(plan) => {
            let debugged = format!("{plan:?}");
            assert!(!debugged.contains("planted"), "{debugged}");
            let given = plan.given().join(", ");
            let notes = choice.way.notes.join("\n");
            let lines = [
                choice.why,
                plan.shown().replace(&here, "HERE"),
                given,
                notes,
            ];
            let lines: Vec<String> = lines.into_iter().filter(|it| !it.is_empty()).collect();
            lines.join("\n")
        }
        Err(error) => error.to_string().replace(&here, "HERE"),
    }
}

/// Makes the first way that can be used where everything is installed.
fn check(rest: &Value, said: &[&str], expected: &Expect) {
    let (_folder, programs) = programs(&["npx", "uvx", "docker"]);
    expected.assert_eq(&made(rest, None, said, &programs));
}

fn npm(rest: &Value) -> Value {
    let mut package = json!({
        "registryType": "npm",
        "identifier": "@example/x",
        "version": "1.0.0",
        "transport": { "type": "stdio" },
    });
    let all = package.as_object_mut().unwrap();
    all.extend(rest.as_object().unwrap().clone());
    json!({ "packages": [package] })
}

fn oci(rest: &Value) -> Value {
    let mut package = json!({ "registryType": "oci", "identifier": "docker.io/example/db:3.1.0" });
    let all = package.as_object_mut().unwrap();
    all.extend(rest.as_object().unwrap().clone());
    json!({ "packages": [package] })
}

fn remote(rest: &Value) -> Value {
    let mut remote = json!({ "type": "streamable-http", "url": "https://example.org/mcp" });
    let all = remote.as_object_mut().unwrap();
    all.extend(rest.as_object().unwrap().clone());
    json!({ "remotes": [remote] })
}

#[test]
fn packages_are_started_at_their_exact_version() {
    check(
        &npm(&json!({})),
        &[],
        &expect![[r#"
        the only one that can be used here
        npx -y @example/x@1.0.0"#]],
    );
    let pypi = json!({ "packages": [{
        "registryType": "pypi",
        "registryBaseUrl": "https://pypi.org",
        "identifier": "mcp-server-time",
        "version": "2026.10",
        "packageArguments": [{ "type": "named", "name": "--local-timezone", "default": "UTC" }],
    }]});
    check(
        &pypi,
        &[],
        &expect![[r#"
        the only one that can be used here
        uvx mcp-server-time@2026.10 --local-timezone UTC"#]],
    );
    check(
        &pypi,
        &["local-timezone=-5"],
        &expect![[r#"
        the only one that can be used here
        uvx mcp-server-time@2026.10 --local-timezone=-5"#]],
    );
    let (_folder, uv) = programs(&["uv"]);
    expect![[r#"
        the only one that can be used here
        uv tool run mcp-server-time@2026.10 --local-timezone UTC"#]]
    .assert_eq(&made(&pypi, None, &[], &uv));
    check(
        &oci(&json!({})),
        &[],
        &expect![[r#"
        the only one that can be used here
        docker run -i --rm docker.io/example/db:3.1.0"#]],
    );
    let older = json!({
        "identifier": "example/db",
        "registryBaseUrl": "https://ghcr.io",
        "version": "sha256:abc",
        "fileSha256": "fe",
    });
    check(
        &oci(&older),
        &[],
        &expect![[r#"
        the only one that can be used here
        docker run -i --rm ghcr.io/example/db@sha256:abc
        its record names a hash of the file, which can't be checked here: the package's own registry checks what it hands out"#]],
    );
}

#[test]
fn arguments_stand_where_the_record_puts_them() {
    let of_image = json!({
        "runtimeArguments": [
            { "type": "named", "name": "--rm" },
            { "type": "named", "name": "--network", "value": "host" },
            {
                "type": "named",
                "name": "--mount",
                "value": "type=bind,src={src},dst=/project",
                "isRepeated": true,
                "variables": { "src": { "format": "filepath", "isRequired": true } },
            },
        ],
        "packageArguments": [
            { "type": "positional", "value": "/project" },
            { "type": "positional", "valueHint": "mode", "choices": ["ro", "rw"], "default": "ro" },
            { "type": "named", "name": "--verbose", "format": "boolean" },
            { "type": "named", "name": "--level", "format": "number" },
        ],
        "environmentVariables": [
            { "name": "TOKEN", "isSecret": true, "isRequired": true },
            { "name": "LOG", "value": "info" },
            { "name": "UNSET" },
        ],
    });
    check(
        &oci(&of_image),
        &["src=/a b", "src=c", "TOKEN=planted", "verbose=true"],
        &expect![[r#"
            the only one that can be used here
            docker run -i --rm -e LOG -e TOKEN --network=host '--mount=type=bind,src=/a b,dst=/project' --mount=type=bind,src=HERE/c,dst=/project docker.io/example/db:3.1.0 /project ro --verbose
            LOG, TOKEN"#]],
    );
    check(
        &oci(&of_image),
        &[
            "src=~/a",
            "mode=x",
            "level=much",
            "verbose=maybe",
            "LOG=x",
            "TOKEN=a\u{7}",
        ],
        &expect![[r#"
            - `src` is a whole path, such as `/home/me/…`, not `~/a`
            - `mode` is one of `ro`, `rw`
            - `verbose` is `true` or `false`, not `maybe`
            - `level` is a number, not `much`
            - `TOKEN` has control characters
            - there is no input `LOG`; there are src, mode, verbose, level, TOKEN, UNSET"#]],
    );
}

#[test]
fn addresses_and_headers_are_filled_in() {
    let templated = json!({
        "url": "https://{tenant}.example.org/{region}/mcp?q={q}",
        "variables": {
            "tenant": { "description": "Your tenant", "placeholder": "acme" },
            "region": { "default": "eu", "choices": ["eu", "us"] },
            "q": { "default": "a b&c" },
        },
        "headers": [
            { "name": "X-API-Key", "isRequired": true, "isSecret": true },
            {
                "name": "Authorization",
                "value": "Bearer {token}",
                "isSecret": true,
                "variables": { "token": {} },
            },
        ],
    });
    check(
        &remote(&templated),
        &[],
        &expect![[r#"
        - `tenant` is missing (Your tenant); say it with `--set tenant=acme`
        - `X-API-Key` is missing; say it with `--set X-API-Key=VALUE`"#]],
    );
    check(
        &remote(&templated),
        &["tenant=acme", "X-API-Key=planted"],
        &expect![[r#"
            the only one that can be used here
            https://acme.example.org/eu/mcp?q=a%20b%26c
            X-API-Key"#]],
    );
    check(
        &remote(&templated),
        &[
            "tenant=acme",
            "X-API-Key=planted",
            "token=planted",
            "region=us",
        ],
        &expect![[r#"
            the only one that can be used here
            https://acme.example.org/us/mcp?q=a%20b%26c
            Authorization, X-API-Key"#]],
    );
    for tenant in ["evil.example/x", "a@b", "https://acme", "a#"] {
        check(
            &remote(&templated),
            &[&format!("tenant={tenant}"), "X-API-Key=planted"],
            &expect![
                "- `tenant` stands in the host of an address: letters, digits, `-` and `.`, without `https://`"
            ],
        );
    }
}

#[test]
fn an_address_that_is_not_encrypted_is_told() {
    check(
        &remote(&json!({ "url": "http://example.org/mcp" })),
        &[],
        &expect![[r#"
            the only one that can be used here
            http://example.org/mcp
            what is sent to its address is not encrypted: whoever is on the way can read it"#]],
    );
    check(
        &remote(&json!({ "url": "http://127.0.0.1:3000/mcp" })),
        &[],
        &expect![[r#"
            the only one that can be used here
            http://127.0.0.1:3000/mcp"#]],
    );
}

#[test]
fn what_needs_nothing_further_is_taken_first() {
    let both = json!({
        "packages": [
            { "registryType": "npm", "identifier": "x", "version": "1.0.0",
              "environmentVariables": [{ "name": "KEY", "isRequired": true }] },
            { "registryType": "pypi", "identifier": "y", "version": "1.0.0" },
        ],
        "remotes": [
            { "type": "sse", "url": "https://example.org/sse" },
            { "type": "streamable-http", "url": "https://example.org/mcp",
              "headers": [{ "name": "X", "isRequired": true }] },
        ],
    });
    check(
        &both,
        &[],
        &expect![[r#"
            it needs nothing further; `--package` takes another: npm, https://example.org/sse, https://example.org/mcp
            uvx y@1.0.0"#]],
    );
    check(
        &both,
        &["X=1"],
        &expect![[r#"
            it needs nothing further; `--package` takes another: npm, pypi, https://example.org/sse
            https://example.org/mcp
            X"#]],
    );
    check(
        &both,
        &["KEY=1"],
        &expect![[r#"
            it needs nothing further; `--package` takes another: pypi, https://example.org/sse, https://example.org/mcp
            npx -y x@1.0.0
            KEY"#]],
    );
    let (_folder, no_uvx) = programs(&["npx"]);
    expect![[r#"
        it needs nothing further; `--package` takes another: npm, https://example.org/sse
        https://example.org/mcp
        X"#]]
    .assert_eq(&made(&both, None, &["X=1"], &no_uvx));
    expect![[r#"
        as asked for
        npx -y x@1.0.0
        KEY"#]]
    .assert_eq(&made(&both, Some("npm"), &["KEY=1"], &no_uvx));
    expect![[r#"
        `pypi` of it can't be used:
          npm     x 1.0.0
          pypi    y 1.0.0: not here, it needs `uvx`; install uv, https://docs.astral.sh/uv
          remote  https://example.org/sse
          remote  https://example.org/mcp"#]]
    .assert_eq(&made(&both, Some("pypi"), &[], &no_uvx));
    expect![[r#"
        as asked for
        https://example.org/mcp
        X"#]]
    .assert_eq(&made(
        &both,
        Some("https://example.org/mcp"),
        &["X=1"],
        &no_uvx,
    ));
}

#[test]
fn reg_191_what_cannot_be_used_is_listed_with_the_reason() {
    let all = json!({
        "packages": [
            { "registryType": "on_device", "identifier": "x", "transport": { "type": "stdio" } },
            { "registryType": "nuget", "identifier": "x", "version": "1.0.0", "runtimeHint": "dnx" },
            { "registryType": "cargo", "identifier": "x", "version": "1.0.0" },
            { "registryType": "npm", "identifier": "x", "version": "1.0.0",
              "transport": { "type": "streamable-http", "url": "http://localhost:3000/mcp" } },
            { "registryType": "npm", "identifier": "x", "version": "1.0.0", "registryBaseUrl": "https://npm.example.org" },
            { "registryType": "npm", "version": "1.0.0" },
        ],
        "remotes": [{ "type": "websocket", "url": "https://example.org/ws" }],
    });
    check(
        &all,
        &[],
        &expect![[r#"
            nothing of it can be used here:
              on_device x: not here, packages of `on_device` are not started here
              nuget   x 1.0.0: not here, packages of `nuget` are not started here
              cargo   x 1.0.0: not here, packages of `cargo` are not started here
              npm     x 1.0.0: not here, it would serve over `streamable-http` at an address of its own; only programs on standard input and output are started here
              npm     x 1.0.0: not here, it is of the registry `https://npm.example.org`, and would be fetched from another one here
              unreadable a package: not here, its description can't be read: missing field `identifier`
              remote  https://example.org/ws: not here, it speaks over `websocket`"#]],
    );
    let mut usable = all;
    let packages = usable["packages"].as_array_mut().unwrap();
    packages.push(json!({ "registryType": "npm", "identifier": "ok", "version": "1.0.0" }));
    check(
        &usable,
        &[],
        &expect![[r#"
        the only one that can be used here
        npx -y ok@1.0.0"#]],
    );
    check(
        &json!({}),
        &[],
        &expect!["its record names neither a package nor an address"],
    );
}

#[test]
fn reg_192_a_version_is_exact() {
    for version in [
        "latest",
        "^1.0.0",
        "1.x",
        "1.2",
        ">=1",
        "*",
        "",
        "1.0.0 || 2.0.0",
        "next",
    ] {
        let made = {
            let (_folder, programs) = programs(&["npx"]);
            made(&npm(&json!({ "version": version })), None, &[], &programs)
        };
        assert!(
            made.contains("nobody knows what would be started"),
            "{version}: {made}"
        );
    }
    for image in ["example/db", "example/db:latest", "docker.io/example/db"] {
        let image = json!({ "identifier": image });
        let (_folder, programs) = programs(&["docker"]);
        let made = made(&oci(&image), None, &[], &programs);
        assert!(
            made.contains("nobody knows what would be started"),
            "{made}"
        );
    }
    check(
        &npm(&json!({ "version": "latest" })),
        &[],
        &expect![[r#"
        nothing of it can be used here:
          npm     @example/x latest: not here, its version `latest` is not an exact one, and so nobody knows what would be started"#]],
    );
}

/// An exact version takes the place of a tag or of nothing; a range stays, and is refused.
#[tokio::test]
async fn reg_192_a_version_that_is_meant_is_asked_for() {
    let npm = Endpoint::serve(|asked| match &*asked.path {
        "/%40example%2Fx/latest" => Answer::json(r#"{"version":"1.2.3"}"#),
        "/%40example%2Fx/next" => Answer::json(r#"{"version":"2.0.0-beta.1"}"#),
        _ => Answer::new("404 Not Found", &[], ""),
    })
    .await;
    let pypi = Endpoint::serve(|asked| match &*asked.path {
        "/pypi/mcp-x/json" => Answer::json(r#"{"info":{"version":"7.1"}}"#),
        _ => Answer::new("404 Not Found", &[], ""),
    })
    .await;
    let indexes = Indexes {
        npm: client_of(npm.url.trim_end_matches("/mcp"), None),
        pypi: client_of(pypi.url.trim_end_matches("/mcp"), None),
    };
    let package = |kind: &str, identifier: &str, version: Value| json!({ "registryType": kind, "identifier": identifier, "version": version });
    let server = json!({ "name": "a/b", "version": "1.0.0", "packages": [
        package("npm", "@example/x", json!("latest")),
        package("npm", "@example/x", json!("next")),
        package("npm", "@example/x", json!("^1.0.0")),
        package("npm", "@example/other", json!("latest")),
        package("pypi", "mcp-x", json!(null)),
        package("npm", "--evil", json!("latest")),
        package("npm", "@example/x", json!("1.0.0")),
    ]});
    let raw = RawValue::from_string(server.to_string()).unwrap();
    let mut entry = Entry::read(&raw).unwrap();
    assert!(needs_pin(&entry.record));
    pin(&mut entry, &indexes).await.unwrap();
    let versions = entry.record.packages.iter().flatten();
    let versions: Vec<&str> = versions.map(|it| &*it.version).collect();
    let expected = [
        "1.2.3",
        "2.0.0-beta.1",
        "^1.0.0",
        "latest",
        "7.1",
        "latest",
        "1.0.0",
    ];
    assert_eq!(versions, expected);
    assert_eq!(Record::read(&entry.raw).unwrap().packages.len(), 7);
    assert_eq!(npm.asked().len(), 3);
}

#[test]
fn reg_194_no_shell_reads_an_argument() {
    let arguments = json!({ "packageArguments": [
        { "type": "positional", "value": ";rm -rf ~/Development" },
        { "type": "named", "name": "--q", "value": "$(id)" },
        { "type": "positional", "value": "it's" },
    ]});
    check(
        &npm(&arguments),
        &[],
        &expect![[r#"
        the only one that can be used here
        npx -y @example/x@1.0.0 ';rm -rf ~/Development' --q '$(id)' 'it'\''s'"#]],
    );
}

#[test]
fn reg_196_a_bundle_is_not_started() {
    let bundle = json!({ "packages": [{
        "registryType": "mcpb",
        "identifier": "https://example.org/b.mcpb",
        "fileSha256": "fe333e598595000ae021bd27117db32ec69af6987f507ba7a63c90638ff633ce",
    }]});
    check(
        &bundle,
        &[],
        &expect![[r#"
        nothing of it can be used here:
          mcpb    https://example.org/b.mcpb: not here, bundles (mcpb) are not started here"#]],
    );
}

#[test]
fn reg_200_names_are_names_of_one_thing() {
    for name in ["**", "*", "A B", "A=B", "", "1A", "A\n", "ä", "-e"] {
        let given = npm(&json!({ "environmentVariables": [{ "name": name, "isSecret": true }] }));
        let (_folder, programs) = programs(&["npx"]);
        let made = made(&given, None, &[], &programs);
        assert!(made.contains("is no name of a variable"), "{name}: {made}");
    }
    check(
        &remote(&json!({ "headers": [{ "name": "**\r\nX: 1", "value": "1" }] })),
        &[],
        &expect![[r#"
            nothing of it can be used here:
              remote  https://example.org/mcp: not here, `** X: 1` is no name of a header"#]],
    );
    check(
        &remote(&json!({ "headers": [{ "name": "Host", "value": "evil" }] })),
        &[],
        &expect![[r#"
            nothing of it can be used here:
              remote  https://example.org/mcp: not here, it sets the header `Host`, which is not its to set"#]],
    );
}

#[test]
fn reg_201_a_required_secret_is_named_before_anything_starts() {
    let keys = json!({ "environmentVariables": [
        { "name": "API_KEY", "description": "From your\u{1b}[31m account", "isRequired": true, "isSecret": true },
        { "name": "REGION", "isRequired": true, "placeholder": "eu" },
        { "name": "BLANK", "isRequired": true },
    ]});
    check(
        &npm(&keys),
        &["BLANK="],
        &expect![[r#"
        - `API_KEY` is missing (From your account); say it with `--set API_KEY=VALUE`
        - `REGION` is missing; say it with `--set REGION=eu`
        - `BLANK` is missing; say it with `--set BLANK=VALUE`"#]],
    );
}

#[test]
fn a_program_is_given_more_than_its_record_asks_for() {
    let (_folder, programs) = programs(&["docker"]);
    let given = |name: &str| BTreeMap::from([(name.to_owned(), Secret::new("planted"))]);
    let made = |rest: &Value, name: &str| {
        let ways = ways(&record(rest));
        let recipe = ways[0].recipe.as_ref().unwrap();
        match recipe.fill(&Values::new(), &given(name), &programs) {
            Ok(plan) => plan.shown(),
            Err(error) => error.to_string(),
        }
    };
    expect!["docker run -i --rm -e SSL_CERT_FILE docker.io/example/db:3.1.0"]
        .assert_eq(&made(&oci(&json!({})), "SSL_CERT_FILE"));
    expect!["- `--evil` is no name of a variable"].assert_eq(&made(&oci(&json!({})), "--evil"));
    expect!["- `SSL_CERT_FILE` is a variable, and an address is given none"]
        .assert_eq(&made(&remote(&json!({})), "SSL_CERT_FILE"));
}

/// Says why none of these packages of npm is started.
fn refused(package: &Value, expected: &Expect) {
    check(&npm(package), &[], expected);
}

#[test]
fn nothing_takes_the_place_of_the_package() {
    refused(
        &json!({ "identifier": "--registry=https://evil.example" }),
        &expect![[r#"
            nothing of it can be used here:
              npm     --registry=https://evil.example 1.0.0: not here, `--registry=https://evil.example` is no name of a package of npm"#]],
    );
    refused(
        &json!({ "identifier": "../x" }),
        &expect![[r#"
        nothing of it can be used here:
          npm     ../x 1.0.0: not here, `../x` is no name of a package of npm"#]],
    );
    refused(
        &json!({ "identifier": "https://evil.example/x.tgz" }),
        &expect![[r#"
            nothing of it can be used here:
              npm     https://evil.example/x.tgz 1.0.0: not here, `https://evil.example/x.tgz` is no name of a package of npm"#]],
    );
    refused(
        &json!({ "identifier": "x\u{1b}[2J" }),
        &expect![[r#"
        nothing of it can be used here:
          npm     x 1.0.0: not here, `x` is no name of a package of npm"#]],
    );
    let before = |argument: Value| json!({ "runtimeArguments": [argument] });
    let named =
        |name: &str, value: &str| before(json!({ "type": "named", "name": name, "value": value }));
    refused(
        &named("--registry", "https://evil.example"),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it tells `--registry` to what starts it, which could change what is started"#]],
    );
    refused(
        &named("--quiet", "evil"),
        &expect![[r#"
        nothing of it can be used here:
          npm     @example/x 1.0.0: not here, it tells `--quiet` to what starts it, which could change what is started"#]],
    );
    refused(
        &named("-c", "sh"),
        &expect![[r#"
        nothing of it can be used here:
          npm     @example/x 1.0.0: not here, it tells `-c` to what starts it, which could change what is started"#]],
    );
    refused(
        &before(json!({ "type": "positional", "value": "evil" })),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it puts a word where the package is expected"#]],
    );
    refused(
        &before(json!({ "type": "positional", "valueHint": "x" })),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it puts a word where the package is expected"#]],
    );
    refused(
        &before(json!({ "type": "positional", "value": "--package=evil" })),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it tells `--package=evil` to what starts it, which could change what is started"#]],
    );
    refused(
        &before(json!({ "type": "named", "name": "-y" })),
        &expect![[r#"
            the only one that can be used here
            npx -y @example/x@1.0.0"#]],
    );
    let (_folder, programs) = programs(&["docker", "uvx"]);
    let made = |package: Value| made(&package, None, &[], &programs);
    for wall in ["--privileged", "--entrypoint", "--pid", "-d", "-x"] {
        let made = made(oci(&named(wall, "x")));
        assert!(made.contains("could change what is started"), "{made}");
    }
    // Each of these would take the next word for its value, and what follows for the image.
    for alone in ["-v", "--network", "-e", "-dit", "--detach"] {
        let made = made(oci(&before(json!({ "type": "named", "name": alone }))));
        assert!(made.contains("could change what is started"), "{made}");
    }
    for (name, value) in [
        ("--from", "evil"),
        ("-q", "evil"),
        ("--index-url", "https://evil.example"),
    ] {
        let mut package = npm(&named(name, value));
        package["packages"][0]["registryType"] = json!("pypi");
        package["packages"][0]["identifier"] = json!("x");
        let made = made(package);
        assert!(made.contains("could change what is started"), "{made}");
    }
    expect![[r#"
        the only one that can be used here
        docker run -i --rm --rm=evil docker.io/example/db:3.1.0"#]]
    .assert_eq(&made(oci(&named("--rm", "evil"))));
    expect![[r#"
        the only one that can be used here
        docker run -i --rm -v /a:/b docker.io/example/db:3.1.0"#]]
    .assert_eq(&made(oci(&named("-v", "/a:/b"))));
}

#[test]
fn what_is_hostile_is_refused() {
    refused(
        &json!({ "environmentVariables": [{ "name": "NPM_CONFIG_REGISTRY", "value": "https://evil.example" }] }),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it sets the variable `NPM_CONFIG_REGISTRY`, which changes what other programs do"#]],
    );
    refused(
        &json!({ "packageArguments": [{ "type": "positional", "value": "{undefined}" }] }),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, it has `{undefined}` in it, and doesn't say what that is"#]],
    );
    refused(
        &json!({ "packageArguments": [{ "type": "positional", "value": "{\"json\": {}}\u{0}" }] }),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, what it gives for `argument-1` has control characters"#]],
    );
    refused(
        &json!({ "packageArguments": [{ "type": "positional", "value": "{\"json\": {}}" }] }),
        &expect![[r#"
            the only one that can be used here
            npx -y @example/x@1.0.0 '{"json": {}}'"#]],
    );
    refused(
        &json!({ "packageArguments": [{ "type": "named", "name": "--a b" }] }),
        &expect![[r#"
            nothing of it can be used here:
              npm     @example/x 1.0.0: not here, `--a b` is no name of an argument"#]],
    );
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ws://x",
        "https://a:b@example.org/",
        "https://",
        "https://e\u{202e}x.org",
    ] {
        let (_folder, programs) = programs(&[]);
        let made = made(&remote(&json!({ "url": url })), None, &[], &programs);
        assert!(
            made.contains("nothing of it can be used here"),
            "{url}: {made}"
        );
    }
    check(
        &remote(&json!({ "url": "https://{host}/mcp" })),
        &[],
        &expect![[r#"
            nothing of it can be used here:
              remote  https://{host}/mcp: not here, it has `{host}` in it, and doesn't say what that is"#]],
    );
    refused(
        &json!({ "packageArguments": [{ "type": "positional", "valueHint": "folder" }] }),
        &expect![[r#"
            the only one that can be used here
            npx -y @example/x@1.0.0"#]],
    );
    check(
        &npm(&json!({ "packageArguments": [{ "type": "positional", "valueHint": "folder" }] })),
        &["folder=--evil"],
        &expect!["- `folder` begins with `-`, and would be taken for an option"],
    );
}

/// Texts that records may have where they should not.
fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        "-{1,2}[a-z]{1,8}(=[a-z/:]{0,8})?",
        "(-y|--quiet|-v|-e|--rm|--init|--network|--python|-p|x@1.0.0|1.0.0|latest)",
        r"\{[a-z]{0,3}\}[a-z-]{0,4}",
        "https?://[a-z{}@:/]{0,12}",
        any::<String>(),
    ]
}

fn argument() -> impl Strategy<Value = Value> {
    let texts = (odd(), odd(), option::of(odd()), option::of(odd()));
    (texts, any::<bool>(), any::<bool>()).prop_map(
        |((name, hint, value, default), named, required)| {
            json!({
                "type": if named { "named" } else { "positional" },
                "name": name,
                "valueHint": hint,
                "value": value,
                "default": default,
                "isRequired": required,
                "format": if hint.len() % 3 == 0 { "boolean" } else { "string" },
                "variables": { "a": { "default": "-x" }, "b": {} },
            })
        },
    )
}

proptest! {
    /// Whatever a record says, what is started is the package that it names.
    #[test]
    fn the_package_stands_where_it_is_expected(
        kind in prop_oneof![Just("npm"), Just("pypi"), Just("oci")],
        identifier in odd(),
        version in prop_oneof![Just("1.0.0".to_owned()), odd()],
        before in vec(argument(), 0..3),
        after in vec(argument(), 0..3),
    ) {
        let rest = json!({ "packages": [{
            "registryType": kind,
            "identifier": identifier,
            "version": version,
            "runtimeArguments": before,
            "packageArguments": after,
            "environmentVariables": [{ "name": "A", "default": "1" }],
        }]});
        let (_folder, programs) = programs(&["npx", "uvx", "docker"]);
        let ways = ways(&record(&rest));
        let Ok(recipe) = &ways[0].recipe else { return Ok(()) };
        let Ok(plan) = recipe.fill(&Values::new(), &BTreeMap::new(), &programs) else { return Ok(()) };
        // `run -i --rm -e A` for images.
        let mut words = plan.words().into_iter().skip(if kind == "oci" { 6 } else { 1 });
        let package = loop {
            match words.next().unwrap() {
                "-p" | "-e" | "-v" | "-u" | "-w" | "-h" | "-l" | "-m" | "-c" => drop(words.next()),
                word if word.starts_with('-') => {}
                word => break word,
            }
        };
        prop_assert!(package.contains(&identifier), "{package} in {}", plan.shown());
    }
}
