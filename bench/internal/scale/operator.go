package scale

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// metricsReader is a ServiceAccount that reads the operator's metrics.
const metricsReader = "metrics-reader"

// Operator runs the operator's program as its Deployment does, with the token of its ServiceAccount.
type Operator struct {
	dir, program string
	args         []string
	// Environment of the next start, as name=value.
	Environment []string
	// Limit of the memory in bytes. The program knows it, and nothing enforces it.
	Limit   int64
	Metrics *Metrics
	// Process is nil while it does not run.
	Process *Process
}

// ServedByDefault is the number of Memcacheds for which the memory limit in the operator's Deployment is sufficient.
// docs/install.md recommends the same for each further ServedByDefault.
const ServedByDefault = 1000

// install creates the objects of config/default except for the Deployment, whose container it runs as a process
// with the memory limit for size Memcacheds.
func install(ctx context.Context, c *cluster.Cluster, config *rest.Config, dir, program string, size int) (*Operator, error) {
	objects, err := cluster.Render(ctx, "config/default")
	if err != nil {
		return nil, err
	}
	o := &Operator{dir: dir, program: program}
	var deployment *appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			deployment = &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				return nil, fmt.Errorf("reading the operator's Deployment: %w", err)
			}
			continue
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bench")); err != nil {
			return nil, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if deployment == nil {
		return nil, errors.New("config/default has no Deployment")
	}
	if err := o.read(deployment, size); err != nil {
		return nil, err
	}
	token, err := tokenOf(ctx, c, cluster.OperatorAccount)
	if err != nil {
		return nil, err
	}
	if err := writeKubeconfig(o.kubeconfig(), config, token); err != nil {
		return nil, err
	}
	return o, o.allowMetrics(ctx, c)
}

func (o *Operator) kubeconfig() string { return filepath.Join(o.dir, "operator.conf") }

// read reads arguments, environment and memory limit of the Deployment. The addresses are replaced by free ones of this
// machine.
func (o *Operator) read(d *appsv1.Deployment, size int) error {
	container := d.Spec.Template.Spec.Containers[0]
	o.Limit = container.Resources.Limits.Memory().Value() * int64(max(1, (size+ServedByDefault-1)/ServedByDefault))
	for _, arg := range container.Args {
		name, _, _ := strings.Cut(arg, "=")
		// It is alone, and on a busy machine it would lose the lease and exit, after which no kubelet restarts it.
		if name != "--metrics-bind-address" && name != "--health-probe-bind-address" && name != "--leader-elect" {
			o.args = append(o.args, arg)
		}
	}
	addresses, err := freeAddresses(2)
	if err != nil {
		return err
	}
	o.Metrics = newMetrics("https://" + addresses[0] + "/metrics")
	o.args = append(o.args, "--metrics-bind-address="+addresses[0], "--health-probe-bind-address="+addresses[1])
	container.Resources.Limits[corev1.ResourceMemory] = *resource.NewQuantity(o.Limit, resource.BinarySI)
	o.Environment, err = environmentOf(d)
	return err
}

// CommandLine returns the names of the operator's flags and its settings of the Go runtime.
func (o *Operator) CommandLine() string {
	var words []string
	for _, e := range o.Environment {
		if strings.HasPrefix(e, "GO") {
			words = append(words, e)
		}
	}
	for _, arg := range o.args {
		name, _, _ := strings.Cut(arg, "=")
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

func tokenOf(ctx context.Context, c *cluster.Cluster, account string) (string, error) {
	day := int64(24 * 60 * 60)
	token, err := c.Set.CoreV1().ServiceAccounts(cluster.OperatorNamespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a token of %s: %w", account, err)
	}
	return token.Status.Token, nil
}

// allowMetrics creates a ServiceAccount that may read the operator's metrics.
func (o *Operator) allowMetrics(ctx context.Context, c *cluster.Cluster) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: metricsReader, Namespace: cluster.OperatorNamespace}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: metricsReader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: metricsReader, Namespace: cluster.OperatorNamespace}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s: %w", object.GetName(), err)
		}
	}
	var err error
	o.Metrics.token, err = tokenOf(ctx, c, metricsReader)
	return err
}

// writeKubeconfig writes a kubeconfig with a token.
func writeKubeconfig(path string, config *rest.Config, token string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bench": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		CurrentContext: "bench",
	}, path)
}

// Start starts the operator and waits until it serves its metrics.
func (o *Operator) Start(ctx context.Context) error {
	var err error
	if o.Process, err = start(o.dir, slices.Concat(o.Environment, []string{"KUBECONFIG=" + o.kubeconfig()}), o.program, o.args...); err != nil {
		return err
	}
	return cluster.Eventually(ctx, "the start of the operator", func(ctx context.Context) error {
		if err := o.Process.Runs(); err != nil {
			return err
		}
		_, err := o.Metrics.Read(ctx)
		return err
	})
}

// Stop stops the operator if it runs.
func (o *Operator) Stop() {
	o.Process.stop()
	o.Process = nil
}

// logFile is the log of all processes of the operator.
func (o *Operator) logFile() string {
	return filepath.Join(o.dir, filepath.Base(o.program)+".log")
}

// freeAddresses returns addresses of this machine on which no program listens.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
