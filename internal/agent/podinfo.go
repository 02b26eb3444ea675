package agent

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

type podInfo struct {
	generation, arguments, protection, restart, stop, scaling string
}

// readPodInfo reads a downward-API volume if its content is another generation than that of former, which it returns
// otherwise. An empty file is an absent annotation.
func readPodInfo(dir string, former podInfo) (podInfo, error) {
	var info podInfo
	err := files.ReadGeneration(dir, func(dir string) error {
		info = podInfo{generation: filepath.Base(dir)}
		if info.generation == former.generation {
			info = former
			return nil
		}
		for name, to := range map[string]*string{
			wire.StopFile: &info.stop, wire.ArgumentsFile: &info.arguments, wire.ProtectionFile: &info.protection, wire.RestartFile: &info.restart,
			wire.ScalingFile: &info.scaling,
		} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil && !(name == wire.ScalingFile && os.IsNotExist(err)) { // pods of release 1.0.0 don't have it
				return err
			}
			*to = strings.TrimSpace(string(text))
		}
		return nil
	})
	return info, err
}

// desired returns the arguments of the annotation. The error says why a memcached that served clients with former ones
// must not run with them.
func (i podInfo) desired(former []string) ([]string, error) {
	words, err := cmdline.Parse(i.arguments)
	if err != nil {
		return nil, err
	}
	return words, cmdline.Unprotected(former, words, wire.ParseProtections(i.protection))
}

// announcedTimeout bounds the wait for announced arguments. The kubelet starts a
// container before it updates their file, which takes some 100 ms.
const announcedTimeout = 2 * time.Second

// awaitAnnouncedArguments reads a downward-API volume once it contains the arguments
// that the token of the last stop announced. This saves a start with the previous
// arguments and a restart with these.
func awaitAnnouncedArguments(dir, token string) (podInfo, error) {
	for deadline := time.Now().Add(announcedTimeout); ; time.Sleep(20 * time.Millisecond) {
		info, err := readPodInfo(dir, podInfo{})
		if err != nil || wire.AnnouncedArguments(token, info.arguments) || time.Now().After(deadline) {
			return info, err
		}
	}
}
