#!/usr/bin/env bash
# Runs `mizzen diff` against the base and leaves the report as JSON and Markdown; sets the step's outputs.
# In, by environment: PYTHON MIZZEN MANIFESTS BASE BASE_COMMIT PROBES MESH DIALECT, and what the runner sets.
set -euo pipefail

base=$BASE
if [ -z "$base" ]; then
  [ -n "$BASE_COMMIT" ] || { echo "::error::no pull request: say what to compare with (base)"; exit 2; }
  # What the base branch gained meanwhile is not this pull request's doing.
  base=$(git merge-base "$BASE_COMMIT" HEAD 2>/dev/null) || {
    echo "::error::the base is not among what was checked out: use actions/checkout with fetch-depth: 0"
    exit 2
  }
fi

arguments=(--dialect "$DIALECT")
[ -z "$PROBES" ] || arguments+=(--probe "$PROBES")
[ -z "$MESH" ] || arguments+=(--mesh "$MESH")

compare() {
  local status=0
  "$MIZZEN" diff "${arguments[@]}" -o "$1" -- "$base" "$MANIFESTS" >"$2" || status=$?
  [ "$status" -le 1 ] || { echo "::error::mizzen diff failed"; exit 2; }
}
report=$RUNNER_TEMP/mizzen-diff.json
compare json "$report"
compare markdown "$RUNNER_TEMP/mizzen-diff.md"

"$PYTHON" "$(dirname "$0")/outputs.py" "$report" >>"$GITHUB_OUTPUT"
echo "report=$report" >>"$GITHUB_OUTPUT"
cat "$RUNNER_TEMP/mizzen-diff.md" >>"$GITHUB_STEP_SUMMARY"
