// Command quickstart prints docs/quickstart.md as a script for bash, which runs the page's commands on the cluster in
// KUBECONFIG and compares what they print with the page:
//
//	go -C hack run ./quickstart | bash
//
// The script omits the commands of kind, and installs the operator of this repository instead of a release.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

func main() {
	page, err := os.ReadFile("../docs/quickstart.md")
	if err == nil {
		var text string
		if text, err = script(string(page)); err == nil {
			fmt.Print(text)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "quickstart:", err)
	os.Exit(1)
}

var (
	block   = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```\n")
	file    = regexp.MustCompile("Write this into `([a-z.]+)`:\n\n$")
	install = regexp.MustCompile(`(?m)^kubectl apply --server-side -k "https://.*$`)
	similar = regexp.MustCompile(`similar to this:\n\n$`)
)

// script returns the commands of the page. After a block of commands, a block of output has the lines that the commands
// have to print, unless it is only similar.
func script(page string) (string, error) {
	var all strings.Builder
	all.WriteString(`set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
directory="$(mktemp -d)"
trap 'rm -rf "$directory"' EXIT

# expect fails unless the file of the last output has a line.
expect() {
  grep -qxF -- "$1" "$directory/output" || { echo "the output lacks the line: $1" >&2; exit 1; }
}
`)
	commands, installed, rest := 0, false, page
	for {
		at := block.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		prose, language, text := rest[:at[0]], rest[at[2]:at[3]], rest[at[4]:at[5]]
		rest = rest[at[1]:]
		switch language {
		case "yaml":
			name := file.FindStringSubmatch(prose)
			if name == nil {
				return "", fmt.Errorf("the page doesn't say to which file this belongs:\n%s", text)
			}
			fmt.Fprintf(&all, "\ncat > \"$directory/%s\" <<'EOF'\n%sEOF\n", name[1], text)
		case "shell":
			commands++
			if install.MatchString(text) {
				installed, text = true, install.ReplaceAllString(text, "make deploy-as-generated")
			}
			var kept strings.Builder
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "kind ") {
					kept.WriteString(strings.ReplaceAll(line, " -f cache.yaml", ` -f "$directory/cache.yaml"`))
				}
			}
			if kept.Len() > 0 {
				fmt.Fprintf(&all, "\n{\n%s} </dev/null | tr -d '\\r' | tee \"$directory/output\"\n", kept.String())
			}
		case "console":
			if similar.MatchString(prose) {
				continue
			}
			for line := range strings.Lines(text) {
				fmt.Fprintf(&all, "expect '%s'\n", strings.TrimSuffix(line, "\n"))
			}
		default:
			return "", fmt.Errorf("the page has a block of %s, which the script can't run", language)
		}
	}
	if commands < 5 || !installed {
		return "", fmt.Errorf("the page has %d blocks of commands, and installs the operator: %t", commands, installed)
	}
	return all.String(), nil
}
