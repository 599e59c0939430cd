//! Signing in to external servers, against an authorization server that does wrong what such servers do wrong.

use crate::{
    authorization::{Habits, Site, fields},
    store::Database,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use clopen_mcp::{
    config,
    credentials::{
        Account, Begun, ClientOfPerson, Network, OAuthError, SignIns, Signed, SigningIn, State,
        Target, subject,
    },
    secret::Secret,
    store::Store,
};
use expect_test::{Expect, expect};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt::Write as _,
    path::Path,
    sync::Arc,
};

const REDIRECT: &str = "http://127.0.0.1:9151/api/mcp/oauth/callback";

/// A person with a server to sign in to.
struct Person {
    site: Site,
    database: Database,
    store: Store,
    sign_ins: SignIns,
}

impl Person {
    async fn new(habits: Habits) -> Self {
        Self::with(habits, config::SignIn::default(), Database::sqlite()).await
    }

    async fn with(habits: Habits, settings: config::SignIn, database: Database) -> Self {
        let site = Site::serve(habits).await;
        let store = database.open().await;
        let sign_ins = sign_ins(&store, &database, settings);
        Self {
            site,
            database,
            store,
            sign_ins,
        }
    }

    fn asked(&self) -> SigningIn {
        SigningIn {
            target: Target {
                server: "fake".to_owned(),
                url: self.site.mcp(),
                headers: BTreeMap::new(),
            },
            subject: String::new(),
            account: "default".to_owned(),
            redirect: REDIRECT.to_owned(),
            client: None,
            scopes: Vec::new(),
            anew: false,
        }
    }

    async fn begin(&self) -> Result<Begun, OAuthError> {
        self.sign_ins.begin(self.asked()).await
    }

    /// Signs in, as far as it goes.
    async fn try_sign_in(&self) -> Result<Signed, OAuthError> {
        let begun = self.begin().await?;
        self.sign_ins.finish(&self.site.agree(&begun.url)).await
    }

    async fn sign_in(&self) {
        let signed = self.try_sign_in().await;
        assert_eq!(signed.map_err(|it| chain(&it)).unwrap().server, "fake");
    }

    /// What the authorization server is asked with.
    async fn query(&self) -> BTreeMap<String, String> {
        let begun = self.begin().await.map_err(|it| chain(&it)).unwrap();
        fields(begun.url.split_once('?').unwrap().1.as_bytes())
    }

    async fn token(&self) -> Result<Option<String>, OAuthError> {
        token(&self.sign_ins, &self.site, "").await
    }

    async fn account(&self) -> Account {
        let mut accounts = self.sign_ins.accounts().await.unwrap();
        assert_eq!(accounts.len(), 1);
        accounts.remove(0)
    }
}

fn sign_ins(store: &Store, database: &Database, settings: config::SignIn) -> SignIns {
    sign_ins_in(store, database.folder.path(), settings)
}

/// The sign-ins of a bridge with this data folder, which reaches nothing but what is not encrypted.
pub(crate) fn sign_ins_in(store: &Store, data: &Path, settings: config::SignIn) -> SignIns {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let network = Network::new(tls, settings.allow_private, &BTreeMap::new());
    SignIns::new(store.clone(), data.to_owned(), settings, network)
}

/// The token that a call on behalf of a subject would carry.
async fn token(
    sign_ins: &SignIns,
    site: &Site,
    subject: &str,
) -> Result<Option<String>, OAuthError> {
    let bearer = sign_ins.bearer("fake", &site.mcp(), subject);
    sign_ins.ready(&bearer).await?;
    Ok(bearer.token().map(|it| it.expose().to_owned()))
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&[": ", &cause.to_string()].concat());
        source = cause.source();
    }
    text
}

/// Tries to sign in, and checks why it can't be done.
async fn fails(habits: Habits, expected: Expect) -> Person {
    let person = Person::new(habits).await;
    let error = person.try_sign_in().await.unwrap_err();
    expected.assert_eq(&chain(&error).replace(&person.site.origin, "http://SITE"));
    person
}

async fn works(habits: Habits) -> Person {
    let person = Person::new(habits).await;
    person.sign_in().await;
    person
}

#[tokio::test]
async fn somebody_signs_in_once_for_all() {
    let person = works(Habits::default()).await;
    let first = person.token().await.unwrap().unwrap();
    assert!(person.site.inner().access.contains_key(&first));
    assert_eq!(person.token().await.unwrap().unwrap(), first);
    let asked = person.site.last("/token");
    assert_eq!(asked["resource"], person.site.mcp());
    // Another process of the same person.
    let others = sign_ins(&person.store, &person.database, config::SignIn::default());
    let other = token(&others, &person.site, "").await.unwrap();
    assert_eq!(other.unwrap(), first);
    let account = person.account().await;
    assert!(account.is_signed_in && account.is_renewable && account.is_default);
    assert_eq!(account.issuer, person.site.origin);
}

#[tokio::test]
async fn oau_147_a_401_without_a_challenge_is_enough() {
    works(Habits {
        challenge: None,
        resource_paths: vec!["/.well-known/oauth-protected-resource"],
        resource: json!({ "resource": null }),
        ..Habits::default()
    })
    .await;
    let person = works(Habits {
        challenge: None,
        resource_paths: Vec::new(),
        ..Habits::default()
    })
    .await;
    let asked: Vec<String> = person
        .site
        .inner()
        .seen
        .iter()
        .map(|it| it.path.clone())
        .collect();
    assert_eq!(
        asked[..4],
        [
            "/mcp",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server",
        ]
    );
    // As of 2025-03-26: what is needed is at the usual places.
    let person = works(Habits {
        challenge: None,
        resource_paths: Vec::new(),
        metadata_paths: Vec::new(),
        ..Habits::default()
    })
    .await;
    assert_eq!(person.account().await.issuer, person.site.origin);
}

#[tokio::test]
async fn oau_148_metadata_at_the_path_come_first() {
    let person = works(Habits {
        challenge: None,
        ..Habits::default()
    })
    .await;
    assert_eq!(
        person.site.count("/.well-known/oauth-protected-resource"),
        0
    );
    assert_eq!(
        person
            .site
            .count("/.well-known/oauth-protected-resource/mcp"),
        1
    );
}

#[tokio::test]
async fn oau_149_an_issuer_has_a_path() {
    for place in [
        "/.well-known/oauth-authorization-server/auth/public",
        "/.well-known/openid-configuration/auth/public",
        "/auth/public/.well-known/openid-configuration",
    ] {
        works(Habits {
            issuer_path: "/auth/public",
            metadata_paths: vec![place],
            ..Habits::default()
        })
        .await;
    }
}

#[tokio::test]
async fn oau_151_one_place_that_fails_is_not_all() {
    let mut habits = Habits {
        metadata_paths: vec!["/.well-known/openid-configuration"],
        ..Habits::default()
    };
    habits
        .failing
        .insert("/.well-known/oauth-authorization-server", 502);
    works(habits.clone()).await;
    habits
        .failing
        .insert("/.well-known/openid-configuration", 503);
    fails(habits, expect!["could not find out where one signs in to `fake`: `http://SITE/.well-known/oauth-authorization-server` answers with status 502"]).await;
}

#[tokio::test]
async fn a_server_without_metadata_says_so() {
    let habits = Habits {
        resource_paths: Vec::new(),
        metadata_paths: Vec::new(),
        ..Habits::default()
    };
    let person = Person::new(habits).await;
    let mut asked = person.asked();
    // It is there without a token.
    asked.target.url = format!("{}/else", person.site.origin);
    let error = person.sign_ins.begin(asked).await.unwrap_err();
    expect!["`fake` doesn't say where to sign in: no metadata of it or of its host was found; if it takes a fixed token, give it with `--header 'Authorization: Bearer …'`"]
        .assert_eq(&chain(&error));
}

#[tokio::test]
async fn metadata_of_another_are_not_believed() {
    fails(
        Habits {
            metadata: json!({ "issuer": "https://other.example" }),
            ..Habits::default()
        },
        expect!["the authorization server at `http://SITE` says that it is `https://other.example`, so it may be another's; nothing was sent to it"],
    )
    .await;
    fails(
        Habits {
            resource: json!({ "resource": "https://other.example/mcp" }),
            ..Habits::default()
        },
        expect!["the metadata of `fake` is about `https://other.example/mcp`, which is another server; nothing was sent"],
    )
    .await;
}

#[tokio::test]
async fn oau_158_a_document_makes_us_known() {
    let settings = config::SignIn {
        public_url: Some("https://bridge.example".to_owned()),
        ..config::SignIn::default()
    };
    let habits = Habits {
        metadata: json!({ "client_id_metadata_document_supported": true, "registration_endpoint": null }),
        ..Habits::default()
    };
    let person = Person::with(habits.clone(), settings, Database::sqlite()).await;
    let document = "https://bridge.example/api/mcp/oauth/client.json";
    assert_eq!(person.query().await["client_id"], document);
    let published = person.sign_ins.document().unwrap();
    assert_eq!(published["client_id"], document);
    assert_eq!(
        published["redirect_uris"],
        json!(["https://bridge.example/api/mcp/oauth/callback"])
    );
    fails(habits, expect!["the authorization server `http://SITE` registers no clients by itself; register one there by hand with the redirect URI `http://127.0.0.1:9151/api/mcp/oauth/callback`, then sign in with `--client-id`, and `--client-secret` if it has one; or set `public_url` in `[sign_in]` to an https address of this bridge, whose client document it takes"]).await;
}

#[tokio::test]
async fn a_client_of_the_person_comes_first_and_is_remembered() {
    let person = Person::new(Habits {
        metadata: json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] }),
        ..Habits::default()
    })
    .await;
    let secret = Some("planted-secret".to_owned());
    person
        .site
        .inner()
        .clients
        .insert("mine".to_owned(), secret);
    let mut asked = person.asked();
    asked.client = Some(ClientOfPerson {
        id: "mine".to_owned(),
        secret: Some(Secret::new("planted-secret")),
    });
    let begun = person.sign_ins.begin(asked).await.unwrap();
    person
        .sign_ins
        .finish(&person.site.agree(&begun.url))
        .await
        .unwrap();
    assert_eq!(person.query().await["client_id"], "mine");
    assert_eq!(person.site.inner().registered, 0);
    person.sign_ins.refresh("fake", "", None).await.unwrap();
    let inner = person.site.inner();
    let last = inner.seen.iter().rfind(|it| it.path == "/token").unwrap();
    assert!(last.authorization.as_deref().unwrap().starts_with("Basic "));
    assert!(!last.body.contains("planted-secret"));
}

#[tokio::test]
async fn oau_159_a_refused_redirect_is_named() {
    fails(
        Habits {
            refuses_clients: Some("Redirect URI must use HTTPS".to_owned()),
            ..Habits::default()
        },
        expect!["the authorization server `http://SITE` refused to register this client with the redirect URI `http://127.0.0.1:9151/api/mcp/oauth/callback`: Redirect URI must use HTTPS; invalid_redirect_uri; if it wants https, set `public_url` in `[sign_in]`, or register a client by hand and sign in with `--client-id`"],
    )
    .await;
}

#[tokio::test]
async fn oau_160_a_registered_client_is_kept_until_it_is_unknown() {
    let person = works(Habits::default()).await;
    let body: Value = {
        let inner = person.site.inner();
        let asked = inner.seen.iter().find(|it| it.path == "/register").unwrap();
        serde_json::from_str(&asked.body).unwrap()
    };
    assert_eq!(body["application_type"], "native");
    let restarted = sign_ins(&person.store, &person.database, config::SignIn::default());
    restarted.begin(person.asked()).await.unwrap();
    assert_eq!(person.site.inner().registered, 1);
    person.site.forget_clients();
    let begun = person.begin().await.unwrap();
    let error = person
        .sign_ins
        .finish(&person.site.agree(&begun.url))
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::ClientGone { .. }), "{error}");
    assert_eq!(person.sign_ins.state(&begun).await.unwrap(), State::Again);
    person.sign_in().await;
    assert_eq!(person.site.inner().registered, 2);
}

#[tokio::test]
async fn oau_161_another_authorization_server_gets_another_client() {
    let person = works(Habits::default()).await;
    {
        let mut inner = person.site.inner();
        inner.habits.issuer_path = "/b";
        inner.habits.metadata_paths = vec!["/.well-known/oauth-authorization-server/b"];
    }
    person.sign_in().await;
    assert_eq!(person.site.inner().registered, 2);
    assert_eq!(person.account().await.issuer, person.site.issuer());
}

async fn refuses_token(answer: (u16, &'static str, &str), expected: Expect) {
    let (status, kind, body) = answer;
    let habits = Habits {
        token_answer: Some((status, kind, body.to_owned())),
        ..Habits::default()
    };
    let person = fails(habits, expected).await;
    assert_eq!(person.token().await.unwrap(), None);
    assert!(person.sign_ins.accounts().await.unwrap().is_empty());
}

const JSON: &str = "application/json";

#[tokio::test]
async fn oau_162_an_error_is_one_whatever_its_status() {
    let body =
        r#"{"error":"bad_verification_code","error_description":"The code is\u001b[31m `old`."}"#;
    refuses_token((200, JSON, body), expect!["the authorization server `http://SITE` gave no token: The code is [31m 'old'. (bad_verification_code)"]).await;
    let body = "error=bad_verification_code";
    refuses_token(
        (200, "application/x-www-form-urlencoded", body),
        expect!["the authorization server `http://SITE` gave no token: bad_verification_code"],
    )
    .await;
    refuses_token((200, JSON, r#"{"access_token":""}"#), expect!["the authorization server `http://SITE` gave no token: its answer holds no `access_token`"]).await;
    refuses_token((200, JSON, r#"{"access_token":"a\r\nb"}"#), expect!["the authorization server `http://SITE` gave no token: its token holds letters that no header may"]).await;
    refuses_token((200, JSON, r#"{"access_token":"a","token_type":"DPoP"}"#), expect!["the authorization server `http://SITE` gave no token: its token is a `DPoP` and not a bearer"]).await;
    refuses_token(
        (500, "text/html", "<html>"),
        expect![
            "the authorization server `http://SITE` gave no token: it answered with status 500"
        ],
    )
    .await;
    refuses_token(
        (302, "text/html", ""),
        expect![
            "the authorization server `http://SITE` gave no token: it answered with status 302"
        ],
    )
    .await;
}

async fn gives(answer: (u16, &'static str, &str)) -> Option<i64> {
    let (status, kind, body) = answer;
    let person = works(Habits {
        token_answer: Some((status, kind, body.to_owned())),
        ..Habits::default()
    })
    .await;
    let token = person.token().await.unwrap().unwrap();
    assert!(!token.is_empty());
    let expires_at = person.account().await.expires_at;
    expires_at.map(|it| (it - clopen_mcp::store::now()).div_euclid(1_000) + 1)
}

#[tokio::test]
async fn oau_164_any_status_of_success_counts() {
    assert_eq!(gives((201, JSON, r#"{"access_token":"a"}"#)).await, None);
    assert_eq!(
        gives((203, JSON, r#"{"access_token":"a","token_type":"bearer"}"#)).await,
        None
    );
    let form = "access_token=a&scope=b&token_type=bearer";
    assert_eq!(
        gives((200, "application/x-www-form-urlencoded", form)).await,
        None
    );
}

#[tokio::test]
async fn oau_165_a_time_may_be_a_text() {
    let near = |it: Option<i64>, wanted: i64| {
        let it = it.unwrap();
        assert!((wanted - 5..=wanted).contains(&it), "{it}");
    };
    near(
        gives((200, JSON, r#"{"access_token":"a","expires_in":"5250"}"#)).await,
        5250,
    );
    near(
        gives((200, JSON, r#"{"access_token":"a","expires_in":3600.5}"#)).await,
        3600,
    );
    refuses_token(
        (200, JSON, r#"{"access_token":"a","expires_in":"3600abc"}"#),
        expect![
            "the authorization server `http://SITE` gave no token: its `expires_in` is no number"
        ],
    )
    .await;
}

#[tokio::test]
async fn oau_167_a_jwt_says_when_it_ends() {
    let claims = BASE64_URL_SAFE_NO_PAD.encode(r#"{"exp":4102444800}"#);
    let body = format!(r#"{{"access_token":"e30.{claims}.x"}}"#);
    let person = works(Habits {
        token_answer: Some((200, JSON, body)),
        ..Habits::default()
    })
    .await;
    assert_eq!(person.account().await.expires_at, Some(4_102_444_800_000));
    let person = works(Habits {
        token: json!({ "expires_in": null }),
        ..Habits::default()
    })
    .await;
    let first = person.token().await.unwrap().unwrap();
    person.site.expire();
    let bearer = person.sign_ins.bearer("fake", &person.site.mcp(), "");
    assert!(
        person
            .sign_ins
            .renewed(&bearer, bearer.version())
            .await
            .unwrap()
    );
    assert_ne!(bearer.token().unwrap().expose(), first);
}

/// One whose token has ended as soon as it was given.
async fn with_ended_token() -> Person {
    let person = works(Habits {
        token: json!({ "expires_in": 0 }),
        ..Habits::default()
    })
    .await;
    person.site.inner().habits.token = json!({});
    person
}

#[tokio::test]
async fn oau_169_a_token_that_is_not_renewed_stays() {
    let person = with_ended_token().await;
    person.site.inner().habits.token = json!({ "refresh_token": null });
    person.token().await.unwrap().unwrap();
    let first = person.site.last("/token")["refresh_token"].clone();
    person.sign_ins.refresh("fake", "", None).await.unwrap();
    assert_eq!(person.site.last("/token")["refresh_token"], first);
    assert_eq!(person.site.inner().refreshed, 2);
}

async fn one_refresh_for_all(database: Database) {
    let habits = Habits {
        token: json!({ "expires_in": 0 }),
        ..Habits::default()
    };
    let person = Person::with(habits, config::SignIn::default(), database).await;
    person.sign_in().await;
    person.site.inner().habits.token = json!({});
    // Three processes, one of them on a connection of its own to the same database.
    let other = person.database.open().await;
    let all = [
        person.sign_ins.clone(),
        sign_ins(&person.store, &person.database, config::SignIn::default()),
        sign_ins(&other, &person.database, config::SignIn::default()),
    ];
    let calls = (0..64).map(|it| {
        let (all, site) = (all[it % all.len()].clone(), person.site.clone());
        tokio::spawn(async move { token(&all, &site, "").await })
    });
    let mut tokens = BTreeSet::new();
    for call in calls.collect::<Vec<_>>() {
        tokens.insert(call.await.unwrap().unwrap().unwrap());
    }
    assert_eq!(tokens.len(), 1);
    let inner = person.site.inner();
    assert_eq!((inner.refreshed, inner.reused), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oau_170_one_refreshes_for_all() {
    one_refresh_for_all(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn oau_170_one_refreshes_for_all_on_postgres() {
    one_refresh_for_all(Database::postgres().await).await;
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits() {
    let person = with_ended_token().await;
    {
        let mut call = std::pin::pin!(person.token());
        // Until it waits for the authorization server.
        while person.site.inner().refreshed == 0 {
            tokio::select! {
                biased;
                _ = &mut call => break,
                () = tokio::task::yield_now() => {}
            }
        }
    }
    person.token().await.unwrap().unwrap();
    assert_eq!(person.site.inner().reused, 0);
}

#[tokio::test]
async fn oau_172_only_invalid_grant_ends_a_sign_in() {
    let person = with_ended_token().await;
    person.site.inner().habits.failing.insert("/token", 503);
    let error = person.token().await.unwrap_err();
    expect!["the token for `fake` has expired and can't be renewed for now: it answered with status 503; it is tried again in 1 s"]
        .assert_eq(&chain(&error));
    // It is not asked again at once.
    let asked = person.site.count("/token");
    person.token().await.unwrap_err();
    assert_eq!(person.site.count("/token"), asked);
    assert!(person.account().await.is_signed_in);
    person.site.inner().habits.failing.clear();
    person
        .database
        .execute("UPDATE oauth_credentials SET retry_at = 0")
        .await;
    person.token().await.unwrap().unwrap();

    let person = with_ended_token().await;
    let refusal = r#"{"error":"invalid_grant"}"#.to_owned();
    person.site.inner().habits.token_answer = Some((400, JSON, refusal));
    assert_eq!(person.token().await.unwrap(), None);
    assert!(!person.account().await.is_signed_in);
    let error = person.sign_ins.refresh("fake", "", None).await.unwrap_err();
    expect!["nobody has signed in to `fake`; do so with `clopen-mcp auth login fake`"]
        .assert_eq(&chain(&error));
}

#[tokio::test]
async fn a_token_that_is_refused_again_is_not_renewed_again() {
    let person = works(Habits::default()).await;
    person.token().await.unwrap().unwrap();
    let bearer = person.sign_ins.bearer("fake", &person.site.mcp(), "");
    assert!(
        person
            .sign_ins
            .renewed(&bearer, bearer.version())
            .await
            .unwrap()
    );
    assert!(
        !person
            .sign_ins
            .renewed(&bearer, bearer.version())
            .await
            .unwrap()
    );
    assert_eq!(person.site.inner().refreshed, 1);
}

#[tokio::test]
async fn oau_174_a_step_up_asks_for_all_scopes() {
    let person = works(Habits {
        resource: json!({ "scopes_supported": ["files:read", "offline_access"] }),
        ..Habits::default()
    })
    .await;
    let bearer = person.sign_ins.bearer("fake", &person.site.mcp(), "");
    let challenge = r#"Bearer error="insufficient_scope", scope="files:write files:read""#;
    let wanted = person.sign_ins.want(&bearer, challenge).await.unwrap();
    assert_eq!(wanted, ["files:write", "files:read"]);
    assert_eq!(
        person.query().await["scope"],
        "files:read offline_access files:write"
    );
    let nothing = person
        .sign_ins
        .want(&bearer, r#"Bearer error="invalid_token""#)
        .await;
    assert!(nothing.unwrap().is_empty());
}

#[tokio::test]
async fn oau_176_what_the_challenge_asks_for_is_asked_for() {
    let person = Person::new(Habits {
        challenge: Some(r#"Bearer scope="a b""#.to_owned()),
        resource: json!({ "scopes_supported": ["c"] }),
        ..Habits::default()
    })
    .await;
    assert_eq!(person.query().await["scope"], "a b");
    let registered: Value = {
        let inner = person.site.inner();
        let asked = inner.seen.iter().find(|it| it.path == "/register").unwrap();
        serde_json::from_str(&asked.body).unwrap()
    };
    assert_eq!(registered["scope"], "a b");
    let mut asked = person.asked();
    asked.scopes = vec!["d".to_owned()];
    let begun = person.sign_ins.begin(asked).await.unwrap();
    assert_eq!(
        fields(begun.url.split_once('?').unwrap().1.as_bytes())["scope"],
        "d"
    );
}

#[tokio::test]
async fn a_long_visit_is_asked_for_only_where_it_is_offered() {
    let offered = json!({ "scopes_supported": ["a", "offline_access"] });
    let person = Person::new(Habits {
        challenge: Some(r#"Bearer scope="a""#.to_owned()),
        metadata: offered,
        ..Habits::default()
    })
    .await;
    let query = person.query().await;
    assert_eq!(
        (&*query["scope"], &*query["prompt"]),
        ("a offline_access", "consent")
    );
}

#[tokio::test]
async fn oau_179_configured_headers_go_along_and_a_token_stays() {
    let person = Person::new(Habits {
        wanted_header: Some(("x-bot-token", "t")),
        ..Habits::default()
    })
    .await;
    let mut asked = person.asked();
    asked
        .target
        .headers
        .insert("X-Bot-Token".to_owned(), Secret::new("t"));
    person.sign_ins.begin(asked.clone()).await.unwrap();
    asked
        .target
        .headers
        .insert("AUTHORIZATION".to_owned(), Secret::new("x"));
    let error = person.sign_ins.begin(asked).await.unwrap_err();
    assert!(matches!(error, OAuthError::HasHeader { .. }), "{error}");
}

#[tokio::test]
async fn oau_181_nobody_gets_the_token_of_another() {
    let person = works(Habits::default()).await;
    assert!(person.token().await.unwrap().is_some());
    assert_eq!(
        token(&person.sign_ins, &person.site, "ci").await.unwrap(),
        None
    );
    let mut asked = person.asked();
    asked.subject = "ci".to_owned();
    let begun = person.sign_ins.begin(asked).await.unwrap();
    let signed = person
        .sign_ins
        .finish(&person.site.agree(&begun.url))
        .await
        .unwrap();
    assert_eq!(signed.subject, "ci");
    let of_ci = token(&person.sign_ins, &person.site, "ci").await.unwrap();
    let own = person.token().await.unwrap();
    assert!(of_ci.is_some() && of_ci != own);
    for own in ["", "service", "anonymous", "connect-gemini"] {
        assert_eq!(subject(own), "");
    }
    assert_eq!(subject("ci"), "ci");

    // What is sealed for one opens for no other.
    person
        .database
        .execute(
            "UPDATE oauth_credentials SET subject = 'x' WHERE subject = '';
             UPDATE oauth_credentials SET subject = '' WHERE subject = 'ci'",
        )
        .await;
    let others = sign_ins(&person.store, &person.database, config::SignIn::default());
    let error = token(&others, &person.site, "").await.unwrap_err();
    assert!(matches!(error, OAuthError::Vault(_)), "{error}");
}

#[tokio::test]
async fn a_token_goes_to_the_server_that_it_is_for() {
    let person = works(Habits::default()).await;
    let elsewhere = person
        .sign_ins
        .bearer("fake", "https://other.example/mcp", "");
    person.sign_ins.ready(&elsewhere).await.unwrap();
    assert!(elsewhere.token().is_none());
}

#[tokio::test]
async fn accounts_are_kept_apart_and_the_last_is_used() {
    let person = works(Habits::default()).await;
    let first = person.token().await.unwrap();
    let mut asked = person.asked();
    asked.account = "work".to_owned();
    let begun = person.sign_ins.begin(asked).await.unwrap();
    person
        .sign_ins
        .finish(&person.site.agree(&begun.url))
        .await
        .unwrap();
    let again = sign_ins(&person.store, &person.database, config::SignIn::default());
    let second = token(&again, &person.site, "").await.unwrap();
    assert!(second.is_some() && second != first);
    assert_eq!(again.sign_out("fake", "", None).await.unwrap(), None);
    assert_eq!(person.site.inner().revoked.len(), 2);
    let again = sign_ins(&person.store, &person.database, config::SignIn::default());
    assert_eq!(token(&again, &person.site, "").await.unwrap(), first);
    again.sign_out("fake", "", None).await.unwrap();
    let error = again.sign_out("fake", "", None).await.unwrap_err();
    assert!(matches!(error, OAuthError::NotSignedIn { .. }), "{error}");
}

#[tokio::test]
async fn oau_183_no_secret_is_shown() {
    let person = works(Habits::default()).await;
    let bearer = person.sign_ins.bearer("fake", &person.site.mcp(), "");
    person.sign_ins.ready(&bearer).await.unwrap();
    let begun = person.begin().await.unwrap();
    let accounts = person.sign_ins.accounts().await.unwrap();
    let credentials = person.store.credentials().await.unwrap();
    let mut texts = format!(
        "{:?} {bearer:?} {begun:?} {accounts:?} {credentials:?}",
        person.sign_ins
    );
    // It says what it was told.
    let told = person.site.secrets();
    let refusal = json!({ "error": "invalid_request", "error_description": told.join(" ") });
    person.site.inner().habits.token_answer = Some((400, JSON, refusal.to_string()));
    let error = person.sign_ins.refresh("fake", "", None).await.unwrap_err();
    writeln!(texts, "{error} {error:?}").unwrap();
    let refresh = person.site.last("/token")["refresh_token"].clone();
    assert!(
        texts.contains("***") && !texts.contains(&refresh),
        "{texts}"
    );
    let begun = person.begin().await.unwrap();
    let place = person.site.agree(&begun.url);
    let code = fields(place.split_once('?').unwrap().1.as_bytes())["code"].clone();
    let refusal = json!({ "error": format!("no {code}") });
    person.site.inner().habits.token_answer = Some((400, JSON, refusal.to_string()));
    let error = person.sign_ins.finish(&place).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("***") && !shown.contains(&code), "{shown}");
    let verifier = person.site.last("/token")["code_verifier"].clone();
    let file = std::fs::read(person.database.folder.path().join("clopen-mcp.sqlite")).unwrap();
    let mut bytes = file;
    bytes.extend(
        std::fs::read(person.database.folder.path().join("clopen-mcp.sqlite-wal"))
            .unwrap_or_default(),
    );
    for secret in told
        .iter()
        .filter(|it| !it.contains("client"))
        .chain([&verifier])
    {
        let is_there = bytes
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!is_there, "{secret} is in the database");
    }
}

#[tokio::test]
async fn oau_186_without_pkce_nothing_is_sent() {
    let person = fails(
        Habits {
            metadata: json!({ "code_challenge_methods_supported": ["plain"] }),
            ..Habits::default()
        },
        expect!["the authorization server `http://SITE` doesn't offer PKCE with S256 (it offers only plain), which is required; ask who runs it to switch it on"],
    )
    .await;
    assert_eq!(person.site.count("/register"), 0);
    fails(
        Habits {
            metadata: json!({ "code_challenge_methods_supported": null }),
            ..Habits::default()
        },
        expect!["the authorization server `http://SITE` doesn't offer PKCE with S256 (its metadata name no `code_challenge_methods_supported`), which is required; ask who runs it to switch it on"],
    )
    .await;
}

#[tokio::test]
async fn who_answers_is_who_was_asked() {
    let says = |iss: Option<&str>, is_advertised: bool| Habits {
        iss: iss.map(str::to_owned),
        metadata: json!({ "authorization_response_iss_parameter_supported": is_advertised }),
        ..Habits::default()
    };
    works(says(None, false)).await;
    works(says(Some("{issuer}"), false)).await;
    works(says(Some("{issuer}"), true)).await;
    let person = fails(says(None, true), expect!["the answer comes from an authorization server that doesn't say its name and not from `http://SITE`, where it was asked for; nothing was sent"]).await;
    assert_eq!(person.site.count("/token"), 0);
    fails(says(Some("{issuer}/"), false), expect!["the answer comes from `http://SITE/` and not from `http://SITE`, where it was asked for; nothing was sent"]).await;
    // A refusal of another is none.
    let person = Person::new(says(None, true)).await;
    let state = person.query().await["state"].clone();
    let error = person
        .sign_ins
        .finish(&format!("error=access_denied&state={state}"))
        .await;
    assert!(matches!(error.unwrap_err(), OAuthError::Mixed { .. }));
}

#[tokio::test]
async fn a_state_is_good_once_and_for_a_while() {
    let person = Person::new(Habits::default()).await;
    let begun = person.begin().await.unwrap();
    let place = person.site.agree(&begun.url);
    assert_eq!(person.sign_ins.state(&begun).await.unwrap(), State::Waiting);
    person.sign_ins.finish(&place).await.unwrap();
    assert_eq!(person.sign_ins.state(&begun).await.unwrap(), State::Done);
    let error = person.sign_ins.finish(&place).await.unwrap_err();
    assert!(matches!(error, OAuthError::State), "{error}");
    assert_eq!(person.site.count("/token"), 1);

    let begun = person.begin().await.unwrap();
    let place = person.site.agree(&begun.url);
    person
        .database
        .execute("UPDATE oauth_flows SET expires_at = 1")
        .await;
    let error = person.sign_ins.finish(&place).await.unwrap_err();
    assert!(matches!(error, OAuthError::State), "{error}");

    for wrong in ["", "code=a", "state=&code=a", "http://127.0.0.1/callback"] {
        let error = person.sign_ins.finish(wrong).await.unwrap_err();
        assert!(matches!(error, OAuthError::Callback { .. }), "{error}");
    }
    let state = person.query().await["state"].clone();
    let refusal = format!("{REDIRECT}?error=access_denied&error_description=no&state={state}");
    let error = person.sign_ins.finish(&refusal).await.unwrap_err();
    expect!["the sign-in was refused: no; access_denied"].assert_eq(&chain(&error));
}

#[tokio::test]
async fn what_a_token_is_for_can_be_left_out() {
    let settings = config::SignIn {
        without_resource: BTreeSet::from(["fake".to_owned()]),
        ..config::SignIn::default()
    };
    let person = Person::with(Habits::default(), settings, Database::sqlite()).await;
    assert!(!person.query().await.contains_key("resource"));
    person.sign_in().await;
    assert!(!person.site.last("/token").contains_key("resource"));
}

#[tokio::test]
async fn strangers_do_not_send_us_to_private_places() {
    let place = "/.well-known/oauth-protected-resource/mcp";
    let moved = |to: &str| Habits {
        moved: BTreeMap::from([(place, to.to_owned())]),
        metadata_paths: Vec::new(),
        ..Habits::default()
    };
    fails(moved("http://169.254.169.254/latest"), expect!["could not find out where one signs in to `fake`: `http://169.254.169.254/latest` is not asked: it must be https"]).await;
    fails(moved("https://10.0.0.1/x?key=1"), expect!["could not find out where one signs in to `fake`: `https://10.0.0.1/x` is not asked: it is at no public address; if that is right, set `allow_private = true` in `[sign_in]` of the settings"]).await;
    fails(moved("{site}/.well-known/oauth-protected-resource/mcp"), expect!["could not find out where one signs in to `fake`: `http://SITE/.well-known/oauth-protected-resource/mcp` is not asked: there are too many redirects"]).await;
    fails(
        Habits {
            metadata: json!({ "authorization_endpoint": "file:///etc/passwd" }),
            ..Habits::default()
        },
        expect![
            "could not sign in with `http://SITE`: `null/etc/passwd` is not asked: it must be https"
        ],
    )
    .await;
    fails(
        Habits {
            metadata: json!({ "token_endpoint": "https://192.168.0.1/token" }),
            ..Habits::default()
        },
        expect!["the authorization server `http://SITE` gave no token: 'https://192.168.0.1/token' is not asked: it is at no public address; if that is right, set 'allow_private = true' in '[sign_in]' of the settings"],
    )
    .await;
    // One that moves once on the same host is found.
    let mut habits = moved("{site}/elsewhere");
    habits.resource_paths = vec!["/elsewhere"];
    habits.metadata_paths = Habits::default().metadata_paths;
    works(habits).await;
}

#[tokio::test]
async fn metadata_are_small() {
    fails(
        Habits {
            resource: json!({ "x": "y".repeat(1024 * 1024) }),
            metadata_paths: Vec::new(),
            ..Habits::default()
        },
        expect!["could not find out where one signs in to `fake`: `http://SITE/.well-known/oauth-protected-resource/mcp` answers with more than 1048576 bytes"],
    )
    .await;
}
