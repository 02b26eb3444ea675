package apiserver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// The controller has the operator's permissions, which are enough for the objects of prometheus-operator. A field of the operator's that
// another manager changes is reverted, and a label of the other one stays.
func TestMonitoringObjectsAreAppliedToCRDsOfPrometheusOperator(t *testing.T) {
	t.Parallel()
	team, operator := newTransfers(t), newTransfers(t)
	folder := os.Getenv("PROMETHEUS_CRDS")
	if folder == "" {
		t.Fatal(`PROMETHEUS_CRDS is not set, so there are no CRDs of prometheus-operator: run make test-apiserver, or eval "$(make -s env)" first`)
	}
	install := envtest.CRDInstallOptions{ErrorIfPathMissing: true, MaxTime: 10 * time.Minute}
	for _, name := range []string{"podmonitors", "prometheusrules", "servicemonitors"} {
		install.Paths = append(install.Paths, filepath.Join(folder, "monitoring.coreos.com_"+name+".yaml"))
	}
	_, err := envtest.InstallCRDs(server.Admin, install)
	team.Must(err)
	raw, err := os.ReadFile("../../config/rbac/monitoring_role.yaml")
	team.Must(err)
	var role rbacv1.Role
	team.Must(yaml.UnmarshalStrict(raw, &role))
	role.Namespace = operator.Namespace
	team.Must(errors.Join(admin.Create(t.Context(), &role), admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: "monitoring"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: operatorUser}},
	})))
	mgr, err := ctrl.NewManager(rest.CopyConfig(server.Operator), ctrl.Options{Scheme: simtest.Scheme(), Cache: cache.Options(team.Namespace),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)}})
	team.Must(err)
	o := monitoring.Options{OperatorNamespace: operator.Namespace, DashboardNamespace: operator.Namespace, Interval: "15s"}
	team.Must(monitoring.SetupWithManager(mgr, o, []string{team.Namespace}))
	start(t, mgr)
	object := func(version, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
		return u
	}
	exists := func(in *transfers, o *unstructured.Unstructured, name string, want bool) {
		t.Helper()
		in.eventually(o.GetKind()+" "+name, o, name, func() bool { return (o.GetName() != "") == want })
	}
	const version = "monitoring.coreos.com/v1"
	monitor, rule := object(version, "PodMonitor"), object(version, "PrometheusRule")
	team.Must(team.create("Memcached", "a", "{}"))
	exists(team, monitor, "memcached-shards", true)
	exists(team, rule, "memcached-shards", true)
	exists(operator, object(version, "ServiceMonitor"), "memcached-operator", true)
	exists(operator, object(version, "PrometheusRule"), "memcached-operator", true)
	exists(operator, object("v1", "ConfigMap"), "memcached-operator-dashboard-fleet", true)

	edited := monitor.DeepCopy()
	team.Must(unstructured.SetNestedStringMap(edited.Object, map[string]string{"app": "none"}, "spec", "selector", "matchLabels"))
	labels := edited.GetLabels()
	labels["theirs"] = "stays"
	edited.SetLabels(labels)
	team.Must(admin.Update(t.Context(), edited))
	team.eventually("the selector is restored", monitor, "memcached-shards", func() bool {
		labels, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		return labels[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue
	})
	if monitor.GetLabels()["theirs"] != "stays" {
		t.Error("the label of another manager was deleted")
	}
	uid := rule.GetUID()
	team.Must(admin.Delete(t.Context(), rule))
	team.eventually("a deleted PrometheusRule is recreated", rule, "memcached-shards", func() bool { return rule.GetName() != "" && rule.GetUID() != uid })
	team.Must(admin.Delete(t.Context(), &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: "a"}}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	exists(team, monitor, "memcached-shards", false)
	exists(team, rule, "memcached-shards", false)
}
