package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

func at(milliseconds int) time.Time {
	return noon.Add(time.Duration(milliseconds) * time.Millisecond)
}

// line returns a line of the log as the API server writes it.
func line(stage, verb, group, resource, subresource, name string, code, received, answered int) string {
	stamp := func(ms int) string { return at(ms).Format("2006-01-02T15:04:05.000000Z") }
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":%q,"verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"subresource":%q,"namespace":"bench","name":%q,"apiGroup":%q,"apiVersion":"v1"},`+
		`"responseStatus":{"metadata":{},"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		stage, verb, OperatorUser, resource, subresource, name, group, code, stamp(received), stamp(answered))
}

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := openAuditLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(text string) []audit.Request {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		requests, err := log.Requests()
		if err != nil {
			t.Fatal(err)
		}
		return requests
	}
	second := line("ResponseComplete", "patch", "apps", "replicasets", "", "m1-0", 201, 5, 9)
	if got := write(line("ResponseComplete", "get", "", "services", "", "m1", 404, 1, 2) + second[:40]); len(got) != 1 {
		t.Fatalf("read %+v before the second line was complete", got)
	}
	got := write(second[40:])
	want := audit.Request{Received: at(5), Answered: at(9), User: OperatorUser, Verb: "patch", Group: "apps", Resource: "replicasets", Namespace: "bench", Name: "m1-0", Code: 201}
	if len(got) != 2 || got[1] != want {
		t.Errorf("read %+v, want %+v as the second", got, want)
	}
	if got := write(line("ResponseStarted", "watch", "", "pods", "", "", 200, 10, 11) + line("ResponseComplete", "watch", "", "pods", "", "", 200, 10, 99)); len(got) != 3 {
		t.Errorf("a watch was counted %d times", len(got)-2)
	}
	if got := write(line("ResponseComplete", "patch", "cache.memcached-operator.io", "memcacheds", "status", "m1", 200, 12, 13)); got[3].Resource != "memcacheds/status" {
		t.Errorf("the write of a status has the resource %s", got[3].Resource)
	}
	if _, err := file.WriteString("{\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Requests(); err == nil {
		t.Error("a line that is not JSON: no error")
	}
}
