package command

import (
	"archive/zip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// marker is in all that a report must not contain.
const marker = "s3cret"

// createSecrets creates a pod of cache with a marker wherever its owner may have written one, and a Secret.
func (w *world) createSecrets() {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cache-0-a", Namespace: "default",
		Labels:      map[string]string{v1beta1.LabelInstance: "cache", v1beta1.LabelManagedBy: v1beta1.ManagedByValue},
		Annotations: map[string]string{"vendor.example/token": marker, v1beta1.AnnotationRestart: "1"}}}
	foreign := corev1.Container{Name: "proxy", Image: "proxy:1", Args: []string{"--password", marker}, Env: []corev1.EnvVar{{Name: "A", Value: marker}}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Command: []string{"/opt/agent/agent"}, Env: []corev1.EnvVar{{Name: "TOKEN", Value: marker}}}, foreign}
	pod.Spec.InitContainers = []corev1.Container{foreign}
	crash := `memcached was terminated by signal "killed": <30 get ` + marker
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "memcached", RestartCount: 1, LastTerminationState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: crash}}}}
	w.pods.answer.ArgumentsError = "memcached doesn't start with them: memcached exited unexpectedly with code 1: >30 " + marker
	m := simtest.Get[*v1beta1.Memcached](w.api, "cache")
	m.Status.Conditions[0].Message = "1 of 2 shards is ready: " + crash
	w.report(m)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "default"}, Data: map[string][]byte{"password": []byte(marker)}}
	if err := w.api.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	if err := w.api.Create(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
	w.pods.logs = `{"level":"info","msg":"memcached is serving"}` + "\n" +
		`{"level":"info","msg":"Starting EventSource","source":"kind source"}` + "\n" + `{"level":"info","source":{"kind":"Pod"}}` + "\n" +
		`{"level":"info","msg":"<30 get ` + marker + `","source":"memcached"}` + "\n" +
		`time=2026-11-27T12:00:00Z level=INFO msg="<30 set ` + marker + ` 0 0 1" source=memcached` + "\n" +
		`time=2026-11-27T12:00:00Z level=INFO msg="an older agent"` + "\n" +
		`{"level":"info","msg":"<30 get ` + marker + "\n" +
		`{"level":"error","msg":"memcached was terminated by signal \"killed\": <30 get ` + marker + `"}` + "\n" +
		`{"level":"error","msg":"Cannot read the keys","error":"the answer violates the memcached protocol: key=\"` + marker + `\""}` + "\n" +
		`{"level":"error","msg":"memcached exited unexpectedly with code 71: failed to listen"}` + "\n" +
		`time=2026-11-27T12:00:00Z level=INFO msg="<30 get ` + marker
}

// unzip returns the files of a report.
func unzip(t *testing.T, file string) map[string]string {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

func TestReportContainsNoSecrets(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.createSecrets()
	file := filepath.Join(t.TempDir(), "cache.zip")
	w.want(w.run("report", "cache", "-f", file), 0, file+" has ", "")
	if !strings.Contains(w.progress.String(), "reading pods.yaml") {
		t.Errorf("the progress is %s", w.progress.String())
	}
	files := unzip(t, file)
	for name, content := range files {
		if strings.Contains(content, marker) {
			t.Errorf("%s contains a secret:\n%s", name, content)
		}
	}
	for name, want := range map[string][]string{
		"memcached.yaml": {"name: cache\n", "phase: Running"}, "pods.yaml": {"name: TOKEN", "image: proxy:1", "/opt/agent/agent", v1beta1.AnnotationRestart + `: "1"`},
		"logs/cache-0-a.log": {"memcached is serving", "an older agent", `"killed\": (omitted)`, "71: failed to listen", "EventSource", `{"kind":"Pod"}`}, "logs/cache-0-a.previous.log": {"memcached is serving"},
		"agents/cache-1-b.json": {`"items"`}, "why.txt": {"default/cache is Running"}, "events.yaml": nil,
		"manifest.txt": {"logs/cache-0-a.log: 4 lines of memcached", "the operator's logs: namespace memcached-operator-system has no pod of it"},
	} {
		content, ok := files[name]
		if !ok {
			t.Errorf("the report has no %s", name)
		}
		for _, text := range want {
			if !strings.Contains(content, text) {
				t.Errorf("%s lacks %q:\n%s", name, text, content)
			}
		}
	}
	w.want(w.run("report", "cache", "-f", file), exitFailed, "", "file exists\n")
	w.want(w.run("report", "cache", "-f", file+"2", "--timeout", "0s"), 0, "Omitted  pods.yaml: not read in time: raise --timeout\n", "")
	if unzip(t, file+"2")["why.txt"] == "" {
		t.Error("why.txt, which is not read from the cluster, was not in time")
	}
	file = filepath.Join(t.TempDir(), "cache.zip")
	w.want(w.run("report", "cache", "-f", file, "-o", "xml"), exitUsage, "", "use json or yaml")
	if _, err := os.Stat(file); err == nil {
		t.Error("a wrong flag leaves a report")
	}
}

func TestReportContainsWhatTheUserMayRead(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.pods.err = cannot("get", "", "pods/log", "")
	w.reject = func(_ string, o any) error {
		switch o.(type) {
		case *corev1.EventList:
			return cannot("list", "", "events", "")
		case *v1beta1.MemcachedBackupList:
			return context.DeadlineExceeded
		}
		return nil
	}
	file := filepath.Join(t.TempDir(), "cache.zip")
	w.want(w.run("report", "cache", "-f", file), 0, "Omitted  events.yaml: bob lacks the permission to list events in namespace default.", "")
	w.want(0, 0, "Omitted  backups.yaml: listing MemcachedBackups: context deadline exceeded", "")
	if n := strings.Count(w.out.String(), "bob lacks the permission to get pods/log"); n != 2 {
		t.Errorf("the logs and the answers of the agents are omitted %d times:\n%s", n, w.out.String())
	}
	files := unzip(t, file)
	for _, omitted := range []string{"events.yaml", "backups.yaml"} {
		if _, exists := files[omitted]; exists || !strings.Contains(files["manifest.txt"], omitted) {
			t.Errorf("%s: %v", omitted, files)
		}
	}
	if !slices.ContainsFunc([]string{files["memcached.yaml"], files["pods.yaml"]}, func(s string) bool { return s != "" }) {
		t.Error("the report lacks what the user may read")
	}
}
