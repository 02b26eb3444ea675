package main

import (
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// apiAddress is where the API server listens.
func apiAddress() string { return net.JoinHostPort(firstNode.Addr, "6443") }

// kubectl runs the kubectl of the running cluster, which may be older than the checkout, as its administrator.
func (d dirs) kubectl(stdin string, args ...string) (string, error) {
	s, err := readSpec(filepath.Join(d.etc, firstNode.Name, "node.json"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(s.Kubernetes, "kubectl"), append([]string{"--kubeconfig=" + d.kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

// apply applies a file, a folder of them, or "-", which is the given text. It retries for as long as a new CRD takes
// to be served.
func (d dirs) apply(file, text string) error {
	return waitFor(30*time.Second, func() error {
		_, err := d.kubectl(text, "apply", "--server-side", "--force-conflicts", "--field-manager=cluster", "-f", file)
		return err
	})
}

// storageClass makes kube-controller-manager create folders as volumes for claims, and delete them with the claims.
const storageClass = `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
	"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
	"provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}`

// waitReady waits for the API server as long as alive returns no error.
func (d dirs) waitReady(alive func() error) error {
	return waitFor(2*time.Minute, func() error {
		if err := alive(); err != nil {
			return err
		}
		connection, err := net.DialTimeout("tcp", apiAddress(), time.Second) // costs less than kubectl
		if err != nil {
			return err
		}
		_ = connection.Close()
		_, err = d.kubectl("", "get", "--raw=/readyz", "--request-timeout=5s")
		return err
	})
}

// apiNode is a part of a Node object.
type apiNode struct {
	Status struct {
		Conditions []struct {
			Type, Status, Message string
			LastHeartbeatTime     time.Time
		}
	}
}

// notReady returns why a node is not ready, "" when it is. Reports of its kubelet from before since don't count: the
// condition of a node that comes back is still true.
func (n apiNode) notReady(since time.Time) string {
	for _, c := range n.Status.Conditions {
		if c.Type != "Ready" || c.LastHeartbeatTime.Before(since.Truncate(time.Second)) {
			continue
		}
		if c.Status == "True" {
			return ""
		}
		return strings.TrimSpace("not ready: " + c.Message)
	}
	return "not ready: kubelet has not reported yet"
}

// waitNode waits until a node that was started at since is ready.
func (d dirs) waitNode(name string, since time.Time) error {
	return waitFor(2*time.Minute, func() error {
		content, err := d.kubectl("", "get", "node", name, "-o", "json")
		if err != nil {
			return err
		}
		var n apiNode
		if err := json.Unmarshal([]byte(content), &n); err != nil {
			return err
		}
		if why := n.notReady(since); why != "" {
			return errors.New(name + " is " + why)
		}
		return nil
	})
}

// waitAdmission waits until pods are admitted, which needs the service account of their namespace.
func (d dirs) waitAdmission() error {
	return waitFor(time.Minute, func() error {
		_, err := d.kubectl("", "--namespace=default", "get", "serviceaccount", "default")
		return err
	})
}

// deleteNodes deletes Node objects, if they exist.
func (d dirs) deleteNodes(nodes ...node) error {
	args := []string{"delete", "node", "--ignore-not-found"}
	for _, n := range nodes {
		args = append(args, n.Name)
	}
	_, err := d.kubectl("", args...)
	return err
}
