//! Where each system keeps the data and the settings of a person.

use std::{collections::BTreeMap, path::PathBuf};

pub(super) fn data_folder(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    if cfg!(windows) {
        absolute(variables, "LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        application_support(variables)
    } else {
        absolute(variables, "XDG_DATA_HOME")
            .or_else(|| absolute(variables, "HOME").map(|it| it.join(".local/share")))
    }
}

pub(super) fn settings_folder(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    if cfg!(windows) {
        absolute(variables, "APPDATA")
    } else if cfg!(target_os = "macos") {
        application_support(variables)
    } else {
        absolute(variables, "XDG_CONFIG_HOME")
            .or_else(|| absolute(variables, "HOME").map(|it| it.join(".config")))
    }
}

fn application_support(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    absolute(variables, "HOME").map(|it| it.join("Library/Application Support"))
}

/// The XDG rules say to ignore a relative path here.
fn absolute(variables: &BTreeMap<String, String>, name: &str) -> Option<PathBuf> {
    variables
        .get(name)
        .map(PathBuf::from)
        .filter(|it| it.is_absolute())
}
