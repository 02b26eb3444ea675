// Package must ends a test when something fails that it doesn't test.
package must

import (
	"os"
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
