package scale

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestEnvironmentIsThatOfTheContainer(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	d := &appsv1.Deployment{}
	d.Namespace = "system"
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
		Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
			{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}}},
	}}
	if got, err := environmentOf(d); err != nil || !slices.Equal(got, []string{"A=b", "NAMESPACE=system", "LIMIT=268435456"}) {
		t.Errorf("%q, %v", got, err)
	}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NODE", ValueFrom: field("spec.nodeName")}}
	if got, err := environmentOf(d); err == nil {
		t.Errorf("an unsupported reference: got %q", got)
	}
}
