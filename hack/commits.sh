#!/bin/bash
# Checks the subjects of the commits since release 1.0.0: a verb in the imperative with a capital, at most 72 characters, no
# full stop. An area may come first, as in "Makefile: build once". Dependabot names modules and folders, whatever their length.
set -euo pipefail
export LC_ALL=C.UTF-8
first="$(git log -1 --format=%H --grep='^Release 1\.0\.0$')"
if [ -z "$first" ] && [ "$(git rev-parse --is-shallow-repository)" = false ]; then
  echo 'no commit has the subject "Release 1.0.0", after which commits are checked'
  exit 1
fi
area='[A-Za-z0-9/ ._-]+: '
begins='a|an|the|this|that|these|it|its|no|each|every|all|what|when|who|how|we|new|more'
other='[a-z-]+ed|[a-z-]+ing|[a-z-]*[a-rt-z]s'
looks='embed|feed|need|seed|shed|speed|bring|string|focus|alias|bias'
subjects="$(git log --no-merges --perl-regexp --author='^(?!dependabot\[bot\])' --format='%h %s' HEAD ${first:+^$first})"
wrong="$({
  grep -vP '^[0-9a-f]+ .{1,71}[^.]$' <<<"$subjects"
  grep -vP "^[0-9a-f]+ ($area[A-Za-z]|(?!$area)[A-Z])[a-z]+\b" <<<"$subjects"
  grep -P "^[0-9a-f]+ ($area)?+(?!(?i:$looks)\b)(?i:$begins|$other)(?![a-z-])" <<<"$subjects"
} || true)"
if [ -n "$wrong" ]; then
  printf '%s\nThese subjects need another wording (git rebase -i, reword): a verb such as Add or Fix, at most 72 characters.\n' "$wrong"
  exit 1
fi
echo "checked the subjects of $(grep -c . <<<"$subjects" || true) commits"
