package main

import (
	"os"
	"path/filepath"
	"strings"
)

// boundDirs are folders that Kubernetes and containerd write to. On a node each
// is a folder of the node's own data.
var boundDirs = []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}

// hostDirsFile lists the folders that makeHostDirs made.
func (d dirs) hostDirsFile() string { return filepath.Join(d.cluster, "host-folders") }

// makeHostDirs makes the places of boundDirs where this machine has none. They
// stay empty here.
func (d dirs) makeHostDirs() error {
	f, err := os.OpenFile(d.hostDirsFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, dir := range boundDirs {
		if exists(dir) {
			continue
		}
		if _, err := f.WriteString(dir + "\n"); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// removeHostDirs removes them again, unless something else uses one by now.
func (d dirs) removeHostDirs() error {
	list, err := os.ReadFile(d.hostDirsFile())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for dir := range strings.FieldsSeq(string(list)) {
		_ = os.Remove(dir) // fails when it is not empty
	}
	return os.Remove(d.hostDirsFile())
}
