#!/bin/sh
# commits.sh: the titles of all commits since the last tag, or of all where there is no tag.
set -eu
if last=$(git describe --tags --abbrev=0 2>/dev/null); then
    git log --no-merges --format='%h %s' "$last..HEAD"
else
    git log --no-merges --format='%h %s'
fi
