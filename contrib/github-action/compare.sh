#!/usr/bin/env bash
# Runs `mizzen diff` against the base and leaves the report as JSON and Markdown; sets the step's outputs.
# In, by environment: MIZZEN MANIFESTS BASE BASE_BRANCH PROBES MESH DIALECT RUNNER_TEMP GITHUB_OUTPUT GITHUB_STEP_SUMMARY
set -euo pipefail

base=$BASE
if [ -z "$base" ]; then
  [ -n "$BASE_BRANCH" ] || { echo "::error::no pull request: say what to compare with (base)"; exit 2; }
  # What the base branch gained meanwhile is not this pull request's doing.
  base=$(git merge-base "$BASE_BRANCH" HEAD 2>/dev/null) || {
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
  changed=$status
}
compare json "$RUNNER_TEMP/mizzen-diff.json"
compare markdown "$RUNNER_TEMP/mizzen-diff.md"

count() { python3 -c 'import json,sys; r=json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"r": r}))' "$RUNNER_TEMP/mizzen-diff.json" "$1"; }
{
  [ "$changed" -eq 1 ] && echo "changed=true" || echo "changed=false"
  echo "cut=$(count 'r["connections"]["cutAtProxies"] + len(r["connections"]["podsGone"])')"
  echo "errors=$(count 'sum(f["level"] == "Error" for f in r["findings"])')"
  echo "report=$RUNNER_TEMP/mizzen-diff.json"
} >>"$GITHUB_OUTPUT"
cat "$RUNNER_TEMP/mizzen-diff.md" >>"$GITHUB_STEP_SUMMARY"
