package v1beta1_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/testcrd"
)

func TestGoDefaultsAreTheCRDsDefaults(t *testing.T) {
	for _, c := range []struct {
		plural, path string
		want         any
	}{
		{"memcachedbackups", "spec.rateLimit.itemsPerSecond", v1beta1.DefaultItemsPerSecond},
		{"memcachedrestores", "spec.rateLimit.bytesPerSecond", v1beta1.DefaultBytesPerSecond},
		{"memcachedscheduledbackups", "spec.retention.failedBackupsHistoryLimit", v1beta1.DefaultFailedBackupsHistoryLimit},
		{"memcacheds", "spec.backup.bootstrap.deadlineSeconds", v1beta1.DefaultTransferDeadlineSeconds},
		{"memcacheds", "spec.backup.final.deadlineSeconds", v1beta1.DefaultFinalBackupDeadlineSeconds},
		{"memcachedbackups", "spec.deadlineSeconds", v1beta1.DefaultTransferDeadlineSeconds},
		{"memcachedrestores", "spec.deadlineSeconds", v1beta1.DefaultTransferDeadlineSeconds},
		{"memcachedscheduledbackups", "spec.backupTemplate.spec.deadlineSeconds", v1beta1.DefaultTransferDeadlineSeconds},
		{"memcachedscheduledbackups", "spec.startingDeadlineSeconds", v1beta1.DefaultStartingDeadlineSeconds},
	} {
		field := testcrd.Schema(t, "../..", c.plural)
		for name := range strings.SplitSeq(c.path, ".") {
			next, ok := field.Properties[name]
			if !ok {
				t.Fatalf("%s has no %s", c.plural, c.path)
			}
			field = &next
		}
		if field.Default == nil {
			t.Errorf("%s of %s has no default, want %v", c.path, c.plural, c.want)
		} else if want, err := json.Marshal(c.want); err != nil || string(field.Default.Raw) != string(want) {
			t.Errorf("%s of %s has the default %s, want %s (%v)", c.path, c.plural, field.Default.Raw, want, err)
		}
	}
}

// A default in the CRD would hide that the mode of their group is missing.
func TestDescriptionsStateTheDefaultsOfFieldsThatNeedAMode(t *testing.T) {
	spec := testcrd.Schema(t, "../..", "memcacheds").Properties["spec"].Properties
	gate, refill := spec["updateStrategy"].Properties["hitRatioGate"].Properties, spec["backup"].Properties["refill"].Properties
	for _, c := range []struct {
		field apiextensionsv1.JSONSchemaProps
		want  int
	}{
		{gate["timeoutSeconds"], v1beta1.DefaultHitRatioTimeoutSeconds},
		{gate["percent"], v1beta1.DefaultHitRatioPercent},
		{gate["minRequests"], v1beta1.DefaultHitRatioMinRequests},
		{refill["maxAgeSeconds"], v1beta1.DefaultRefillMaxAgeSeconds},
	} {
		if says := fmt.Sprintf("Default %d", c.want); c.field.Default != nil || !strings.Contains(c.field.Description, says) {
			t.Errorf("the default is %v, and the description %q, want none and %q", c.field.Default, c.field.Description, says)
		}
	}
}

// TestDescriptionsStartWithTheFieldsName checks all fields but those of Kubernetes' own types.
func TestDescriptionsStartWithTheFieldsName(t *testing.T) {
	// Those whose own fields Kubernetes describes.
	foreign := []string{"affinity", "tolerations", "topologySpreadConstraints", "imagePullSecrets", "conditions"}
	var check func(path string, field apiextensionsv1.JSONSchemaProps)
	check = func(path string, field apiextensionsv1.JSONSchemaProps) {
		if field.Items != nil {
			field = *field.Items.Schema
		}
		for name, below := range field.Properties {
			path := path + "." + name
			if first, _, _ := strings.Cut(below.Description, " "); !strings.EqualFold(first, name) {
				t.Errorf("the description of %s starts with %q", path, first)
			}
			if !slices.Contains(foreign, name) {
				check(path, below)
			}
		}
	}
	for _, plural := range []string{"memcacheds", "memcachedbackups", "memcachedrestores", "memcachedscheduledbackups"} {
		for _, part := range []string{"spec", "status"} {
			check(plural+"."+part, testcrd.Schema(t, "../..", plural).Properties[part])
		}
	}
}

// TestEnumsInStatusesAreOpen keeps a CRD that is older than the operator from rejecting a complete status.
func TestEnumsInStatusesAreOpen(t *testing.T) {
	fields := 0
	var check func(path string, field *apiextensionsv1.JSONSchemaProps)
	check = func(path string, field *apiextensionsv1.JSONSchemaProps) {
		// The status of a condition is a type of Kubernetes.
		if fields++; len(field.Enum) > 0 && !strings.HasSuffix(path, ".conditions[].status") {
			t.Errorf("%s has an enum", path)
		}
		if field.Items != nil {
			check(path+"[]", field.Items.Schema)
		}
		for name, below := range field.Properties {
			check(path+"."+name, &below)
		}
	}
	for _, plural := range []string{"memcacheds", "memcachedbackups", "memcachedrestores", "memcachedscheduledbackups"} {
		status := testcrd.Schema(t, "../..", plural).Properties["status"]
		check(plural+".status", &status)
	}
	if fields < 100 {
		t.Errorf("only %d fields", fields)
	}
}
