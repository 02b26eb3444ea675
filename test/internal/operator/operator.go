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

// Build builds the operator's program from this checkout into a folder, with the
// flags of its image, and returns its path.
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

// Environment returns what the operator's Deployment gives its program, as name=value:
// references to the pod's namespace and to the container's limit of memory are followed.
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
			return nil, fmt.Errorf("the operator's Deployment has %s by a reference that is not known here", e.Name)
		}
		all = append(all, e.Name+"="+value)
	}
	return all, nil
}

// Options of an Operator.
type Options struct {
	// Program is the path of the operator's program.
	Program string
	// Environment is what the program has in the cluster, as name=value.
	Environment []string
	// Namespace that it works in.
	Namespace string
	// Dir is an empty folder for its log and its kubeconfig.
	Dir string
}

// Operator is one that runs until it is stopped.
type Operator struct {
	Options
	proxy *httptest.Server
	log   *os.File

	lock    sync.Mutex
	life    *life
	stopped bool
	// err is why it does not run although it should.
	err error

	notes  bool
	last   Write
	writes []Write
	counts map[string]int
	killed bool
}

// life is the operator from one start to its end.
type life struct {
	process *os.Process
	ended   chan struct{}
}

// Start starts an operator against the cluster that KUBECONFIG names.
func Start(o Options) (*Operator, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	config.Impersonate.UserName = "system:serviceaccount:" + cluster.OperatorNamespace + ":" + cluster.OperatorAccount
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
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

// serve starts the proxy.
func (o *Operator) serve(upstream *url.URL, transport http.RoundTripper) *httptest.Server {
	silent := log.New(io.Discard, "", 0) // the requests of a program that was killed go wrong
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     &noter{o, transport},
		FlushInterval: -1, // what is watched comes at once
		ErrorLog:      silent,
	})
	proxy.Config.ErrorLog = silent
	proxy.Start()
	return proxy
}

// start begins a life.
func (o *Operator) start() error {
	cmd := exec.Command(o.Program, "--health-probe-bind-address=0", "--zap-time-encoding=iso8601")
	cmd.Dir = o.Dir
	cmd.Env = slices.Concat(o.Environment, []string{"KUBECONFIG=" + o.kubeconfig(), "WATCH_NAMESPACE=" + o.Namespace})
	cmd.Stdout, cmd.Stderr = o.log, o.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	l := &life{cmd.Process, make(chan struct{})}
	o.life = l
	go func() {
		_ = cmd.Wait() // its log tells
		close(l.ended)
		o.lock.Lock()
		defer o.lock.Unlock()
		if o.life == l && !o.stopped {
			o.err = fmt.Errorf("the operator ended by itself: %s", cmd.ProcessState)
		}
	}()
	return nil
}

// kill ends a life as it stands.
func (l *life) kill() error {
	if err := l.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the operator: %w", err)
	}
	<-l.ended
	return nil
}

// Note notes writes from now on. The operator is killed, once, after the last of
// them, and started anew; it is not when last is zero.
func (o *Operator) Note(last Write) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.notes, o.last = true, last
}

// Noted returns the writes that were noted, those after a kill too, and whether the
// operator was killed. The error says why it does not run.
func (o *Operator) Noted() (writes []Write, killed bool, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	return slices.Clone(o.writes), o.killed, o.err
}

// Log returns what the operator told in all its lives, with the writes that were
// noted.
func (o *Operator) Log() string {
	text, err := os.ReadFile(o.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the operator for good.
func (o *Operator) Stop() error {
	o.lock.Lock()
	o.stopped = true
	err := o.life.kill()
	o.lock.Unlock()
	o.proxy.CloseClientConnections()
	o.proxy.Close()
	return errors.Join(err, o.log.Close())
}

// noter sends the operator's requests on and notes what they write.
type noter struct {
	*Operator
	next http.RoundTripper
}

// errKilled is an answer that nobody lives to see.
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

// wrote notes a write that was answered, and kills the operator if it is the last.
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
