package main

import (
	"os"
	"path/filepath"
	"strings"
)

// boundDirs are folders that Kubernetes and containerd write to. On a node each
// is a folder of the node's own data.
var boundDirs = []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}

// volumesDir is where kube-controller-manager makes volumes for claims. It is the
// same folder on all nodes, of the control plane's data, so that a claim is not
// bound to a node; the path is Kubernetes' own.
const volumesDir = "/tmp/hostpath_pv"

// hostDirsFile lists the folders that makeHostDirs made.
func (d dirs) hostDirsFile() string { return filepath.Join(d.cluster, "host-folders") }

// makeHostDirs makes the places of boundDirs and volumesDir where this machine has
// none. They stay empty here.
func (d dirs) makeHostDirs() error {
	f, err := os.OpenFile(d.hostDirsFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, dir := range append(boundDirs, volumesDir) {
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
