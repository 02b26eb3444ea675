// Package inpod runs a program in a pod of the cluster, where it reaches Services and pods whatever the network between
// the cluster and this machine is.
package inpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// account is the ServiceAccount of the pods, which may do everything.
	account     = "memcached-operator-tests"
	container   = "program"
	exitTimeout = 10 * time.Second
)

// Program is what runs in a pod.
type Program struct {
	Image   string
	Command []string
	// Environment has values by variable.
	Environment map[string]string
	// Output gets what the program writes, while it runs.
	Output io.Writer
}

// Run runs a program and deletes its pod. It returns an error unless the program exits with 0.
//
// The pod is in the operator's namespace, whose pods AdmitClients admits to shards and agents.
func Run(ctx context.Context, c *cluster.Cluster, p Program) (err error) {
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.OperatorNamespace, Name: account}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.OperatorNamespace, Name: account}},
		},
		p.pod(),
	}
	defer func() {
		for _, o := range objects {
			err = errors.Join(err, client.IgnoreNotFound(c.Delete(context.WithoutCancel(ctx), o)))
		}
	}()
	pod := objects[2].(*corev1.Pod)
	for _, o := range objects {
		// a run that was interrupted may have left the first two
		if err := c.Create(ctx, o); err != nil && (o == pod || !apierrors.IsAlreadyExists(err)) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	if err := p.started(ctx, c, pod); err != nil {
		return err
	}
	return p.follow(ctx, c, pod)
}

// started waits until the program has started.
func (p Program) started(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) error {
	return cluster.Eventually(ctx, "the start of pod "+pod.Name, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, s := range pod.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && strings.HasPrefix(w.Reason, "ErrImage") || w != nil && w.Reason == "ImagePullBackOff" {
				return fmt.Errorf("the nodes cannot pull image %s: set LOAD to kind, k3d or push, so that make loads it: %s", p.Image, w.Message)
			}
		}
		if pod.Status.Phase == corev1.PodPending {
			return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.Conditions)
		}
		return nil
	})
}

// follow copies the program's output until it exits.
func (p Program) follow(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) error {
	options := &corev1.PodLogOptions{Container: container, Follow: true}
	var exited *corev1.ContainerStateTerminated
	// The API server may close a stream before the program exits. What follows is read after the program has exited.
	for copied := int64(0); ; exited = p.exited(ctx, c, pod) {
		stream, err := c.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		if err != nil {
			return fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
		}
		if _, err = io.CopyN(io.Discard, stream, copied); err == nil {
			var n int64
			n, err = io.Copy(p.Output, stream)
			copied += n
		}
		_ = stream.Close()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case exited == nil:
		case exited.ExitCode != 0:
			return fmt.Errorf("%s exited with %d in pod %s: %s", p.Command[0], exited.ExitCode, pod.Name, exited.Reason)
		default:
			return err
		}
	}
}

// exited returns how the program exited, or nil while it runs.
func (p Program) exited(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) *corev1.ContainerStateTerminated {
	var state *corev1.ContainerStateTerminated
	ctx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	_ = cluster.Eventually(ctx, "its exit", func(ctx context.Context) error { // the kubelet reports it a moment later
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, s := range pod.Status.ContainerStatuses {
			if state = s.State.Terminated; state != nil {
				return nil
			}
		}
		return errors.New("it runs")
	})
	return state
}

func (p Program) pod() *corev1.Pod {
	var environment []corev1.EnvVar
	for name, value := range p.Environment {
		environment = append(environment, corev1.EnvVar{Name: name, Value: value})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.OperatorNamespace, GenerateName: "tests-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            account,
			TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: container, Image: p.Image, Command: p.Command, Env: environment,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
				// More than the pods that it tests, or it would take its own pauses for theirs.
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}},
			}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}
