#!/usr/bin/env bash
# Builds the archives of kubectl-memcached, their checksums, and the manifest with which Krew installs it:
# hack/plugin.sh VERSION FOLDER [SYSTEM/ARCHITECTURE...]
# The same commit and version give the same files on any machine.
set -euo pipefail
export LC_ALL=C
version="$1" folder="$2" name=kubectl-memcached repository=https://github.com/memcached-operator/memcached-operator
platforms="${*:3}"
: "${platforms:=linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
install -m 644 LICENSE "$work"

cat >"$folder/memcached.yaml" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: memcached
spec:
  version: v$version
  homepage: $repository
  shortDescription: Show and control Memcacheds
  description: |
    Shows what the memcached-operator knows of a Memcached: its shards, what the
    operator does next, and what blocks it. Restarts and moves shards, creates
    backups and restores. It requires the operator in the cluster, and uses
    your permissions.
  platforms:
END
: >"$folder/${name}_checksums.txt"
for platform in $platforms; do
	system="${platform%/*}" arch="${platform#*/}" program="$name"
	[ "$system" != windows ] || program+=.exe
	archive="${name}_${system}_$arch.tar.gz"
	CGO_ENABLED=0 GOOS="$system" GOARCH="$arch" \
		go -C "cmd/$name" build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$work/$program" .
	chmod 755 "$work/$program"
	tar -C "$work" --format=ustar --owner=0 --group=0 --numeric-owner --mtime=2000-01-01T00:00:00Z -c LICENSE "$program" | gzip -9n >"$folder/$archive"
	sum="$(cd "$folder" && sha256sum "$archive" | tee -a "${name}_checksums.txt")"
	cat >>"$folder/memcached.yaml" <<-END
	  - selector:
	      matchLabels:
	        os: $system
	        arch: $arch
	    uri: $repository/releases/download/v$version/$archive
	    sha256: ${sum%% *}
	    bin: $program
	END
done
