package transfer

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	ownerMeta    = metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "11111111-2222-3333-4444-555555555555"}
	owner        = &v1beta1.MemcachedBackup{ObjectMeta: ownerMeta}
	restoreOwner = &v1beta1.MemcachedRestore{ObjectMeta: ownerMeta}
)

var (
	claim = v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "snapshots", SubPath: "cache/a"}}
	s3    = v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "snapshots", Prefix: "cache", Endpoint: "https://minio.storage.svc:9000",
		Region: "us-east-1", CredentialsSecretName: "minio", CASecretName: "minio-ca"}}
)

// jobs are the Jobs that are reviewed.
var jobs = map[string]struct {
	options Options
	spec    JobSpec
}{
	"save-to-claim": {Options{}, JobSpec{Prefix: Backup, Owner: owner, Store: claim, Action: snapshotwire.ActionSave,
		Task: snapshotwire.Task{Path: "team/cache/nightly-11111111", Servers: []string{"cache-0.team.svc.cluster.local:11211"}, ItemsPerSecond: 20000,
			Memcached: snapshotwire.Memcached{Namespace: "team", Name: "cache", UID: "u", Version: "1.6.45"}}}},
	"save-to-s3": {Options{}, JobSpec{Prefix: Backup, Owner: owner, Store: s3, Action: snapshotwire.ActionSave,
		DeadlineSeconds: ptr.To[int32](90),
		Basis:           resources.Basis{Pod: v1beta1.MemcachedPod{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}},
		Task:            snapshotwire.Task{Path: "team/cache/nightly-11111111", Servers: []string{"cache-0.team.svc.cluster.local:11211"}}}},
	"load-from-claim-on-openshift": {Options{OmitRunAsUser: true}, JobSpec{Prefix: Restore, Owner: restoreOwner, Store: claim, Action: snapshotwire.ActionLoad,
		Task: snapshotwire.Task{Path: "p", Servers: []string{"cache-0.team.svc.cluster.local:11211"}, Load: &snapshotwire.Load{MaxAge: time.Hour}}}},
	"save-to-new-claim": {Options{}, JobSpec{Prefix: Backup, Owner: owner, Action: snapshotwire.ActionSave,
		Store: v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "new", FSGroup: ptr.To[int64](2000)}},
		Cache: CacheSize{Shards: 100, Memory: 16 << 30}, Task: snapshotwire.Task{Path: "p"}}},
	"load-with-service-account": {Options{}, JobSpec{Prefix: Restore, Owner: restoreOwner, Action: snapshotwire.ActionLoad,
		Store:     v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "b00", ServiceAccountName: "snapshots"}},
		Resources: v1beta1.JobResources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, Task: snapshotwire.Task{Path: "p"}}},
	"save-with-tls": {Options{}, JobSpec{Prefix: Backup, Owner: owner, Store: claim, Action: snapshotwire.ActionSave,
		Memcached: withTLS(v1beta1.TLSSpec{Mode: v1beta1.TLSPermissive}), Task: snapshotwire.Task{Path: "p", Servers: []string{"cache-0.team.svc.cluster.local:11211"}}}},
	"load-with-client-certificate": {Options{}, JobSpec{Prefix: Restore, Owner: restoreOwner, Store: claim, Action: snapshotwire.ActionLoad,
		Memcached: withTLS(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "certificate", ClientCertificates: v1beta1.ClientCertificatesRequired}),
		Task:      snapshotwire.Task{Path: "p", Servers: []string{"restore-0.team.svc.cluster.local:11211", "restore-1.team.svc.cluster.local:11211"}, Load: &snapshotwire.Load{}}}},
	"save-with-login": {Options{}, JobSpec{Prefix: Backup, Owner: owner, Store: claim, Action: snapshotwire.ActionSave,
		Memcached: &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache"}, Spec: v1beta1.MemcachedSpec{Auth: v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}}},
		Task:      snapshotwire.Task{Path: "p", Servers: []string{"cache-0.team.svc.cluster.local:11211"}}}},
	"delete-from-s3": {Options{}, JobSpec{Prefix: Delete, Owner: owner, Store: v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "b00", CredentialsSecretName: "aws"}},
		Action: snapshotwire.ActionDelete, DeadlineSeconds: ptr.To[int32](DeleteDeadlineSeconds), Task: snapshotwire.Task{Path: "p"}}},
}

func withTLS(tls v1beta1.TLSSpec) *v1beta1.Memcached {
	return &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache"}, Spec: v1beta1.MemcachedSpec{TLS: tls}}
}

// TestJobsMatchGoldenFiles compares the Jobs with testdata/NAME.golden.yaml, which are
// reviewed.
func TestJobsMatchGoldenFiles(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	t.Setenv("NO_PROXY", ".svc")
	for name, test := range jobs {
		t.Run(name, func(t *testing.T) {
			test.options.Proxy, _ = ProxyEnvironment()
			test.options.Image = "ghcr.io/memcached-operator/memcached-operator:v1.0.0"
			got, err := yaml.Marshal(test.options.Job(test.spec))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // a file of the repository
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got); review it and run go test with -update:\n%s", golden, diff)
			}
		})
	}
}

// A save that the deadline stops must not leave its chunks to a store that each repetition of a final backup fills further.
func TestPodOfASaveHasTimeToDeleteItsChunks(t *testing.T) {
	for action, want := range map[snapshotwire.Action]*int64{snapshotwire.ActionSave: new(int64(540)), snapshotwire.ActionLoad: nil, snapshotwire.ActionDelete: nil} {
		job := Options{}.Job(JobSpec{Prefix: Backup, Owner: owner, Store: claim, Action: action})
		if got := job.Spec.Template.Spec.TerminationGracePeriodSeconds; !ptr.Equal(got, want) {
			t.Errorf("%s: %d seconds", action, ptr.Deref(got, 0))
		}
	}
	if snapshotwire.SaveGrace >= DeleteDeadlineSeconds*time.Second {
		t.Error("the deletion of a backup doesn't wait for its pod")
	}
	b := owner.DeepCopy()
	b.Status.Phase, b.Status.StartTime, b.Spec.DeadlineSeconds = v1beta1.TransferRunning, &metav1.Time{Time: now}, new(int32(60))
	if !b.IsActive(now.Add(2*time.Minute + snapshotwire.SaveGrace)) {
		t.Error("a backup is Failed before its pod is killed")
	}
}

func TestJobDoesNotChangeVolumeThatItReads(t *testing.T) {
	store := v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "new", FSGroup: ptr.To[int64](2000)}}
	job := Options{}.Job(JobSpec{Prefix: Restore, Owner: restoreOwner, Store: store, Action: snapshotwire.ActionLoad})
	pod := job.Spec.Template.Spec
	if pod.SecurityContext.FSGroup != nil || !pod.Volumes[0].PersistentVolumeClaim.ReadOnly || !pod.Containers[0].VolumeMounts[0].ReadOnly {
		t.Errorf("the group is %v, the volume %+v", pod.SecurityContext.FSGroup, pod.Volumes[0])
	}
}

func TestJobResourcesGrowWithCacheAndCanBeSet(t *testing.T) {
	list := func(cpu, memory, disk string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourceEphemeralStorage: disk} {
			if value != "" {
				l[name] = resource.MustParse(value)
			}
		}
		return l
	}
	for name, test := range map[string]struct {
		spec             JobSpec
		limits, requests corev1.ResourceList
		goMemory         string
	}{
		"a small cache":           {JobSpec{Action: snapshotwire.ActionSave, Cache: CacheSize{1, 64 << 20}}, list("", "128Mi", "256Mi"), list("100m", "64Mi", "64Mi"), "96MiB"},
		"the size is unknown":     {JobSpec{Action: snapshotwire.ActionSave}, list("", "128Mi", "256Mi"), list("100m", "64Mi", "64Mi"), "96MiB"},
		"two large shards":        {JobSpec{Action: snapshotwire.ActionSave, Cache: CacheSize{2, 8 << 30}}, list("", "129Mi", "16Gi"), list("100m", "64Mi", "512Mi"), "96MiB"},
		"many large shards":       {JobSpec{Action: snapshotwire.ActionSave, Cache: CacheSize{100, 16 << 30}}, list("", "228Mi", "64Gi"), list("100m", "64Mi", "2Gi"), "171MiB"},
		"a restore spools no key": {JobSpec{Action: snapshotwire.ActionLoad, Cache: CacheSize{2, 8 << 30}}, list("", "129Mi", ""), list("100m", "64Mi", ""), "96MiB"},
		"limits are set": {JobSpec{Action: snapshotwire.ActionSave, Cache: CacheSize{2, 8 << 30}, Resources: v1beta1.JobResources{Limits: list("50m", "32Mi", "10Mi")}},
			list("50m", "32Mi", "10Mi"), list("50m", "32Mi", "10Mi"), "24MiB"},
		"no limit of memory":                {JobSpec{Action: snapshotwire.ActionLoad, Resources: v1beta1.JobResources{Limits: list("", "0", "")}}, list("", "0", ""), list("100m", "0", ""), "off"},
		"a request above the default limit": {JobSpec{Action: snapshotwire.ActionLoad, Resources: v1beta1.JobResources{Requests: list("2", "1Gi", "")}}, list("", "1Gi", ""), list("2", "1Gi", ""), "768MiB"},
		"requests are set": {JobSpec{Action: snapshotwire.ActionLoad, Resources: v1beta1.JobResources{Requests: list("2", "", "")}},
			list("", "128Mi", ""), list("2", "64Mi", ""), "96MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			got := jobResources(test.spec, false)
			if !equality.Semantic.DeepEqual(got.Limits, test.limits) || !equality.Semantic.DeepEqual(got.Requests, test.requests) {
				t.Errorf("limits %v, requests %v", got.Limits, got.Requests)
			}
			if limit := goMemoryLimit(got); limit != test.goMemory {
				t.Errorf("GOMEMLIMIT is %s", limit)
			}
		})
	}
}

func TestTaskContainsNoKubeletVariables(t *testing.T) {
	path := "a$(HOME)b$$(HOME)c"
	job := Options{}.Job(JobSpec{Prefix: Backup, Owner: owner, Store: claim, Action: snapshotwire.ActionSave, Task: snapshotwire.Task{Path: path}})
	argument := job.Spec.Template.Spec.Containers[0].Args[2]
	if strings.Contains(argument, "$") {
		t.Errorf("the kubelet would expand variables in %s", argument)
	}
	var task snapshotwire.Task
	if err := json.Unmarshal([]byte(argument), &task); err != nil || task.Path != path {
		t.Errorf("%v: the path is %s", err, task.Path)
	}
}

func TestRateLimitDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		limit *v1beta1.RateLimit
		items int
		bytes int64
	}{
		"none given":  {nil, 20000, 32 << 20},
		"empty":       {&v1beta1.RateLimit{}, 20000, 32 << 20},
		"no limit":    {&v1beta1.RateLimit{ItemsPerSecond: ptr.To[int32](0), BytesPerSecond: ptr.To(resource.MustParse("0"))}, 0, 0},
		"one of them": {&v1beta1.RateLimit{BytesPerSecond: ptr.To(resource.MustParse("4Gi"))}, 20000, 4 << 30},
	} {
		if items, bytes := Limits(test.limit); items != test.items || bytes != test.bytes {
			t.Errorf("%s: %d items and %d bytes a second", name, items, bytes)
		}
	}
}

func TestDescribeReturnsLocation(t *testing.T) {
	for want, store := range map[string]v1beta1.SnapshotStore{
		"directory cache/a/x of PersistentVolumeClaim snapshots":   claim,
		"s3://snapshots/cache/x at https://minio.storage.svc:9000": s3,
		"s3://b00/x": {S3: &v1beta1.S3Store{Bucket: "b00"}},
	} {
		if got := Describe(store, "x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
