package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Build builds the operator from this checkout with the flags of its image, and returns the path.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w: %s", err, out)
	}
	return program, nil
}

// Environment returns the environment variables of the operator's Deployment as name=value, with references to the pod's
// namespace and the memory limit resolved.
func Environment(d *appsv1.Deployment) ([]string, error) {
	var all []string
	container := d.Spec.Template.Spec.Containers[0]
	for _, e := range container.Env {
		value := e.Value
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			value = d.Namespace
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		default:
			return nil, fmt.Errorf("the operator's Deployment has %s by a reference that is not supported here", e.Name)
		}
		all = append(all, e.Name+"="+value)
	}
	return all, nil
}

// Options are how the operator is run.
type Options struct {
	Program string
	// Environment of the program as name=value.
	Environment []string
	// Namespace that the operator watches.
	Namespace string
	// Dir is an empty folder for log and kubeconfig.
	Dir string
}

// Operator runs until Stop.
type Operator struct {
	Options
	proxy *httptest.Server
	log   *os.File

	lock    sync.Mutex
	life    *life
	stopped bool
	// err is why it does not run.
	err error

	notes  bool
	last   Write
	writes []Write
	counts map[string]int
	killed bool
}

// life is one process of the operator.
type life struct {
	process *os.Process
	stopped chan struct{}
}

// Start starts an operator for the cluster of cluster.Config.
func Start(o Options) (*Operator, error) {
	config, err := cluster.Config()
	if err != nil {
		return nil, err
	}
	config.Impersonate.UserName = "system:serviceaccount:" + cluster.OperatorNamespace + ":" + cluster.OperatorAccount
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	operator := &Operator{Options: o, counts: map[string]int{}}
	if operator.log, err = os.Create(filepath.Join(o.Dir, "log")); err != nil {
		return nil, err
	}
	operator.proxy = operator.serve(upstream, transport)
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: operator.proxy.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, operator.kubeconfig())
	if err == nil {
		err = operator.start()
	}
	if err != nil {
		operator.proxy.Close()
		return nil, errors.Join(err, operator.log.Close())
	}
	return operator, nil
}

func (o *Operator) kubeconfig() string { return filepath.Join(o.Dir, "kubeconfig") }

func (o *Operator) serve(upstream *url.URL, transport http.RoundTripper) *httptest.Server {
	silent := log.New(io.Discard, "", 0) // the requests of a killed program fail
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     &noter{o, transport},
		FlushInterval: -1, // watches need each event at once
		ErrorLog:      silent,
	})
	proxy.Config.ErrorLog = silent
	proxy.Start()
	return proxy
}

func (o *Operator) start() error {
	cmd := exec.Command(o.Program, "--health-probe-bind-address=0", "--zap-time-encoding=iso8601")
	cmd.Dir = o.Dir
	cmd.Env = slices.Concat(o.Environment, []string{
		"KUBECONFIG=" + o.kubeconfig(), "WATCH_NAMESPACE=" + o.Namespace, "HOME=" + o.Dir, "USER=operator",
	})
	cmd.Stdout, cmd.Stderr = o.log, o.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	l := &life{cmd.Process, make(chan struct{})}
	o.life = l
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(l.stopped)
		o.lock.Lock()
		defer o.lock.Unlock()
		if o.life == l && !o.stopped {
			o.err = fmt.Errorf("the operator exited: %s", cmd.ProcessState)
		}
	}()
	return nil
}

func (l *life) kill() error {
	if err := l.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the operator: %w", err)
	}
	<-l.stopped
	return nil
}

// Note records writes from now on. It kills and restarts the operator once, after last, unless last is zero.
func (o *Operator) Note(last Write) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.notes, o.last = true, last
}

// Noted returns the recorded writes, including those after the kill, and whether the operator was killed. The error says
// why it does not run.
func (o *Operator) Noted() (writes []Write, killed bool, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	return slices.Clone(o.writes), o.killed, o.err
}

// Log returns the logs of all processes, with the recorded writes.
func (o *Operator) Log() string {
	text, err := os.ReadFile(o.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop stops the operator.
func (o *Operator) Stop() error {
	o.lock.Lock()
	o.stopped = true
	err := o.life.kill()
	o.lock.Unlock()
	o.proxy.CloseClientConnections()
	o.proxy.Close()
	return errors.Join(err, o.log.Close())
}

// noter forwards the operator's requests and records writes.
type noter struct {
	*Operator
	next http.RoundTripper
}

var errKilled = errors.New("the operator was killed")

func (n *noter) RoundTrip(request *http.Request) (*http.Response, error) {
	what, err := whatOf(request)
	if err != nil {
		return nil, err
	}
	response, err := n.next.RoundTrip(request)
	if err != nil || what == "" || response.StatusCode >= http.StatusMultipleChoices {
		return response, err // nothing was written
	}
	if n.wrote(what) {
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, nil
}

// wrote records a write and kills the operator if it is the last one.
func (o *Operator) wrote(what string) (killed bool) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if !o.notes || o.stopped {
		return false
	}
	o.counts[what]++
	w := Write{what, o.counts[what]}
	o.writes = append(o.writes, w)
	fmt.Fprintf(o.log, "%s write %d: %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), len(o.writes), w)
	if o.killed || w != o.last {
		return false
	}
	o.killed = true
	fmt.Fprintln(o.log, "the operator is killed")
	if o.err = o.life.kill(); o.err == nil {
		o.err = o.start()
	}
	return true
}
