#!/usr/bin/env bash
# Publish a built site in the branch gh-pages, in a folder with the name of the branch or the tag.
#
#     publish-site.sh SITE
#
# Other folders stay as they are, so the pages of former releases keep their addresses. The front
# page of the branch leads to the newest release, or to `main` while there is no release.
# GITHUB_REF_NAME, GITHUB_REPOSITORY and GITHUB_TOKEN are set by GitHub Actions.
set -euo pipefail

site=$(realpath "$1")
folder=$GITHUB_REF_NAME
remote=${PUBLISH_REMOTE:-https://x-access-token:$GITHUB_TOKEN@github.com/$GITHUB_REPOSITORY}
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

if ! git clone --quiet --depth 1 --branch gh-pages "$remote" "$pages" 2> /dev/null; then
  # The first time, the branch does not exist yet.
  git init --quiet --initial-branch gh-pages "$pages"
fi
cd "$pages"
rm -rf "./$folder"
mkdir -p "$(dirname "./$folder")"
cp -r "$site" "./$folder"

newest=$(find . -maxdepth 1 -type d -name 'v*' -printf '%f\n' | sort --version-sort | tail -1)
start=${newest:-main}
printf '<!doctype html><meta http-equiv="refresh" content="0; url=%s/index.html">\n' "$start" > index.html
# Without this file, GitHub would leave out folders such as _static.
touch .nojekyll

git add --all
if git diff --cached --quiet; then
  echo "The site has not changed."
  exit 0
fi
git -c user.name="github-actions" -c user.email="github-actions@users.noreply.github.com" \
  commit --quiet --message "Publish $folder"
git push --quiet "$remote" gh-pages
