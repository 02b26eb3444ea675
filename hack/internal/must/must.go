// Package must ends a test when something fails that it doesn't test.
package must

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Succeed ends the test unless there is no error.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the content of a file.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	Succeed(t, err)
	return content
}

// Run runs a program in dir and returns what it prints, without the last line break.
func Run(t testing.TB, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, output)
	}
	return strings.TrimRight(string(output), "\n")
}
