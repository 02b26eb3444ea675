package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// apiAddress is where the API server listens.
func apiAddress() string { return net.JoinHostPort(firstNode.Addr, "6443") }

// api asks the cluster's API server as its administrator. The few requests
// here do not need a client library.
type api struct{ client *http.Client }

func (d dirs) api() (api, error) {
	pki := d.pki()
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return api{}, err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return api{}, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return api{client: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}},
	}}, nil
}

var errNotFound = errors.New("not found")

// do sends a request without a body and decodes the JSON answer into v, unless
// v is nil.
func (a api) do(method, path string, v any) error {
	return a.send(method, path, "", nil, v)
}

// apply makes an object what the JSON says, whoever changed it.
func (a api) apply(path, object string) error {
	return a.send(http.MethodPatch, path+"?fieldManager=cluster&force=true", "application/apply-patch+yaml", strings.NewReader(object), nil)
}

func (a api) send(method, path, contentType string, content io.Reader, v any) error {
	req, err := http.NewRequest(method, "https://"+apiAddress()+path, content)
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, errNotFound)
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, lastLines(string(body), 5))
	case v == nil:
		return nil
	}
	return json.Unmarshal(body, v)
}

// apiNode is what is read of a Node object.
type apiNode struct {
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct {
			Type, Status, Message string
			LastHeartbeatTime     time.Time
		}
	}
}

// notReady says why a node is not ready, "" when it is. What its kubelet
// reported before since does not count: a node that comes back is still called
// ready from its earlier life.
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

// apiDeployment is what is read of a Deployment.
type apiDeployment struct {
	Metadata struct{ Generation int64 }
	Spec     struct {
		Replicas int
		Template struct {
			Spec struct{ Containers []struct{ Image string } }
		}
	}
	Status struct {
		ObservedGeneration                           int64
		Replicas, UpdatedReplicas, AvailableReplicas int
	}
}

// notAvailable says why a deployment is not all there, "" when it is.
func (d apiDeployment) notAvailable() string {
	switch s := d.Status; {
	case s.ObservedGeneration < d.Metadata.Generation:
		return "not available: what it should be changed just now"
	case s.UpdatedReplicas < d.Spec.Replicas || s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("not available: %d of %d pods are as they should be, of %d in all", s.UpdatedReplicas, d.Spec.Replicas, s.Replicas)
	case s.AvailableReplicas < d.Spec.Replicas:
		return fmt.Sprintf("not available: %d of %d pods are", s.AvailableReplicas, d.Spec.Replicas)
	}
	return ""
}

// runs says whether all containers of a deployment have an image.
func (d apiDeployment) runs(image string) bool {
	containers := d.Spec.Template.Spec.Containers
	return !slices.ContainsFunc(containers, func(c struct{ Image string }) bool { return c.Image != image })
}

// waitReady waits for the API server as long as alive finds the node running.
func (a api) waitReady(alive func() error) error {
	return waitFor(2*time.Minute, func() error {
		if err := alive(); err != nil {
			return err
		}
		return a.do(http.MethodGet, "/readyz", nil)
	})
}

// waitNode waits until a node that was started at since is ready.
func (a api) waitNode(name string, since time.Time) error {
	return waitFor(2*time.Minute, func() error {
		var n apiNode
		if err := a.do(http.MethodGet, "/api/v1/nodes/"+name, &n); err != nil {
			return err
		}
		if why := n.notReady(since); why != "" {
			return errors.New(name + " is " + why)
		}
		return nil
	})
}

// waitAdmission waits for what the first pod needs: pods are refused until
// their namespace has its service account.
func (a api) waitAdmission() error {
	return waitFor(time.Minute, func() error {
		return a.do(http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
}

// waitServes waits until objects of these resources can be written: they are
// served a moment after they were defined.
func (a api) waitServes(group string, resources ...string) error {
	return waitFor(30*time.Second, func() error {
		var served struct{ Resources []struct{ Name string } }
		if err := a.do(http.MethodGet, "/apis/"+group, &served); err != nil {
			return err
		}
		for _, want := range resources {
			if !slices.ContainsFunc(served.Resources, func(r struct{ Name string }) bool { return r.Name == want }) {
				return errors.New("the API server does not serve " + want)
			}
		}
		return nil
	})
}

// deleteNode deletes a Node object, if there is one.
func (a api) deleteNode(name string) error {
	err := a.do(http.MethodDelete, "/api/v1/nodes/"+name, nil)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// forgetWorkers deletes the Node objects of workers. They are of an earlier run
// of the cluster, whose workers ended with it.
func (a api) forgetWorkers() error {
	for _, n := range allNodes()[1:] {
		if err := a.deleteNode(n.Name); err != nil {
			return err
		}
	}
	return nil
}

func (a api) nodes() ([]apiNode, error) {
	var list struct{ Items []apiNode }
	err := a.do(http.MethodGet, "/api/v1/nodes", &list)
	return list.Items, err
}
