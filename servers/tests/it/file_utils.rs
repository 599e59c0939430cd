//! The file server against real files.

use crate::check_error;
use expect_test::expect;
use servers::file_utils::{Count, FileUtils, ROOT_VARIABLE};
use std::{fs, path::Path};
use tempfile::TempDir;
use tool_runtime::{Cancellation, Environment, Json};

/// A folder with some files, and one outside of it.
struct Fixture {
    folder: TempDir,
    server: FileUtils,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "outside\n").unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/two"), "one\ntwo\n").unwrap();
        let server = start(&root);
        Self { folder, server }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root")
    }

    async fn count(&self, path: &str) -> Result<(u64, u64), String> {
        let counted = self
            .server
            .count_lines(path.to_owned(), &Cancellation::new())
            .await;
        match counted {
            Ok(Json(Count {
                path: same,
                lines,
                bytes,
            })) => {
                assert_eq!(same, path);
                Ok((lines, bytes))
            }
            Err(error) => {
                let text = tool_runtime::ToolError::from(error).to_string();
                Err(text.replace(&self.folder.path().display().to_string(), "TEMP"))
            }
        }
    }

    async fn error(&self, path: &str) -> String {
        self.count(path).await.expect_err("the path is bad")
    }
}

fn start(root: &Path) -> FileUtils {
    let root = root.to_str().unwrap();
    FileUtils::start(&Environment::new([(ROOT_VARIABLE, root)])).unwrap()
}

#[tokio::test]
async fn lines_and_bytes() {
    let fixture = Fixture::new();
    for (text, lines) in [
        ("", 0),
        ("\n", 1),
        ("one", 1),
        ("one\n", 1),
        ("one\ntwo", 2),
        ("one\r\ntwo\r\n", 2),
        ("\n\n\n", 3),
    ] {
        fs::write(fixture.root().join("file"), text).unwrap();
        let bytes = text.len() as u64;
        assert_eq!(fixture.count("file").await, Ok((lines, bytes)), "{text:?}");
    }
    // Longer than the buffer, so that a line ends in another read than it began.
    fs::write(fixture.root().join("file"), "x".repeat(300_000) + "\nend").unwrap();
    assert_eq!(fixture.count("file").await, Ok((2, 300_004)));
}

#[tokio::test]
async fn paths_inside() {
    let fixture = Fixture::new();
    let absolute = fixture.root().join("sub/two").display().to_string();
    for path in ["sub/two", "./sub/./two", "sub//two", &absolute] {
        assert_eq!(fixture.count(path).await, Ok((2, 8)), "{path}");
    }
}

#[tokio::test]
async fn paths_outside() {
    let fixture = Fixture::new();
    expect!["`../secret` is outside of `TEMP/root`, and only files inside can be read; give a path relative to that folder, without `..`"].assert_eq(&fixture.error("../secret").await);
    let secret = fixture.folder.path().join("secret").display().to_string();
    let beside = format!("{}-beside/file", fixture.root().display());
    let back = format!("{}/../secret", fixture.root().display());
    for path in [
        "sub/../../secret",
        "/etc/passwd",
        "..",
        "/",
        &secret,
        &beside,
        &back,
    ] {
        let error = fixture.error(path).await;
        assert!(
            error.contains("is outside of `TEMP/root`"),
            "{path}: {error}"
        );
    }
    // What is outside is not even told to be missing.
    let error = fixture.error("../missing").await;
    assert!(error.contains("is outside of"), "{error}");
}

#[tokio::test]
async fn paths_that_are_no_files() {
    let fixture = Fixture::new();
    expect!["`missing` can't be read: No such file or directory (os error 2)"]
        .assert_eq(&fixture.error("missing").await);
    expect!["`sub` is a folder; only regular files can be read"]
        .assert_eq(&fixture.error("sub").await);
    expect!["`.` is a folder; only regular files can be read"].assert_eq(&fixture.error(".").await);
    expect!["`sub/two/three` can't be read: Not a directory (os error 20)"]
        .assert_eq(&fixture.error("sub/two/three").await);
    expect!["the path holds a NUL byte, which no file name can have"]
        .assert_eq(&fixture.error("sub\0two").await);
}

#[cfg(unix)]
#[tokio::test]
async fn links() {
    use std::os::unix::fs::symlink;

    let fixture = Fixture::new();
    let root = fixture.root();
    symlink("sub/two", root.join("inside")).unwrap();
    symlink("../secret", root.join("outside")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink(&root, fixture.folder.path().join("alias")).unwrap();

    assert_eq!(fixture.count("inside").await, Ok((2, 8)));
    expect!["`outside` is outside of `TEMP/root`, and only files inside can be read; give a path relative to that folder, without `..`"].assert_eq(&fixture.error("outside").await);
    expect!["`up/secret` is outside of `TEMP/root`, and only files inside can be read; give a path relative to that folder, without `..`"].assert_eq(&fixture.error("up/secret").await);
    let error = fixture.error("loop").await;
    assert!(error.starts_with("`loop` can't be read: "), "{error}");

    // A root that is itself behind a link is known by both names.
    let alias = fixture.folder.path().join("alias");
    let server = start(&alias);
    for path in [alias.join("sub/two"), root.join("sub/two")] {
        let path = path.display().to_string();
        let counted = server.count_lines(path, &Cancellation::new()).await;
        assert_eq!(counted.unwrap().0.lines, 2);
    }
}

/// A folder is swapped for a link to the outside and back, all the time: whatever is read is inside.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_come_and_go() {
    use std::os::unix::fs::symlink;

    let fixture = Fixture::new();
    let root = fixture.root();
    let outside = fixture.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("two"), "outside").unwrap();
    symlink(&outside, root.join("link")).unwrap();

    let stop = Cancellation::new();
    let swapping = tokio::task::spawn_blocking({
        let (root, stop) = (root.clone(), stop.clone());
        move || {
            while !stop.is_cancelled() {
                fs::rename(root.join("sub"), root.join("kept")).unwrap();
                fs::rename(root.join("link"), root.join("sub")).unwrap();
                fs::rename(root.join("sub"), root.join("link")).unwrap();
                fs::rename(root.join("kept"), root.join("sub")).unwrap();
            }
        }
    });
    for _ in 0..2000 {
        match fixture.count("sub/two").await {
            Ok(counted) => assert_eq!(counted, (2, 8)),
            Err(error) => assert!(error.starts_with("`sub/two` "), "{error}"),
        }
    }
    stop.cancel();
    swapping.await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_and_sockets_and_devices() {
    let fixture = Fixture::new();
    let root = fixture.root();
    let made = std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();

    // A call that blocked would never end.
    expect!["`pipe` is a device, pipe or socket; only regular files can be read"]
        .assert_eq(&fixture.error("pipe").await);
    expect!["`socket` is a device, pipe or socket; only regular files can be read"]
        .assert_eq(&fixture.error("socket").await);

    let devices = start(Path::new("/dev"));
    let error = devices
        .count_lines("zero".into(), &Cancellation::new())
        .await;
    check_error(
        error.unwrap_err(),
        &expect!["`zero` is a device, pipe or socket; only regular files can be read"],
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_files_take_no_memory() {
    const SIZE: u64 = 2 << 30;
    let fixture = Fixture::new();
    let file = fs::File::create(fixture.root().join("large")).unwrap();
    file.set_len(SIZE).unwrap();

    let before = peak_memory();
    assert_eq!(fixture.count("large").await, Ok((1, SIZE)));
    let grown = peak_memory() - before;
    assert!(grown < 32 << 20, "{grown} bytes");
}

/// Returns the most memory that this process has ever had.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[tokio::test]
async fn cancelled_calls() {
    let fixture = Fixture::new();
    let cancelled = Cancellation::new();
    cancelled.cancel();
    let error = fixture
        .server
        .count_lines("sub/two".into(), &cancelled)
        .await;
    check_error(
        error.unwrap_err(),
        &expect!["stopped reading `sub/two`: the call was cancelled"],
    );
}

#[tokio::test]
async fn bad_settings() {
    let start = |root: &str| {
        let environment = Environment::new([(ROOT_VARIABLE, root)]);
        FileUtils::start(&environment).unwrap_err()
    };
    check_error(
        start("/missing/folder"),
        &expect![
            "`FILE_UTILS_ROOT` must name a folder that can be read, and `/missing/folder` is none: No such file or directory (os error 2)"
        ],
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = start(file.path().to_str().unwrap());
    let text = tool_runtime::ToolError::from(error).to_string();
    expect![
        "`FILE_UTILS_ROOT` must name a folder that can be read, and `FILE` is none: not a directory"
    ]
    .assert_eq(&text.replace(file.path().to_str().unwrap(), "FILE"));
    // Nothing set means the current folder, which for a test is the one of its crate.
    let server = FileUtils::start(&Environment::default()).unwrap();
    let counted = server
        .count_lines("Cargo.toml".into(), &Cancellation::new())
        .await;
    assert!(counted.unwrap().0.lines > 10);
}
