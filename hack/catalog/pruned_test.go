package main

import (
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestDowngradeListsTheFieldsThatTheOlderReleaseDoesNotKnow(t *testing.T) {
	now := slices.Collect(maps.Values(crdsOf(t, root+"/bundle")))
	var before []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range now {
		if crd.Spec.Names.Kind == "MemcachedScheduledBackup" {
			continue
		}
		crd = crd.DeepCopy()
		if crd.Spec.Names.Kind == "Memcached" {
			spec := specOf(crd).Properties
			delete(spec, "refill")
			delete(spec["bootstrap"].Properties["backupRef"].Properties, "name")
			windows := spec["updateStrategy"].Properties["maintenanceWindows"]
			delete(windows.Items.Schema.Properties, "timeZone")
		}
		before = append(before, crd)
	}
	want := []string{"Memcached .spec.bootstrap.backupRef.name", "Memcached .spec.refill",
		"Memcached .spec.updateStrategy.maintenanceWindows[].timeZone", "MemcachedScheduledBackup"}
	if got := unknownFields(before, now); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := unknownFields(now, now); got != nil {
		t.Errorf("without a change, %q are listed", got)
	}
	if got := unknownFields(now, before); got != nil {
		t.Errorf("fields that only the older release has are listed: %q", got)
	}
}
