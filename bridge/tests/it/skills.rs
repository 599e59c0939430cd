//! Skills in a folder, good and bad, while they are served and change.

use clopen_mcp::skills::{Body, Contents, PAGE_SIZE, SkillError, Skills, SkillsError};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    fs,
    num::NonZeroUsize,
    ops::Deref,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

/// A folder of skills that can be changed.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("the temporary folder can be written"))
    }

    /// A folder with one skill, `notes`.
    fn with_notes() -> Self {
        Self::new().with("notes/SKILL.md", skill("notes", "Keeps notes"))
    }

    fn with(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write(path, bytes);
        self
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn serve(self) -> Served {
        Served {
            skills: self.open(),
            _folder: self,
        }
    }

    fn open(&self) -> Skills {
        self.open_with(PAGE_SIZE.get())
    }

    fn open_with(&self, page_size: usize) -> Skills {
        let page_size = NonZeroUsize::new(page_size).expect("a page has something on it");
        Skills::open(self.0.path(), page_size).expect("the folder can be read")
    }
}

/// The skills of a folder that isn't changed any more.
struct Served {
    skills: Skills,
    _folder: Folder,
}

impl Deref for Served {
    type Target = Skills;

    fn deref(&self) -> &Skills {
        &self.skills
    }
}

fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\nBe brief.\n")
}

fn listed(skills: &Skills) -> Vec<String> {
    uris(&skills.list(None).unwrap()["skills"])
}

fn uris(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item["uri"].as_str().unwrap().to_owned())
        .collect()
}

fn entry(skills: &Skills, uri: &str) -> Value {
    skills.get(uri).unwrap()["skill"].take()
}

fn read(skills: &Skills, uri: &str) -> Contents {
    skills.read(uri).expect("there is such a file").unwrap()
}

/// What a client does with a file: read it and compare it with the skill's entry.
#[track_caller]
fn verify(skills: &Skills, skill: &str, uri: &str) {
    use sha2::{Digest as _, Sha256};

    let contents = read(skills, uri);
    let Body::Text(text) = &contents.body else {
        panic!("{uri} is no text");
    };
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(text) {
        write!(digest, "{byte:02x}").unwrap();
    }
    let entry = entry(skills, skill);
    let resources = entry["resources"].as_array().unwrap();
    let resource = resources.iter().find(|it| it["uri"] == uri).unwrap();
    assert_eq!(resource["digest"], digest, "{uri}");
    assert_eq!(resource["size"], text.len(), "{uri}");
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// The only skill of a folder is left out, and the note says why.
#[track_caller]
fn left_out(name: &str, text: impl AsRef<[u8]>, expected: &Expect) {
    let skills = Folder::new()
        .with(&format!("{name}/SKILL.md"), text)
        .with("good/SKILL.md", skill("good", "Is there anyway"))
        .serve();
    assert_eq!(listed(&skills), ["skill://good/SKILL.md"]);
    expected.assert_eq(&skills.notes().join("\n"));
}

/// What the fields become, after the two that must be there.
#[track_caller]
fn fields(yaml: &str, expected: &Expect) {
    let text = format!("---\nname: notes\ndescription: Keeps notes\n{yaml}\n---\n");
    let skills = Folder::new().with("notes/SKILL.md", text).serve();
    let notes = skills.notes();
    if !notes.is_empty() {
        return expected.assert_eq(&notes.join("\n"));
    }
    let mut frontmatter = entry(&skills, "skill://notes/SKILL.md")["frontmatter"].take();
    let fields = frontmatter.as_object_mut().unwrap();
    assert_eq!(fields.shift_remove("name"), Some(json!("notes")));
    assert_eq!(
        fields.shift_remove("description"),
        Some(json!("Keeps notes"))
    );
    expected.assert_eq(&frontmatter.to_string());
}

#[test]
fn a_skill_is_listed_with_its_frontmatter_and_files() {
    let skills = Folder::with_notes()
        .with("notes/templates/day.md", "# Today\n")
        .serve();
    let list = skills.list(None).unwrap();
    expect![[r#"
        {
          "skills": [
            {
              "uri": "skill://notes/SKILL.md",
              "frontmatter": {
                "name": "notes",
                "description": "Keeps notes"
              },
              "resources": [
                {
                  "uri": "skill://notes/SKILL.md",
                  "digest": "sha256:8203ba1fffb0b7ed479431144c246be35056a7b3ed5eabbaa9c86e179072a849",
                  "size": 56
                },
                {
                  "uri": "skill://notes/templates/day.md",
                  "digest": "sha256:0438e1f6a52d130aff81d4002078707dc706c86de3753ceb933e2ae59f0d758c",
                  "size": 8
                }
              ]
            }
          ]
        }"#]].assert_eq(&pretty(&list));
    assert_eq!(
        skills.get("skill://notes/SKILL.md").unwrap(),
        json!({"skill": list["skills"][0]})
    );
    expect![[r#"
        [
          {
            "uri": "skill://notes/SKILL.md",
            "name": "notes",
            "mimeType": "text/markdown",
            "size": 56,
            "description": "Keeps notes"
          }
        ]"#]]
    .assert_eq(&pretty(&skills.resources().unwrap().into()));
    assert!(skills.notes().is_empty());
}

#[test]
fn every_listed_file_can_be_read_and_is_what_was_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/conformance/skills");
    let skills = Skills::open(&folder, PAGE_SIZE).unwrap();
    assert!(skills.notes().is_empty(), "{:?}", skills.notes());
    let list = skills.list(None).unwrap();
    assert_eq!(list["skills"].as_array().unwrap().len(), 3);
    for skill in list["skills"].as_array().unwrap() {
        for uri in uris(&skill["resources"]) {
            verify(&skills, skill["uri"].as_str().unwrap(), &uri);
        }
    }
}

#[test]
fn pages_have_each_skill_once_even_when_skills_come_and_go() {
    let folder = Folder::new();
    for name in ["a", "b", "c", "d", "e"] {
        folder.write(&format!("{name}/SKILL.md"), skill(name, "Is a letter"));
    }
    let skills = folder.open_with(2);
    let first = skills.list(None).unwrap();
    assert_eq!(
        uris(&first["skills"]),
        ["skill://a/SKILL.md", "skill://b/SKILL.md"]
    );
    fs::remove_dir_all(folder.path("b")).unwrap();
    folder.write("aa/SKILL.md", skill("aa", "Comes late"));
    let second = skills.list(first["nextCursor"].as_str()).unwrap();
    assert_eq!(
        uris(&second["skills"]),
        ["skill://c/SKILL.md", "skill://d/SKILL.md"]
    );
    let last = skills.list(second["nextCursor"].as_str()).unwrap();
    assert_eq!(uris(&last["skills"]), ["skill://e/SKILL.md"]);
    assert_eq!(last.get("nextCursor"), None);
}

#[test]
fn a_page_that_is_just_full_is_the_last() {
    let folder = Folder::with_notes();
    let list = folder.open_with(1).list(None).unwrap();
    assert_eq!(list.get("nextCursor"), None);
}

#[test]
fn cursors_of_others_are_refused() {
    let folder = Folder::with_notes()
        .with("notes/a.md", "")
        .with("tasks/SKILL.md", skill("tasks", "Keeps tasks"));
    let skills = folder.open_with(1);
    let list = skills.list(None).unwrap();
    let of_list = list["nextCursor"].as_str().unwrap();
    for cursor in ["", "1", "bm9wZQ", "not base64!"] {
        let error = skills.list(Some(cursor)).unwrap_err();
        assert!(matches!(error, SkillError::Cursor), "{cursor}: {error}");
        assert_eq!(error.code(), -32602);
    }
    let error = skills
        .directory("skill://notes", Some(of_list))
        .unwrap_err();
    assert!(matches!(error, SkillError::Cursor), "{error}");
}

#[test]
fn what_is_no_skill_is_not_found() {
    let skills = Folder::with_notes()
        .with("notes/templates/day.md", "# Today\n")
        .serve();
    for uri in [
        "skill://nothing/SKILL.md",
        "skill://notes",
        "skill://notes/templates/day.md",
        "skill://notes/SKILL.md/",
        "skill://notes/SKILL.md?x",
        "skill://notes/SKILL.md#x",
        "file:///notes/SKILL.md",
        "skill://",
        "",
    ] {
        let error = skills.get(uri).unwrap_err();
        assert_eq!(error.code(), -32602, "{uri}");
        assert_eq!(error.uri(), Some(uri));
        assert_eq!(error.to_string(), format!("no skill is served at `{uri}`"));
    }
}

#[test]
fn files_are_text_or_base64() {
    let skills = Folder::with_notes()
        .with("notes/logo.png", [0x89, b'P', b'N', b'G'])
        .with("notes/run.py", "print('hello')\n")
        .with("notes/LICENSE", "MIT\n")
        .with("notes/data", [0xff, 0x00])
        .serve();
    let contents = read(&skills, "skill://notes/SKILL.md");
    assert_eq!(contents.mime_type, "text/markdown");
    assert_eq!(contents.body, Body::Text(skill("notes", "Keeps notes")));
    for (name, value) in [
        (
            "logo.png",
            json!({"mimeType": "image/png", "blob": "iVBORw=="}),
        ),
        (
            "run.py",
            json!({"mimeType": "text/x-python", "text": "print('hello')\n"}),
        ),
        (
            "LICENSE",
            json!({"mimeType": "text/plain", "text": "MIT\n"}),
        ),
        (
            "data",
            json!({"mimeType": "application/octet-stream", "blob": "/wA="}),
        ),
    ] {
        let uri = format!("skill://notes/{name}");
        let mut expected = json!({"uri": uri});
        expected
            .as_object_mut()
            .unwrap()
            .extend(value.as_object().unwrap().clone());
        assert_eq!(read(&skills, &uri).into_value(), expected);
    }
}

#[test]
fn files_that_no_skill_has_are_not_read() {
    let folder = Folder::with_notes()
        .with("notes/templates/day.md", "# Today\n")
        .with("notes/.env", "KEY=1")
        .with("secret.txt", "out of reach")
        .with("other/secret.txt", "out of reach");
    let skills = folder.open();
    for uri in [
        "skill://secret.txt",
        "skill://other/secret.txt",
        "skill://notes/.env",
        "skill://notes/../secret.txt",
        "skill://notes/%2e%2e/secret.txt",
        "skill://notes/%2E%2E%2Fsecret.txt",
        "skill://notes/..%5Csecret.txt",
        "skill://notes//templates/day.md",
        "skill://notes/templates/",
        "skill://notes/templates",
        "skill://notes",
        "skill:///etc/passwd",
        "skill://%2Fetc%2Fpasswd",
        "skill://notes/%FF",
        "skill://notes/SKILL.md%00",
        "file:///etc/passwd",
        "notes/SKILL.md",
    ] {
        assert!(skills.read(uri).is_none(), "{uri}");
    }
}

#[test]
fn odd_names_are_escaped_and_found_by_any_spelling() {
    let skills = Folder::new()
        .with("Büro & Co/notes/SKILL.md", skill("notes", "Keeps notes"))
        .with("Büro & Co/notes/100% (draft)?.md", "Soon.\n")
        .serve();
    assert_eq!(
        uris(&entry(&skills, "skill://B%C3%BCro%20%26%20Co/notes/SKILL.md")["resources"]),
        [
            "skill://B%C3%BCro%20%26%20Co/notes/100%25%20%28draft%29%3F.md",
            "skill://B%C3%BCro%20%26%20Co/notes/SKILL.md",
        ]
    );
    for uri in [
        "skill://B%C3%BCro%20%26%20Co/notes/100%25%20%28draft%29%3F.md",
        "skill://B%c3%bcro%20&%20Co/notes/100%25%20(draft)%3f.md",
        "skill://Büro & Co/%6Eotes/100%25 (draft)%3F.md",
    ] {
        assert_eq!(
            read(&skills, uri).uri,
            "skill://B%C3%BCro%20%26%20Co/notes/100%25%20%28draft%29%3F.md"
        );
    }
}

#[test]
fn directories_list_what_lies_directly_in_them() {
    let folder = Folder::new()
        .with("team/notes/SKILL.md", skill("notes", "Keeps notes"))
        .with("team/notes/templates/day.md", "# Today\n")
        .with("team/notes/templates/long/year.md", "# This year\n")
        .with("team/readme.md", "Not part of a skill.\n")
        .with("team/empty/readme.md", "Not part of a skill.\n");
    fs::create_dir(folder.path("team/notes/assets")).unwrap();
    let skills = folder.open();
    let directory = |uri| skills.directory(uri, None).unwrap();
    expect![[r#"
        {
          "resources": [
            {
              "uri": "skill://team/notes",
              "name": "notes",
              "mimeType": "inode/directory"
            }
          ]
        }"#]]
    .assert_eq(&pretty(&directory("skill://team")));
    expect![[r#"
        {
          "resources": [
            {
              "uri": "skill://team/notes/SKILL.md",
              "name": "notes",
              "mimeType": "text/markdown",
              "size": 56,
              "description": "Keeps notes"
            },
            {
              "uri": "skill://team/notes/assets",
              "name": "assets",
              "mimeType": "inode/directory"
            },
            {
              "uri": "skill://team/notes/templates",
              "name": "templates",
              "mimeType": "inode/directory"
            }
          ]
        }"#]]
    .assert_eq(&pretty(&directory("skill://team/notes")));
    expect![[r#"
        {
          "resources": [
            {
              "uri": "skill://team/notes/templates/day.md",
              "name": "day.md",
              "mimeType": "text/markdown",
              "size": 8
            },
            {
              "uri": "skill://team/notes/templates/long",
              "name": "long",
              "mimeType": "inode/directory"
            }
          ]
        }"#]]
    .assert_eq(&pretty(&directory("skill://team/notes/templates")));
    assert_eq!(
        directory("skill://team/notes/assets"),
        json!({"resources": []})
    );
}

#[test]
fn directories_have_pages() {
    let folder = Folder::with_notes();
    for name in ["a", "b", "c"] {
        folder.write(&format!("notes/letters/{name}.md"), name);
    }
    let skills = folder.open_with(2);
    let first = skills.directory("skill://notes/letters", None).unwrap();
    assert_eq!(
        uris(&first["resources"]),
        ["skill://notes/letters/a.md", "skill://notes/letters/b.md"]
    );
    let second = skills
        .directory("skill://notes/letters", first["nextCursor"].as_str())
        .unwrap();
    assert_eq!(uris(&second["resources"]), ["skill://notes/letters/c.md"]);
    assert_eq!(second.get("nextCursor"), None);
}

#[test]
fn what_is_no_directory_is_not_found() {
    let skills = Folder::with_notes().with("other/readme.md", "").serve();
    for uri in [
        "skill://notes/SKILL.md",
        "skill://notes/",
        "skill://notes/..",
        "skill://other",
        "skill://nothing",
        "skill://",
        "test://notes",
    ] {
        let error = skills.directory(uri, None).unwrap_err();
        assert_eq!(error.code(), -32602, "{uri}");
        assert_eq!(error.uri(), Some(uri));
    }
}

#[test]
fn a_skill_in_a_skill_belongs_to_both() {
    let skills = Folder::with_notes()
        .with("notes/daily/SKILL.md", skill("daily", "Keeps a diary"))
        .with("notes/daily/day.md", "# Today\n")
        .serve();
    assert_eq!(
        listed(&skills),
        ["skill://notes/SKILL.md", "skill://notes/daily/SKILL.md"]
    );
    assert_eq!(
        uris(&entry(&skills, "skill://notes/SKILL.md")["resources"]),
        [
            "skill://notes/SKILL.md",
            "skill://notes/daily/SKILL.md",
            "skill://notes/daily/day.md",
        ]
    );
    assert_eq!(
        uris(&entry(&skills, "skill://notes/daily/SKILL.md")["resources"]),
        ["skill://notes/daily/SKILL.md", "skill://notes/daily/day.md"]
    );
}

#[test]
fn a_bad_skill_in_a_skill_is_only_files() {
    let skills = Folder::with_notes()
        .with("notes/daily/SKILL.md", skill("weekly", "Has another name"))
        .serve();
    assert_eq!(listed(&skills), ["skill://notes/SKILL.md"]);
    read(&skills, "skill://notes/daily/SKILL.md");
    assert_eq!(
        skills
            .get("skill://notes/daily/SKILL.md")
            .unwrap_err()
            .code(),
        -32602
    );
}

#[test]
fn changed_files_are_read_again() {
    let folder = Folder::with_notes().with("notes/day.md", "# Today\n");
    let skills = folder.open();
    let before = entry(&skills, "skill://notes/SKILL.md");
    folder.write("notes/day.md", "# Another day\n");
    folder.write("notes/week.md", "# A week\n");
    let after = entry(&skills, "skill://notes/SKILL.md");
    assert_ne!(before, after);
    verify(&skills, "skill://notes/SKILL.md", "skill://notes/day.md");
    verify(&skills, "skill://notes/SKILL.md", "skill://notes/week.md");

    fs::remove_file(folder.path("notes/week.md")).unwrap();
    assert!(skills.read("skill://notes/week.md").is_none());
    folder.write("notes/SKILL.md", skill("notes", "Keeps better notes"));
    assert_eq!(
        entry(&skills, "skill://notes/SKILL.md")["frontmatter"]["description"],
        "Keeps better notes"
    );
    folder.write("notes/SKILL.md", "No longer a skill.");
    assert!(listed(&skills).is_empty());
    assert_eq!(skills.notes().len(), 1);
}

#[test]
fn a_change_that_leaves_size_and_time_is_found_by_reading() {
    let folder = Folder::with_notes();
    let path = folder.path("notes/day.md");
    let time = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
    let write = |text: &str| {
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    };
    write("one");
    let skills = folder.open();
    let before = entry(&skills, "skill://notes/SKILL.md");
    write("two");
    assert_eq!(
        read(&skills, "skill://notes/day.md").body,
        Body::Text("two".to_owned())
    );
    assert_ne!(before, entry(&skills, "skill://notes/SKILL.md"));
    verify(&skills, "skill://notes/SKILL.md", "skill://notes/day.md");
}

#[test]
fn a_folder_that_goes_away_is_our_mistake() {
    let folder = Folder::with_notes();
    let skills = folder.open();
    fs::remove_dir_all(folder.0.path()).unwrap();
    assert_eq!(skills.list(None).unwrap_err().code(), -32603);
    assert_eq!(
        skills.get("skill://notes/SKILL.md").unwrap_err().code(),
        -32603
    );
    let error = skills.read("skill://notes/SKILL.md").unwrap().unwrap_err();
    assert_eq!(error.code(), -32603);
}

#[test]
fn without_a_folder_there_are_no_skills() {
    let folder = Folder::new().with("file", "");
    let missing = Skills::open(&folder.path("missing"), PAGE_SIZE).unwrap_err();
    assert!(matches!(missing, SkillsError::Unreadable { .. }));
    let file = Skills::open(&folder.path("file"), PAGE_SIZE).unwrap_err();
    assert!(matches!(file, SkillsError::NotAFolder { .. }));
    assert!(listed(&folder.open()).is_empty());
}

#[test]
#[cfg(unix)]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let folder = Folder::with_notes().with("notes/templates/day.md", "# Today\n");
    let outside = Folder::new()
        .with("secret.txt", "out of reach")
        .with("linked/SKILL.md", skill("linked", "Is elsewhere"));
    symlink(outside.path("secret.txt"), folder.path("notes/secret.txt")).unwrap();
    symlink(outside.path("linked"), folder.path("linked")).unwrap();
    symlink(folder.path("notes"), folder.path("notes/notes")).unwrap();
    let skills = folder.open();
    assert_eq!(listed(&skills), ["skill://notes/SKILL.md"]);
    assert!(skills.read("skill://notes/secret.txt").is_none());
    assert!(skills.read("skill://linked/SKILL.md").is_none());
    expect![[r#"
        `skill://notes` is served without `notes`, which is neither a file nor a folder
        `skill://notes` is served without `secret.txt`, which is neither a file nor a folder"#]]
    .assert_eq(&skills.notes().join("\n"));

    fs::remove_file(folder.path("notes/templates/day.md")).unwrap();
    symlink(
        outside.path("secret.txt"),
        folder.path("notes/templates/day.md"),
    )
    .unwrap();
    assert!(skills.read("skill://notes/templates/day.md").is_none());

    fs::remove_dir_all(folder.path("notes/templates")).unwrap();
    outside.write("templates/day.md", "# Today\n");
    symlink(outside.path("templates"), folder.path("notes/templates")).unwrap();
    assert!(skills.read("skill://notes/templates/day.md").is_none());
}

#[test]
#[cfg(unix)]
fn pipes_and_unreadable_names_are_left_out() {
    use std::os::unix::{ffi::OsStrExt as _, net::UnixListener};

    let folder = Folder::with_notes();
    let _socket = UnixListener::bind(folder.path("notes/socket")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"\xff\n.md");
    fs::write(folder.path("notes").join(name), "").unwrap();
    let skills = folder.open();
    assert_eq!(
        uris(&entry(&skills, "skill://notes/SKILL.md")["resources"]),
        ["skill://notes/SKILL.md"]
    );
    expect![[r#"
        `skill://notes` is served without `socket`, which is neither a file nor a folder
        `skill://notes` is served without `�\n.md`, whose name is not UTF-8"#]]
    .assert_eq(&skills.notes().join("\n"));
}

#[test]
fn too_many_files_are_too_many() {
    let folder = Folder::with_notes();
    for number in 1..512 {
        folder.write(&format!("notes/{number}"), "");
    }
    let skills = folder.open();
    assert_eq!(listed(&skills), ["skill://notes/SKILL.md"]);
    folder.write("notes/one-more", "");
    assert!(listed(&skills).is_empty());
    expect!["`skill://notes/SKILL.md` is left out: it has 513 files, more than the 512 that every client takes"].assert_eq(&skills.notes().join("\n"));
}

#[test]
fn too_many_bytes_are_too_many() {
    const MOST: usize = 16 * 1024 * 1024;

    let folder = Folder::with_notes();
    let rest = MOST - skill("notes", "Keeps notes").len();
    folder.write("notes/large", vec![0; rest]);
    let skills = folder.open();
    assert_eq!(listed(&skills), ["skill://notes/SKILL.md"]);
    folder.write("notes/large", vec![0; rest + 1]);
    assert!(listed(&skills).is_empty());
    expect!["`skill://notes/SKILL.md` is left out: it has 16777217 bytes, more than the 16777216 that every client takes"].assert_eq(&skills.notes().join("\n"));
}

#[test]
fn folders_that_are_too_deep_are_named() {
    let deep = format!("notes/{}day.md", "deeper/".repeat(40));
    let skills = Folder::with_notes().with(&deep, "# Today\n").serve();
    assert!(listed(&skills).is_empty());
    let notes = skills.notes().join("\n").replace("/deeper", "");
    expect![[r#"
        `skill://notes/SKILL.md` is left out: `skill://notes` isn't known as a whole: it lies in more than 32 folders
        skills in `skill://notes` may be left out: it lies in more than 32 folders"#]].assert_eq(&notes);
}

#[test]
fn the_folder_of_skills_is_no_skill() {
    let skills = Folder::with_notes()
        .with("SKILL.md", skill("notes", "Is nowhere"))
        .serve();
    assert_eq!(listed(&skills), ["skill://notes/SKILL.md"]);
    expect!["`skill://SKILL.md` is left out: it is the folder of all skills; put it into a folder of its own"].assert_eq(&skills.notes().join("\n"));
}

#[test]
fn equal_names_are_noted() {
    let skills = Folder::new()
        .with("a/notes/SKILL.md", skill("notes", "Keeps notes"))
        .with("b/notes/SKILL.md", skill("notes", "Keeps other notes"))
        .serve();
    assert_eq!(listed(&skills).len(), 2);
    expect!["`skill://a/notes/SKILL.md` and `skill://b/notes/SKILL.md` have the same name"]
        .assert_eq(&skills.notes().join("\n"));
}

#[test]
fn skills_that_cannot_be_used_are_left_out() {
    left_out(
        "a",
        "Just text.\n",
        &expect![
            "`skill://a/SKILL.md` is left out: it has to begin with a line `---`, its YAML frontmatter and another line `---`"
        ],
    );
    left_out(
        "a",
        "---\nname: a\n",
        &expect![
            "`skill://a/SKILL.md` is left out: it has to begin with a line `---`, its YAML frontmatter and another line `---`"
        ],
    );
    left_out(
        "a",
        "---\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its frontmatter has to be fields such as `name: …`"
        ],
    );
    left_out(
        "a",
        "---\ndescription: No name\n---\n",
        &expect!["`skill://a/SKILL.md` is left out: its frontmatter has no `name` that is a text"],
    );
    left_out(
        "a",
        "---\nname: a\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its frontmatter has no `description` that is a text"
        ],
    );
    left_out(
        "a",
        "---\nname: a\ndescription: '  '\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its frontmatter has no `description` that is a text"
        ],
    );
    left_out(
        "a",
        "---\nname: a\ndescription: 5\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its frontmatter has no `description` that is a text"
        ],
    );
    left_out(
        "a",
        skill("b", "Another name"),
        &expect![
            "`skill://a/SKILL.md` is left out: its `name` is `b`, but its folder is called `a`"
        ],
    );
    left_out(
        "7",
        "---\nname: 7\ndescription: A number\n---\n",
        &expect!["`skill://7/SKILL.md` is left out: its frontmatter has no `name` that is a text"],
    );
    left_out(
        "A",
        skill("A", "Not in lower case"),
        &expect![
            "`skill://A/SKILL.md` is left out: its `name` has to be 1 to 64 of `a` to `z`, `0` to `9` and single `-` between them, and is `A`"
        ],
    );
    left_out(
        "a--b",
        skill("a--b", "Two dashes"),
        &expect![
            "`skill://a--b/SKILL.md` is left out: its `name` has to be 1 to 64 of `a` to `z`, `0` to `9` and single `-` between them, and is `a--b`"
        ],
    );
    left_out(
        "a",
        skill("a", &"long ".repeat(300)),
        &expect![
            "`skill://a/SKILL.md` is left out: its `description` has more than 1024 characters"
        ],
    );
    left_out(
        "a",
        "---\nname: a\ndescription: A\nmetadata:\n  audience: [you, me]\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its `metadata` has to map texts to texts, which `audience` does not"
        ],
    );
    left_out(
        "a",
        "---\nname: a\ndescription: A\ncompatibility: [Linux]\n---\n",
        &expect![
            "`skill://a/SKILL.md` is left out: its `compatibility` has to be a text of 1 to 500 characters"
        ],
    );
    left_out(
        "a",
        b"---\nname: a\ndescription: \xff\n---\n",
        &expect!["`skill://a/SKILL.md` is left out: its `SKILL.md` is not UTF-8"],
    );
}

#[test]
fn frontmatter_is_taken_as_it_is() {
    fields("", &expect!["{}"]);
    fields(
        "a: 1\nb: -2\nc: 0x1F\nd: 0o17\ne: 012\nf: +5",
        &expect![[r#"{"a":1,"b":-2,"c":31,"d":15,"e":12,"f":5}"#]],
    );
    fields(
        "a: 1.5\nb: .5\nc: 5.\nd: 1e3\ne: -1.5E-3\nf: 99999999999999999999",
        &expect![[r#"{"a":1.5,"b":0.5,"c":5.0,"d":1000.0,"e":-0.0015,"f":1e+20}"#]],
    );
    fields(
        "a: true\nb: False\nc: null\nd: ~\ne:\nf: Null",
        &expect![[r#"{"a":true,"b":false,"c":null,"d":null,"e":null,"f":null}"#]],
    );
    fields(
        "a: yes\nb: off\nc: 2026-07-28\nd: 1_000\ne: 1.2.3\nf: 0x\ng: -0x1\nh: .\ni: infinity\nj: 12:30",
        &expect![[
            r#"{"a":"yes","b":"off","c":"2026-07-28","d":"1_000","e":"1.2.3","f":"0x","g":"-0x1","h":".","i":"infinity","j":"12:30"}"#
        ]],
    );
    fields(
        "a: '1'\nb: \"true\"\nc: \"\\u00e9\\n\"\nd: ''",
        &expect![[r#"{"a":"1","b":"true","c":"é\n","d":""}"#]],
    );
    fields(
        "a: |\n  one\n  two\nb: >-\n  one\n  two\nc: |\n  end",
        &expect![[r#"{"a":"one\ntwo\n","b":"one two","c":"end\n"}"#]],
    );
    fields(
        "a: [1, two, {three: 3}]\nb: {c: {d: []}}\ne:\n  - f\n  - g: h",
        &expect![[r#"{"a":[1,"two",{"three":3}],"b":{"c":{"d":[]}},"e":["f",{"g":"h"}]}"#]],
    );
    fields(
        "# a comment\nallowed-tools: Bash(git:*) Read # another",
        &expect![[r#"{"allowed-tools":"Bash(git:*) Read"}"#]],
    );
}

#[test]
fn frontmatter_that_json_cannot_say_is_refused() {
    fields(
        "a: &x 1\nb: *x",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter uses an anchor, which not every client can read"
        ],
    );
    fields(
        "a: *x",
        &expect![
            "`skill://notes/SKILL.md` is left out: its line 4 is no YAML: while parsing node, found unknown anchor (column 4)"
        ],
    );
    fields(
        "a: &x [b]",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter uses an anchor, which not every client can read"
        ],
    );
    fields(
        "a: !!str 1",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter uses a tag, which not every client can read"
        ],
    );
    fields(
        "a: !mine {b: c}",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter uses a tag, which not every client can read"
        ],
    );
    fields(
        "a: 1\na: 2",
        &expect!["`skill://notes/SKILL.md` is left out: its frontmatter has the key `a` twice"],
    );
    fields(
        "1: a",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has the key `1`, which is no text; put it in quotes"
        ],
    );
    fields(
        "true: a",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has the key `true`, which is no text; put it in quotes"
        ],
    );
    fields(
        "? [a, b]\n: c",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has the key `[…]`, which is no text; put it in quotes"
        ],
    );
    fields(
        "a: .inf",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has the number `.inf`, which JSON doesn't know; put it in quotes"
        ],
    );
    fields(
        "a: 1e999",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has the number `1e999`, which JSON doesn't know; put it in quotes"
        ],
    );
    fields(
        "a: b: c",
        &expect![
            "`skill://notes/SKILL.md` is left out: its line 4 is no YAML: mapping values are not allowed in this context (column 5)"
        ],
    );
    fields(
        "a: [1",
        &expect![
            "`skill://notes/SKILL.md` is left out: its line 5 is no YAML: while parsing a flow sequence, expected ',' or ']' (column 1)"
        ],
    );
    fields(
        "...\nname: notes",
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter uses a second document, which not every client can read"
        ],
    );
    fields(
        &format!("a: {}{}", "[".repeat(33), "]".repeat(33)),
        &expect![
            "`skill://notes/SKILL.md` is left out: its frontmatter has lists or objects inside one another more than 32 times"
        ],
    );
    fields(
        &format!("a: {}", "[".repeat(30_000)),
        &expect![
            "`skill://notes/SKILL.md` is left out: its line 4 is no YAML: recursion limit exceeded (column 259)"
        ],
    );
    fields(
        &format!("a: {}", "long ".repeat(20_000)),
        &expect!["`skill://notes/SKILL.md` is left out: its frontmatter has more than 65536 bytes"],
    );
}

#[test]
fn line_ends_and_a_mark_at_the_beginning_change_nothing() {
    for text in [
        "\u{feff}---\nname: notes\ndescription: Keeps notes\n---\n",
        "---\r\nname: notes\r\ndescription: Keeps notes\r\n---\r\n\r\nText\r\n",
        "---\nname: notes\ndescription: Keeps notes\n--- \t\nText",
        "---\nname: notes\ndescription: Keeps notes\n---",
    ] {
        let skills = Folder::new().with("notes/SKILL.md", text).serve();
        assert_eq!(
            entry(&skills, "skill://notes/SKILL.md")["frontmatter"],
            json!({"name": "notes", "description": "Keeps notes"}),
            "{text:?}"
        );
        let uri = "skill://notes/SKILL.md";
        verify(&skills, uri, uri);
    }
}
