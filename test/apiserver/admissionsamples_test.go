package apiserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// applyAdmissionSamples creates policies of config/samples/admission, those for this operator's kinds in the
// test's namespace only.
func (env *testEnv) applyAdmissionSamples(files ...string) {
	env.Helper()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../config/samples/admission", file))
		env.Must(err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			env.Must(yaml.Unmarshal([]byte(document), o))
			if o.GetKind() == "ValidatingAdmissionPolicyBinding" && o.GetName() != "reserve-namespace-svc" {
				env.Must(unstructured.SetNestedStringMap(o.Object, map[string]string{corev1.LabelMetadataName: env.Namespace},
					"spec", "matchResources", "namespaceSelector", "matchLabels"))
			}
			env.Must(admin.Create(env.Ctx, o, client.FieldValidation(metav1.FieldValidationStrict)))
			env.Cleanup(func() { _ = admin.Delete(env.Ctx, o) })
		}
	}
}

// rejection waits until the API server rejects an object of a user, and returns the reason. It uses a new policy after a moment.
func (env *testEnv) rejection(user client.Client, o client.Object) (err error) {
	env.Helper()
	env.Must(cluster.Eventually(env.Ctx, "the rejection of "+o.GetName(), func(ctx context.Context) error {
		if err = user.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll); err == nil {
			return errors.New("it is accepted")
		}
		return nil
	}))
	return err
}

func TestAdmissionSamplesRejectWhatTheyName(t *testing.T) {
	env := newEnv(t)
	before := env.Create("before", "pod: {image: evil.example.com/x:1}")
	env.applyAdmissionSamples("memcacheds.yaml", "namespace-svc.yaml")
	evil := before.DeepCopy()
	evil.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "evil"}
	_ = env.rejection(admin, evil)
	for name, c := range map[string]struct{ spec, rejected string }{
		"nothing":                    {"size: 1", ""},
		"an allowed image":           {"pod: {image: registry.example.com/memcached:1.6.45}", ""},
		"another image":              {"pod: {image: memcached:1.6.45}", "spec.pod.image must begin with one of docker.io/library/memcached:, registry.example.com/"},
		"an allowed label":           {"pod: {metadata: {labels: {team: shop}}}", ""},
		"another label":              {"pod: {metadata: {labels: {team: shop, app: web}}}", "each of spec.pod.metadata.labels must begin with one of example.com/, team"},
		"a label with a longer name": {"pod: {metadata: {labels: {teams: shop}}}", "each of spec.pod.metadata.labels must begin with one of example.com/, team"},
		"an allowed annotation":      {"pod: {metadata: {annotations: {example.com/a: b}}}", ""},
		"another annotation":         {"pod: {metadata: {annotations: {a: b}}}", "each of spec.pod.metadata.annotations must begin with one of example.com/"},
		"an allowed priority class":  {"pod: {priorityClassName: low}", ""},
		"another priority class":     {"pod: {priorityClassName: high}", "spec.pod.priorityClassName must be one of low, default"},
		"a toleration":               {"pod: {tolerations: [{operator: Exists}]}", "spec.pod.tolerations is not allowed"},
		"an affinity":                {"pod: {affinity: {nodeAffinity: {}}}", "spec.pod.affinity and spec.pod.nodeSelector are not allowed"},
		"a node selector":            {"pod: {nodeSelector: {a: b}}", "spec.pod.affinity and spec.pod.nodeSelector are not allowed"},
		"spread pods":                {"pod: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}", ""},
		"allowed clients":            {"access: {networkPolicy: {allowedClients: [{namespaceSelector: {}}]}}", ""},
		"a load balancer":            {"access: {external: {mode: LoadBalancer}}", "spec.access.external.mode must be one of Disabled"},
		"its annotations":            {"access: {external: {mode: LoadBalancer, annotations: {other.example/a: b}}}", "each of spec.access.external.annotations must begin with one of"},
		"no load balancer":           {"access: {serviceMetadata: {annotations: {example.com/a: b}}}", ""},
		"an allowed account":         {"pod: {serviceAccountName: memcached}", ""},
		"another account":            {"pod: {serviceAccountName: admin}", "spec.pod.serviceAccountName must be one of default, memcached"},
		"allowed Secrets":            {"{tls: {mode: Required, secretName: memcached-a}, auth: {mode: Required, secretName: cache-b}}", ""},
		"another certificate":        {"tls: {mode: Required, secretName: ingress}", "the pods mount the Secrets ingress, cache-auth, cache-binding: each must begin with one of cache-, memcached-"},
		"other users":                {"auth: {mode: Required, secretName: admin-token}", "the pods mount the Secrets cache-tls, admin-token, cache-binding"},
		"an open network policy":     {"access: {networkPolicy: {mode: Open}}", "spec.access.networkPolicy.mode must be Restricted"},
	} {
		m, err := env.TryCreate("cache", c.spec)
		switch {
		case c.rejected == "" && err != nil, c.rejected != "" && (err == nil || !strings.Contains(err.Error(), c.rejected)):
			t.Errorf("%s: error %v, want %q", name, err, c.rejected)
		}
		if m != nil {
			env.Must(admin.Delete(env.Ctx, m))
		}
	}
	// Without a field, pods mount Secrets with the name of the Memcached.
	if _, err := env.TryCreate("ingress", "size: 1"); err == nil || !strings.Contains(err.Error(), "the pods mount the Secrets ingress-tls, ingress-auth, ingress-binding") {
		t.Errorf("another name: error %v", err)
	}
	// What existed before can be labeled and deleted, for example, but not changed.
	before.Labels = map[string]string{"team": "shop"}
	env.Must(admin.Update(env.Ctx, before))
	before.Spec.Paused = true
	if err := admin.Update(env.Ctx, before); err == nil {
		t.Error("a spec that isn't allowed was changed")
	}
	if err := env.rejection(admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "svc"}}); !strings.Contains(err.Error(), "the namespace svc is reserved") {
		t.Errorf("namespace svc: error %v", err)
	}
}

// userIn returns a client of a user who may do what the rules say in the test's namespace, and create this operator's objects.
func (env *testEnv) userIn(name string, rules ...rbacv1.PolicyRule) client.Client {
	env.Helper()
	meta := metav1.ObjectMeta{Namespace: env.Namespace, Name: name}
	env.Must(admin.Create(env.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: append(rules,
		rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})}))
	env.Must(admin.Create(env.Ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: env.Namespace + "-" + name}}}))
	config := rest.CopyConfig(server.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: env.Namespace + "-" + name, Groups: []string{"system:authenticated"}}
	user, err := client.New(config, client.Options{Scheme: simtest.Scheme()})
	env.Must(err)
	return user
}

// What users may not do themselves, they can't let the operator do, if the sample is applied.
func TestUsersGetNoRightsByTheOperator(t *testing.T) {
	env := newEnv(t)
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	only := env.userIn("only")
	privileged := env.userIn("privileged",
		rule("", "secrets", "get", "own", "cache-tls", "cache-auth", "cache-binding"), rule("", "serviceaccounts", "use", "own"),
		rule("networking.k8s.io", "networkpolicies", "create"), rule("", "services", "create"))
	editor := env.userIn("editor", rule("", "secrets", "get"), rule("", "serviceaccounts", "impersonate"), rule("networking.k8s.io", "networkpolicies", "create"), rule("", "services", "create"))
	env.applyAdmissionSamples("rights-of-users.yaml")
	const image = "pod: {image: example.com/x:1}"
	ofOthers := env.Object("Memcached", "cache", "{"+image+"}")
	_ = env.rejection(only, ofOthers)
	s3 := func(field string) string {
		return "store: {s3: {bucket: snapshots, endpoint: 'https://s3.example.com', " + field + "}}"
	}
	source := func(store string) string {
		return "snapshot: {" + store + ", path: shop/cache}"
	}
	for name, c := range map[string]struct {
		kind, spec, rejected string // what is rejected, "" if nothing is
		foreign              bool   // the privileged user may not do it either
	}{
		"nothing":                 {"Memcached", "size: 1", "", false},
		"a plain cache":           {"Memcached", "access: {networkPolicy: {mode: Restricted, allowedClients: [{podSelector: {}}]}}", "", false},
		"the default account":     {"Memcached", "pod: {serviceAccountName: default}", "", false},
		"an image":                {"Memcached", image, "the Secret cache-tls", false},
		"a certificate":           {"Memcached", "tls: {mode: Required, secretName: own}", "the pods mount the Secret own, and you may not get it", false},
		"a certificate for later": {"Memcached", "tls: {mode: Disabled, secretName: own}", "the Secret own", false},
		"a default certificate":   {"Memcached", "tls: {mode: Permissive}", "the Secret cache-tls", false},
		"another certificate":     {"Memcached", "tls: {mode: Required, secretName: ingress}", "the Secret ingress", true},
		"users":                   {"Memcached", "auth: {mode: Required, secretName: own}", "the Secret own", false},
		"a token":                 {"Memcached", "auth: {mode: Disabled, secretName: admin-token}", "the Secret admin-token", true},
		"an account":              {"Memcached", "pod: {serviceAccountName: own}", "you may not use the service account own", false},
		"another account":         {"Memcached", "pod: {serviceAccountName: admin}", "you may not use the service account admin", true},
		"open":                    {"Memcached", "access: {networkPolicy: {mode: Open}}", "you may not create NetworkPolicies", false},
		"no policy":               {"Memcached", "access: {networkPolicy: {mode: Disabled}}", "you may not create NetworkPolicies", false},
		"the world":               {"Memcached", "access: {networkPolicy: {mode: Restricted, allowedClients: [{podSelector: {}}, {ipBlock: {cidr: 0.0.0.0/0}}]}}", "you may not create NetworkPolicies", false},
		"all namespaces":          {"Memcached", "access: {networkPolicy: {allowedScrapers: [{namespaceSelector: {}}]}}", "you may not create NetworkPolicies", false},
		"a load balancer":         {"Memcached", "access: {external: {mode: LoadBalancer}}", "you may not create them", false},
		"a final backup":          {"Memcached", "deletionPolicy: Backup, backup: {final: {" + s3("credentialsSecretName: other") + "}}", "the store uses the Secret other", true},
		"a bootstrap":             {"Memcached", "backup: {bootstrap: {" + source(s3("credentialsSecretName: own")) + "}}", "the store of spec.backup.bootstrap uses the Secret own", false},
		"a backup":                {"MemcachedBackup", "memcachedRef: {name: cache}, " + s3("credentialsSecretName: own"), "the store uses the Secret own", false},
		"a CA":                    {"MemcachedBackup", "memcachedRef: {name: cache}, " + s3("credentialsSecretName: own, caSecretName: other"), "the Secret o", true},
		"a backup's account":      {"MemcachedBackup", "memcachedRef: {name: cache}, " + s3("serviceAccountName: admin"), "the service account admin of the store", true},
		"a claim":                 {"MemcachedBackup", "memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: store}}", "", false},
		"a schedule":              {"MemcachedScheduledBackup", "schedule: '@daily', backupTemplate: {spec: {memcachedRef: {name: cache}, " + s3("credentialsSecretName: own") + "}}", "the store uses the Secret own", false},
		"a restore":               {"MemcachedRestore", "memcachedRef: {name: cache}, " + source(s3("credentialsSecretName: own")), "the store uses the Secret own", false},
		"a restore of a backup":   {"MemcachedRestore", "memcachedRef: {name: cache}, backupRef: {name: nightly}", "", false},
	} {
		for _, user := range []struct {
			name      string
			client    client.Client
			forbidden bool
		}{{"only", only, c.rejected != ""}, {"privileged", privileged, c.foreign}, {"editor", editor, false}} {
			err := user.client.Create(env.Ctx, env.Object(c.kind, "cache", "{"+c.spec+"}"), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			if user.forbidden && (!apierrors.IsForbidden(err) || user.name == "only" && !strings.Contains(err.Error(), c.rejected)) || !user.forbidden && err != nil {
				t.Errorf("%s by the user %s: %v, want %q", name, user.name, err, c.rejected)
			}
		}
	}
	// The spec of others can't be changed by whom it would be forbidden to create. All else of it can.
	env.Must(privileged.Create(env.Ctx, ofOthers))
	m := env.Get("cache")
	m.Labels = map[string]string{"a": "b"}
	env.Must(only.Update(env.Ctx, m))
	m.Spec.Size = ptr.To[int32](2)
	if err := only.Update(env.Ctx, m.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a change of the spec: %v", err)
	}
	env.Must(privileged.Update(env.Ctx, m))
	// The operator, which may read no Secrets, creates the backups of a schedule.
	operator, err := client.New(server.Operator, client.Options{Scheme: simtest.Scheme()})
	env.Must(err)
	env.Must(operator.Create(env.Ctx, env.Object("MemcachedBackup", "scheduled", "{memcachedRef: {name: cache}, "+s3("credentialsSecretName: own")+"}")))
}
