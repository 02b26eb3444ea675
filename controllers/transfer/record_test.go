package transfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestRecordRestoresOnlyAFinalStatusOfTheSameName(t *testing.T) {
	complete := `"status":{"phase":"Complete","jobName":"j","conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded","message":"done"}]}}`
	for text, want := range map[string]string{
		"":                             "none",
		"not a record":                 "none",
		`{"name":"nightly","uid":"x"}`: "none",
		`{"name":"nightly","uid":"x","status":{"phase":"Running"}}`:       "none",
		`{"name":"weekly","uid":"x",` + complete:                          "none",
		`{"name":"nightly","uid":"x",` + complete:                         "Complete Succeeded done",
		`{"name":"nightly","uid":"` + string(owner.UID) + `",` + complete: "Complete Succeeded done j",
	} {
		b := owner.DeepCopy()
		b.Annotations = map[string]string{annotations.Transfer: text}
		got := "none"
		if s, ok := recorded(b, now); ok {
			got = string(s.Phase) + " " + s.Reason() + " " + s.Message()
			if s.JobName != "" {
				got += " " + s.JobName
			}
			if len(s.Conditions) != 4 {
				t.Errorf("%s: the conditions are %+v", text, s.Conditions)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		b.Status.Phase = v1beta1.TransferFailed
		if _, ok := recorded(b, now); ok {
			t.Errorf("%s replaces a final status", text)
		}
	}
}

// A tool or a user may recreate an object from an export whose spec was edited. The texts are in the objects of users.
func TestRecordOfAnotherTransferIsIgnored(t *testing.T) {
	backup := func(memcached string, store v1beta1.SnapshotStore) client.Object {
		b := owner.DeepCopy()
		b.Spec.MemcachedRef.Name, b.Spec.Store = memcached, store
		return b
	}
	restore := func(memcached string, ref *v1beta1.BackupReference, source *v1beta1.SnapshotSource) client.Object {
		r := restoreOwner.DeepCopy()
		r.Spec.MemcachedRef.Name, r.Spec.BackupRef, r.Spec.Snapshot = memcached, ref, source
		return r
	}
	nightly, weekly := &v1beta1.BackupReference{Name: "nightly"}, &v1beta1.BackupReference{Name: "weekly"}
	for of, c := range map[string]struct {
		object client.Object
		others []client.Object
	}{
		"Memcached cache, directory cache/a of PersistentVolumeClaim snapshots": {backup("cache", claim), []client.Object{backup("other", claim), backup("cache", s3)}},
		"Memcached cache, s3://snapshots/cache at https://minio.storage.svc:9000": {backup("cache", s3), []client.Object{
			backup("cache", v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "snapshots", Prefix: "cache"}}), backup("cache", v1beta1.SnapshotStore{})}},
		"Memcached cache, MemcachedBackup nightly": {restore("cache", nightly, nil), []client.Object{
			restore("other", nightly, nil), restore("cache", weekly, nil), restore("cache", nil, &v1beta1.SnapshotSource{Store: claim, Path: "nightly"}), restore("cache", nil, nil)}},
		"Memcached cache, directory cache/a/p of PersistentVolumeClaim snapshots": {restore("cache", nil, &v1beta1.SnapshotSource{Store: claim, Path: "p"}), []client.Object{
			restore("cache", nil, &v1beta1.SnapshotSource{Store: claim, Path: "q"}), restore("cache", nil, &v1beta1.SnapshotSource{Store: s3, Path: "p"})}},
	} {
		setRecord(c.object, nil, Status{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferComplete}})
		if got := recordOf(c.object).Of; got != of {
			t.Errorf("the record is of %q, want %q", got, of)
		}
		if _, ok := recorded(c.object, now); !ok {
			t.Errorf("%s runs again", of)
		}
		for i, other := range c.others {
			other.SetAnnotations(c.object.GetAnnotations())
			if _, ok := recorded(other, now); ok {
				t.Errorf("%s: object %d of another transfer does not run", of, i)
			}
		}
	}
}

// The Memcached may be deleted before the snapshot, whose Job starts as if it were there.
func TestRecordKeepsTheBasisOfPodsWithoutTheMemcached(t *testing.T) {
	b, m := owner.DeepCopy(), platform()
	setRecord(b, m, Status{})
	setRecord(b, nil, Status{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferFailed}})
	obs := Observation{Object: b}
	if diff := cmp.Diff(resources.BasisOf(&m.Spec), obs.Basis()); diff != "" {
		t.Errorf("the recorded basis (-want +got):\n%s", diff)
	}
	for setting, value := range map[string]string{"ALLOW_TOLERATIONS": "false", "ALLOW_AFFINITY": "false", "ALLOWED_SERVICE_ACCOUNTS": "other", "ALLOWED_PRIORITY_CLASSES": "other", "ALLOWED_POD_LABEL_PREFIXES": "other"} {
		restrictions, err := resources.ParseRestrictions(func(name string) string { return map[string]string{setting: value}[name] })
		if err != nil {
			t.Fatal(err)
		}
		restricted := Observation{Object: b, Options: Options{Restrictions: restrictions}}
		if diff := cmp.Diff(v1beta1.MemcachedPod{ImagePullSecrets: m.Spec.Pod.ImagePullSecrets}, restricted.Basis().Pod); diff != "" {
			t.Errorf("a record that %s doesn't allow (-want +got):\n%s", setting, diff)
		}
		restricted.Memcached = m
		if blocker := restricted.NotAllowed(claim); blocker == nil || blocker.Reason != v1beta1.ReasonNotAllowed {
			t.Errorf("a Job of a Memcached that %s doesn't allow: %+v", setting, blocker)
		}
	}
	obs.Memcached = cache()
	if diff := cmp.Diff(resources.BasisOf(&obs.Memcached.Spec), obs.Basis()); diff != "" {
		t.Errorf("the basis of another Memcached (-want +got):\n%s", diff)
	}
}
