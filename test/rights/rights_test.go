// Package rights compares the operator's roles with the audit log of the local cluster. It runs after the tests of e2e and
// host, which use what the operator may do.
package rights

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// sinceVariable is the environment variable with the time in RFC 3339 at which those tests began.
const sinceVariable = "AUDIT_SINCE"

// unseen are rights that leave no request in the audit log.
var unseen = []string{
	// needed to create an object whose owner must not be deleted before it
	"update cache.memcached-operator.io/memcacheds/finalizers",
	// only when the same event comes again within minutes
	"patch events.k8s.io/events",
	"patch /events",
	// only at the first start of an operator in its namespace
	"create coordination.k8s.io/leases",
	// only with MONITORING=off, which the tests of controllers/monitoring set
	"delete monitoring.coreos.com/servicemonitors memcached-operator",
	"delete monitoring.coreos.com/prometheusrules memcached-operator",
	"delete /configmaps memcached-operator-dashboard-memcached",
	"delete /configmaps memcached-operator-dashboard-fleet",
}

// TestOperatorUsesAllItsPermissions reads what the operator requested while the tests of e2e and host ran. That it lacks no
// permission is what those tests show, as it has no other rights in them.
func TestOperatorUsesAllItsPermissions(t *testing.T) {
	ctx := t.Context()
	var since time.Time // all of the log
	if value := os.Getenv(sinceVariable); value != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, value); err != nil {
			t.Fatalf("%s: %v", sinceVariable, err)
		}
	}
	k, err := cluster.Connect()
	pods.Must(t, err)
	ofRole := func(name string) []rbacv1.PolicyRule {
		role := &rbacv1.Role{}
		pods.Must(t, k.Get(ctx, client.ObjectKey{Namespace: cluster.OperatorNamespace, Name: "memcached-operator-" + name}, role))
		return role.Rules
	}
	rules := ofRole("leader-election-role")
	for _, name := range []string{"manager-role", "metrics-auth-role"} {
		role := &rbacv1.ClusterRole{}
		pods.Must(t, k.Get(ctx, client.ObjectKey{Name: "memcached-operator-" + name}, role))
		rules = append(rules, role.Rules...)
	}
	// The cluster has the CRDs of prometheus-operator in one test only. The tests of controllers/monitoring have them, and the operator's roles.
	rights := slices.DeleteFunc(rightsOf(rules), func(r string) bool { return strings.Contains(r, " monitoring.coreos.com/") })
	if len(rights) < 20 {
		t.Fatalf("the operator's roles give %d rights, which cannot be all: %v", len(rights), rights)
	}
	requests, err := cluster.OperatorRequests(ctx, since)
	pods.Must(t, err)
	used := map[string]bool{}
	for _, r := range requests {
		used[right(r.Verb, r.Group, r.Resource)] = true
		used[right(r.Verb, r.Group, r.Resource)+" "+r.Name] = true
		switch {
		case r.Verb == "patch" && r.Code == http.StatusCreated: // an apply that creates an object requires the right to
			used[right("create", r.Group, r.Resource)] = true
		case r.Verb == "watch": // returns what these return, and the server chooses how it begins
			used[right("get", r.Group, r.Resource)] = true
			used[right("list", r.Group, r.Resource)] = true
		}
	}
	if monitoring := rightsOf(ofRole("monitoring-role")); used["get monitoring.coreos.com/servicemonitors memcached-operator"] {
		rights = append(rights, monitoring...)
	} else {
		t.Logf("the CRDs of prometheus-operator were not installed, so nothing used %v", monitoring)
	}
	unused := slices.DeleteFunc(rights, func(r string) bool { return used[r] || slices.Contains(unseen, r) })
	if len(unused) > 0 {
		t.Errorf("remove the permissions that the operator does not use: %s", strings.Join(unused, ", "))
	}
}

// rightsOf returns each right of rules: with the name of the object if the rule has names.
func rightsOf(rules []rbacv1.PolicyRule) (rights []string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if len(rule.ResourceNames) == 0 {
						rights = append(rights, right(verb, group, resource))
					}
					for _, name := range rule.ResourceNames {
						rights = append(rights, right(verb, group, resource)+" "+name)
					}
				}
			}
		}
	}
	return rights
}

func right(verb, group, resource string) string {
	return verb + " " + group + "/" + resource
}
