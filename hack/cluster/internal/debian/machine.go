package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// machine is what Debian calls an architecture: its linker and its folder of libraries.
type machine struct{ linker, triplet string }

// machines are those for which there are packages, by Go's name.
var machines = map[string]machine{
	"amd64": {linker: "ld-linux-x86-64.so.2", triplet: "x86_64-linux-gnu"},
	"arm64": {linker: "ld-linux-aarch64.so.1", triplet: "aarch64-linux-gnu"},
}

// Command returns the words that run a program in a root, with that root's own linker and libraries.
func Command(root, program string) []string {
	m := machines[runtime.GOARCH]
	libraries := []string{filepath.Join(root, "usr/lib", m.triplet), filepath.Join(root, "lib", m.triplet)}
	linker := filepath.Join(libraries[0], m.linker)
	if !host.Exists(linker) { // before Debian 13
		linker = filepath.Join(libraries[1], m.linker)
	}
	return []string{linker, "--library-path", strings.Join(libraries, ":"), filepath.Join(root, program)}
}

// Install writes a script that execs words, so that process ID and signals are the program's, into a folder that is
// renamed to final. It runs them with more words before, and returns what they print.
func Install(dir, final, name string, words []string, trial ...string) (string, error) {
	out, err := host.Output(exec.Command(words[0], append(words[1:], trial...)...))
	if err != nil {
		return "", err
	}
	script := "#!/bin/sh\nexec"
	for _, word := range words {
		script += " '" + strings.ReplaceAll(strings.ReplaceAll(word, dir, final), "'", `'\''`) + "'"
	}
	return out, os.WriteFile(filepath.Join(dir, name), []byte(script+" \"$@\"\n"), 0o755)
}
