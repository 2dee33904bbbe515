#!/usr/bin/env bash
# Puts the report into the pull request's one comment of ours: edits it where it is there, else writes it.
# In, by environment: GH_TOKEN REPOSITORY NUMBER RUNNER_TEMP
set -euo pipefail

report=$RUNNER_TEMP/mizzen-diff.md
mark=$(head -n 1 "$report")
comments=repos/$REPOSITORY/issues/$NUMBER/comments
known=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1)
if [ -n "$known" ]; then
  gh api --method PATCH "repos/$REPOSITORY/issues/comments/$known" -F body=@"$report" --silent
else
  gh api --method POST "$comments" -F body=@"$report" --silent
fi
