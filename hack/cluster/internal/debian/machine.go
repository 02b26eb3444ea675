package debian

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// Machine is what Debian calls an architecture: its linker and its folder of libraries.
type Machine struct{ Linker, Triplet string }

// Machines are those for which there are packages, by Go's name.
var Machines = map[string]Machine{
	"amd64": {Linker: "lib64/ld-linux-x86-64.so.2", Triplet: "x86_64-linux-gnu"},
	"arm64": {Linker: "lib/ld-linux-aarch64.so.1", Triplet: "aarch64-linux-gnu"},
}

// Command returns a command in another root, with that root's own linker and libraries.
func (m Machine) Command(root string, args ...string) *exec.Cmd {
	linker := filepath.Join(root, m.Linker)
	libraries := []string{filepath.Join(root, "usr/lib", m.Triplet), filepath.Join(root, "lib", m.Triplet)}
	for _, dir := range libraries {
		// In packages the usual place is a link, which may lead to this machine's linker.
		if unpacked := filepath.Join(dir, filepath.Base(m.Linker)); host.Exists(unpacked) {
			linker = unpacked
		}
	}
	words := []string{"--library-path", strings.Join(libraries, ":")}
	return exec.Command(linker, append(words, args...)...)
}

// Wrapper returns a script that execs the program, so that process ID and signals are the program's.
func Wrapper(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return "#!/bin/sh\nexec " + strings.Join(quoted, " ") + " \"$@\"\n"
}
