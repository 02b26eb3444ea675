#!/usr/bin/env bash
# Prepares a release, everything except pushing: make release VERSION=1.0.0 [IMAGE_DIGEST=sha256:…]
#
# It sets version, time and the digest of the operator's image, also in the commands of documents, moves the unreleased
# changes in CHANGELOG.md to the version, generates the bundle, the chart and dist/install.yaml, copies the bundle to
# catalog/releases, renders and tests the catalog, writes dist/community-operators, builds the images, commits and tags.
# When a step fails or is interrupted, it restores the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
version="${1:-}" digest="${2:-}"

# What a release changes and commits. The generators also write config/crd/bases and the role, which must not change.
changed="Makefile CHANGELOG.md images.yaml config/manager/kustomization.yaml config/scorecard/kustomization.yaml config/samples/olmv1 \
bundle bundle.Dockerfile catalog docs/install.md charts"
paths="$changed config/crd/bases config/rbac/role.yaml"
undo="git restore --source=HEAD --staged --worktree -- $paths && git clean -fdq -- $paths"
# For pull requests to https://github.com/k8s-operatorhub/community-operators, and the one with -prod of OpenShift.
community=dist/community-operators

fail() { printf 'release: %s\n' "$@" >&2; exit 1; }

[[ "$version" =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
	fail "\"$version\" is not a version: use one such as VERSION=1.1.0, or VERSION=1.1.0-rc.1 for a candidate"
[[ "$digest" =~ ^(sha256:[0-9a-f]{64})?$ ]] || fail "\"$digest\" is not a digest: use one such as IMAGE_DIGEST=sha256:0123…, with 64 digits"
status="$(git status --porcelain)"
[ -z "$status" ] || fail "the tree has uncommitted changes: commit or revert them; to revert a release that was killed: $undo" "$status"
newest() { sed 's/-/~/' | sort -V | tail -n 1 | sed 's/~/-/'; } # ~ is before the end: 1.1.0-rc.1 comes before 1.1.0
last="$(find catalog/releases -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | newest)"
# A tag without a folder is a release of another clone.
if [ "$version" = "$last" ] || [ -n "$(git tag --list "v$version")" ]; then
	fail "$version is released already, and a release never changes: release a greater version"
fi
[ "$(printf '%s\n' "$last" "$version" | newest)" = "$version" ] || fail "$version is not after $last, the last release: OLM would not upgrade to it"
grep -q '^## \[Unreleased\]$' CHANGELOG.md && grep -Eq '^\[Unreleased\]: .*/compare/v.*\.\.\.HEAD$' CHANGELOG.md ||
	fail 'CHANGELOG.md needs the heading "## [Unreleased]" and the link "[Unreleased]: …/compare/v<last version>...HEAD"'
[ -n "$(sed -n '1,/^## \[Unreleased\]$/d; /^## /q; /^- /p' CHANGELOG.md)" ] ||
	fail 'CHANGELOG.md lists no change under "## [Unreleased]": add what users notice'

# old_benchmarks prints the pages of measurements that are older than the last release.
old_benchmarks() {
	local released page measured
	released="$(sed -nE 's/^RELEASED \?= (.*)T.*/\1/p' Makefile)"
	for page in docs/bench-*.md; do
		measured="$(sed -nE 's/^`make bench-.* on ([0-9]{4}-[0-9]{2}-[0-9]{2})[ .].*/\1/p' "$page")"
		if [[ "$measured" < "$released" ]]; then
			echo "warning: $page was measured on $measured, before the last release on $released: measure it again"
		fi
	done
}

# set_line FILE PREFIX VALUE sets the value of the one line that begins with an expression.
set_line() {
	[ "$(grep -cE "^$2" "$1")" = 1 ] || fail "$1 must have one line that begins with $2"
	sed -Ei "s|^($2).*|\1$3|" "$1"
}

name() {
	local now
	now="$(date -u +%FT%TZ)"
	set_line Makefile 'VERSION \?= ' "$version"
	set_line Makefile 'RELEASED \?= ' "$now"
	set_line Makefile 'DIGEST \?=' "${digest:+ @$digest}"
	sed -i "\|^- name: ghcr.io/memcached-operator/memcached-operator\$|{n;s|^  digest:.*|  digest:${digest:+ $digest}|}" images.yaml
	set_line config/manager/kustomization.yaml '  newTag: ' "v$version"
	set_line config/scorecard/kustomization.yaml '  newTag: ' "v$version"
	if [[ "$version" != *-* ]]; then # the documents don't install a candidate
		set_line docs/install.md 'kubectl apply --server-side -k "https://.*\?ref=' "v$version\""
	fi
	sed -Ei -e "s|^## \[Unreleased\]\$|&\n\n## [$version] - ${now%T*}|" \
		-e "s|^(\[Unreleased\]: (.*)/compare/v)(.*)\.\.\.HEAD\$|\1$version...HEAD\n[$version]: \2/compare/v\3...v$version|" CHANGELOG.md
}

add_release() {
	cp -R bundle "catalog/releases/$version"
	(cd catalog/releases && find "$version" -type f | LC_ALL=C sort | xargs sha256sum >>checksums)
}

no_other_change() {
	local status
	status="$(git status --porcelain --untracked-files=all -- . $(printf ' :(exclude)%s' $changed))"
	[ -z "$status" ] || fail "a release does not change these files; run make generate manifests and commit them first:" "$status"
}

commit() {
	git add -- $changed
	git commit -q -m "Release $version"
	git tag -a "v$version" -m "Release $version" || { git reset -q --soft HEAD~1; return 1; }
}

log="$(mktemp)"
exec 3>&2
restore() {
	local status=$?
	exec 2>&3 # a step that failed has the log as its output
	if [ "$status" != 0 ]; then
		printf ' failed\n%s\n' "$(tail -n 20 "$log")" >&2
		eval "$undo" && echo 'release: nothing was committed, and the tree is restored' >&2
	fi
	rm -f "$log"
	exit "$status"
}
trap restore EXIT
trap 'echo interrupted >>"$log"; exit 1' INT TERM

# step WHAT COMMAND... runs a command, whose output is printed if it fails.
step() {
	local began=$SECONDS
	printf '%s …' "$1"
	"${@:2}" >"$log" 2>&1
	echo " done in $((SECONDS - began)) s"
}
old="$(old_benchmarks)"
step 'setting the version' name
step 'generating the bundle' make bundle
step 'copying it to catalog/releases' add_release
step 'rendering the catalog' make catalog
step 'checking that no other file changed' no_other_change
step 'testing the bundle and the catalog' go -C hack test -count=1 ./bundle ./catalog
step "writing $community" go -C hack run ./catalog hubs "$version" "$PWD/dist"
step 'building the images' make release-images
trap '' INT TERM
step 'committing and tagging' commit
cat <<END

${old:+$old

}Prepared release $version in $SECONDS s. Nothing was pushed; to publish it:

  make docker-buildx                               the operator's image for all platforms (or make docker-push, for that of this machine only)
  make bundle-push catalog-push scorecard-push     the images of bundle, catalog and scorecard
  git push origin HEAD v$version                     the commit and its tag
  $community{,-prod}                pull requests to the repositories of OperatorHub, see docs/maintainers/releasing.md
END
