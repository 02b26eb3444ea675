#!/usr/bin/awk -f
# Prints docs/quickstart.md as a script for bash, which runs the page's commands on the cluster in KUBECONFIG and compares
# what they print with the page:
#
#	hack/quickstart.awk docs/quickstart.md | bash
#
# The script omits the commands of kind, and installs the operator of this repository instead of a release. After a block
# of commands, a block of output has the lines that the commands have to print, unless it is only similar.
BEGIN {
	print "set -euo pipefail"
	print "cd \"$(git rev-parse --show-toplevel)\""
	print "directory=\"$(mktemp -d)\""
	print "trap 'rm -rf \"$directory\"' EXIT\n"
	print "# expect fails unless the file of the last output has a line."
	print "expect() {"
	print "  grep -qxF -- \"$1\" \"$directory/output\" || { echo \"the output lacks the line: $1\" >&2; exit 1; }"
	print "}"
}

function stop(why) {
	print "echo 'quickstart: " why "' >&2; exit 1"
	print "quickstart: " why >"/dev/stderr"
	exit failed = 1
}

language == "" && /^```[a-z]+$/ {
	language = substr($0, 4)
	text = ""
	if (language !~ /^(yaml|shell|console)$/) stop("the page has a block of " language ", which the script cannot run")
	next
}

language == "" {
	if ($0 != "") prose = $0
	next
}

$0 != "```" {
	if (language == "yaml") text = text $0 "\n"
	if (language == "console" && prose !~ /similar to this:$/) print "expect '" $0 "'"
	if (language == "shell" && !/^kind /) {
		installed += sub(/^kubectl apply --server-side -f https:\/\/.*$/, "make deploy-as-generated")
		gsub(/ -f cache\.yaml/, " -f \"$directory/cache.yaml\"")
		text = text $0 "\n"
	}
	next
}

{
	if (language == "yaml") {
		if (!match(prose, /Write this into `[a-z.]+`:$/)) stop("the page does not say to which file a block of yaml belongs")
		printf "\ncat > \"$directory/%s\" <<'EOF'\n%sEOF\n", substr(prose, RSTART + 17, RLENGTH - 19), text
	}
	if (language == "shell") {
		commands++
		if (text != "") printf "\n{\n%s} </dev/null | tr -d '\\r' | tee \"$directory/output\"\n", text
	}
	language = ""
	prose = ""
}

END {
	if (!failed && (commands < 5 || !installed)) stop("the page has " commands " blocks of commands, and installs the operator " installed " times")
}
