// Package quickstart tests quickstart.awk.
package quickstart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stub records its call and prints what the page says.
const stub = `#!/bin/sh
echo "${0##*/} $*" >> "$CALLS"
case "$*" in
*"set greeting"*) printf 'VALUE greeting-1000 0 5\r\nhello\r\nEND\r\n' ;;
*"get greeting"*) printf '%s\r\n' "$ITEMS" ;;
*"status.shards"*) printf 'Warm: 1000 of 1000 items' ;;
esac
`

// run runs the script of the page with programs that only print, and returns their calls.
func run(t *testing.T, items string) (calls []string, err error) {
	t.Helper()
	text, err := exec.Command("../quickstart.awk", "../../docs/quickstart.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for _, name := range []string{"kubectl", "make", "kind"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(directory, "calls")
	cmd := exec.Command("bash")
	cmd.Stdin = bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"), "CALLS="+record, "ITEMS="+items)
	output, err := cmd.CombinedOutput()
	t.Logf("%s", output)
	content, readErr := os.ReadFile(record)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n"), err
}

func TestScriptRunsTheCommandsOfThePage(t *testing.T) {
	calls, err := run(t, "1000")
	if err != nil {
		t.Fatal(err)
	}
	has := func(begin string) bool {
		return slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, begin) })
	}
	for _, begin := range []string{"make deploy", "kubectl apply -f /", "kubectl wait memcached cache", "kubectl patch memcached cache", "kubectl delete memcached cache"} {
		if !has(begin) {
			t.Errorf("the script doesn't call %q", begin)
		}
	}
	if has("kind") || has("kubectl apply --server-side") {
		t.Errorf("the script calls %q", calls)
	}
}

func TestScriptFailsWhenAnItemIsLost(t *testing.T) {
	if calls, err := run(t, "999"); err == nil || strings.HasPrefix(calls[len(calls)-1], "kubectl delete") {
		t.Errorf("error %v after %q", err, calls)
	}
}
