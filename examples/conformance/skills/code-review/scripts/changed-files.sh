#!/bin/sh
# changed-files.sh BASE: the files that this branch changes against BASE, with how much of each.
set -eu
base=${1:?"usage: changed-files.sh BASE"}
git diff --stat=120 "$(git merge-base "$base" HEAD)"
