package s3

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Names of the objects of Deploy.
const (
	Name              = "s3"
	CredentialsSecret = "s3-credentials"
	CASecret          = "s3-ca"

	serverSecret = "s3-server"
	claim        = "s3-data"
	program      = "/s3"
	port         = 9000
)

// Deploy runs the S3 server of an image with TLS in a namespace and returns the store of a prefix of its bucket. Its data is on a
// claim and survives its pod.
func Deploy(ctx context.Context, c *cluster.Cluster, image, namespace, prefix string) (v1beta1.SnapshotStore, error) {
	host := fmt.Sprintf("%s.%s.svc", Name, namespace)
	ca := testcert.NewCA("s3")
	crt, key := ca.Issue(testcert.Options{Names: []string{host}})
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: Name}
	for _, o := range []client.Object{
		secret(CredentialsSecret, map[string][]byte{"AWS_ACCESS_KEY_ID": []byte(AccessKey), "AWS_SECRET_ACCESS_KEY": []byte(SecretKey)}),
		secret(CASecret, map[string][]byte{"ca.crt": ca.PEM()}),
		secret(serverSecret, map[string][]byte{"tls.crt": crt, "tls.key": key}),
		cluster.Claim(metav1.ObjectMeta{Namespace: namespace, Name: claim}, "1Gi"),
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": Name},
			Ports:    []corev1.ServicePort{{Name: "https", Port: port, TargetPort: intstr.FromInt32(port)}},
		}},
		deployment(meta, image),
	} {
		if err := c.Create(ctx, o); err != nil {
			return v1beta1.SnapshotStore{}, fmt.Errorf("creating an S3 server: %w", err)
		}
	}
	return v1beta1.SnapshotStore{S3: &v1beta1.S3Store{
		Bucket: Bucket, Prefix: prefix, Endpoint: fmt.Sprintf("https://%s:%d", host, port),
		CredentialsSecretName: CredentialsSecret, CASecretName: CASecret,
	}}, Available(ctx, c, namespace)
}

// Available waits until the server of a namespace serves.
func Available(ctx context.Context, c *cluster.Cluster, namespace string) error {
	return cluster.Eventually(ctx, "an S3 server", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("%d of %d pods are available, of %d in all", d.Status.AvailableReplicas, *d.Spec.Replicas, d.Status.Replicas)
		}
		return nil
	})
}

func deployment(meta metav1.ObjectMeta, image string) *appsv1.Deployment {
	labels := map[string]string{"app": Name}
	restricted := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	data := corev1.VolumeMount{Name: "data", MountPath: "/data"}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, // two servers must not share a folder
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: ptr.To[int64](65534), RunAsGroup: ptr.To[int64](65534), FSGroup: ptr.To[int64](65534),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{
				Name: "bucket", Image: "docker.io/library/busybox:1",
				Command:         []string{"/bin/busybox", "mkdir", "-p", data.MountPath + "/" + Bucket},
				SecurityContext: restricted, VolumeMounts: []corev1.VolumeMount{data},
			}},
			Containers: []corev1.Container{{
				Name: "server", Image: image,
				Command: append([]string{program}, append(arguments(data.MountPath, fmt.Sprintf(":%d", port)), "--cert", "/tls/tls.crt", "--key", "/tls/tls.key")...),
				Ports:   []corev1.ContainerPort{{ContainerPort: port}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}},
				// rclone reads and writes these folders
				Env:             []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}, {Name: "XDG_CACHE_HOME", Value: "/tmp"}},
				SecurityContext: restricted,
				VolumeMounts:    []corev1.VolumeMount{data, {Name: "tls", MountPath: "/tls", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
				{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: serverSecret}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		}},
	}}
}
