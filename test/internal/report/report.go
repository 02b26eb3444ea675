// Package report tells what a benchmark measured: numbers for people, a document of
// the project and the picture in it.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Number writes a whole number with its thousands apart.
func Number[N int | int64 | float64](n N) string {
	text := strconv.FormatFloat(float64(n), 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if text == "0" {
		return text
	}
	return sign + text
}

// Seconds writes a time in whole seconds.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

// Milliseconds writes a time with so many decimals.
func Milliseconds(d time.Duration, decimals int) string {
	return fmt.Sprintf("%.*f ms", decimals, float64(d)/float64(time.Millisecond))
}

// MiB is a number of bytes in mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// Mebibytes writes a number of bytes in whole mebibytes.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", MiB(bytes)) }

// Command is how a person has a benchmark measured with those arguments.
func Command(target string, args []string) string {
	if len(args) == 0 {
		return "make " + target
	}
	return fmt.Sprintf("make %s ARGS='%s'", target, strings.Join(args, " "))
}

// Folder returns the folder that a person named, relative to the project's; empty is
// none.
func Folder(named string) (string, error) {
	if named == "" || filepath.IsAbs(named) {
		return named, nil
	}
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, named), nil
}

// Write writes files, by name, into a folder.
func Write(folder string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { //nolint:gosec // files of the repository
			return fmt.Errorf("writing what was measured: %w", err)
		}
	}
	return nil
}
