package main

import (
	"fmt"
	"time"
)

// storageClass is the default one.
const storageClass = "standard"

// applyStorageClass makes claims get a volume: a folder that kube-controller-manager
// makes and, with the claim, deletes. Its size is not bounded.
func (a api) applyStorageClass() error {
	const path = "/apis/storage.k8s.io/v1/storageclasses/" + storageClass
	return waitFor(30*time.Second, func() error {
		return a.apply(path, fmt.Sprintf(`{
			"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
			"metadata": {"name": %q, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
			"provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}`, storageClass))
	})
}
