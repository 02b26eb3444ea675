package process

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func tlsOptions(t *testing.T, f pods.TLSFiles) copy.Options {
	t.Helper()
	o := testOptions(t)
	o.TLSDir = f.Dir
	return o
}

// memcached can wait for more data after pipelined sets, until the connection counts as lost. Several sets of 300 bytes are
// written at a time, those of 5,000 bytes one by one.
func TestRestoreOverTLSDoesNotStall(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for name, size := range map[string]func(i int) int{
			"300 bytes":   func(int) int { return 300 },
			"5,000 bytes": func(int) int { return 5000 },
			"mixed":       func(i int) int { return []int{10, 3000, 7900, 200, 8200, 40, 17000, 900, 1, 5000}[i%10] },
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				f := pods.NewTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{pods.TLSHost}})
				source := pods.StartCache(t, version)
				target, to := pods.StartTLSCache(t, version, f)
				const items = 50
				for i := range items {
					source.Talk(fmt.Sprintf("ms key-%d %d\r\n%s\r\n", i, size(i), strings.Repeat("v", size(i))))
				}
				bucket := memblob.OpenBucket(nil)
				save(t, bucket, pods.SaveTask(source))
				restores := 25
				if pods.Exhaustive() {
					restores = 100
				}
				for range restores {
					target.Talk("flush_all\r\n")
					task := pods.WithTLS(pods.LoadTask(target), to)
					task.Load.Replace = true
					options, log := tlsOptions(t, f), pods.Log{}
					options.Log = slog.New(slog.NewTextHandler(&log, nil))
					outcome, err := copy.Load(t.Context(), bucket, task, options)
					if err != nil || outcome.Restored != items || log.String() != "" { // it logs lost connections
						t.Fatalf("%+v, %v\n%s", outcome, err, &log)
					}
				}
			})
		}
	}
}

func TestCopyOverTLSFailsWithTheReason(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA("shards")
	for name, c := range map[string]struct {
		served testcert.Options
		// presented by the Job.
		presented testcert.Options
		// trusts is the CA of the Job, and signs the presented certificate; nil is the right one.
		trusts, signs *testcert.CA
		edit          func(*snapshotwire.Task, *pods.Cache)
		want          string
	}{
		"another CA":   {trusts: testcert.NewCA("others"), want: "its certificate isn't accepted for localhost: tls: failed to verify certificate: x509: certificate signed by unknown authority; correct the Secret of spec.tls"},
		"another name": {served: testcert.Options{Names: []string{"example.com"}}, want: "correct the Secret of spec.tls"},
		"expired":      {served: testcert.Options{NotAfter: time.Now().Add(-time.Minute)}, want: "certificate has expired"},
		"no client certificate": {edit: func(task *snapshotwire.Task, _ *pods.Cache) { task.TLS.ClientCertificate = false },
			want: "it requires a client certificate: tls: certificate required; wait until the Memcached is Ready"},
		"client certificate of another CA": {signs: testcert.NewCA("others"),
			want: "it rejects the client certificate: tls: unknown certificate authority; correct the Secret of spec.tls"},
		"client certificate for servers only": {presented: testcert.Options{ServerOnly: true},
			want: "it rejects the client certificate: tls: unsupported certificate; correct the Secret of spec.tls"},
		"no TLS": {edit: func(task *snapshotwire.Task, c *pods.Cache) { task.Servers = []string{c.Address()} }, want: "it answers without TLS; wait until the Memcached is Ready, and its clients leave a connection free"},
	} {
		c.presented.Names = []string{pods.TLSHost}
		if c.served.Names == nil {
			c.served.Names = []string{pods.TLSHost}
		}
		for _, version := range pods.Tested {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				served := pods.NewTLSFiles(t, ca, c.served)
				source, from := pods.StartTLSCache(t, version, served)
				job := pods.NewTLSFiles(t, cmp.Or(c.signs, ca), c.presented)
				pods.WriteFile(t, filepath.Join(job.Dir, "ca.crt"), string(cmp.Or(c.trusts, ca).PEM()))
				task := pods.WithTLS(pods.SaveTask(source), from)
				if c.edit != nil {
					c.edit(&task, source)
				}
				options := tlsOptions(t, job)
				options.ShardTimeout = time.Second
				var err error
				pods.Eventually(func() bool { // a busy machine can be too slow for the last attempt
					_, err = copy.Save(t.Context(), memblob.OpenBucket(nil), task, options)
					f := snapshotwire.AsFailure(err)
					if f == nil || f.Reason != snapshotwire.ReasonShardUnreachable || f.Final {
						t.Fatalf("%+v, %v", f, err)
					}
					return strings.Contains(f.Error(), c.want)
				})
				pods.WantContains(t, "the error", err.Error(), c.want)
			})
		}
	}
}

func TestMigrationIsCopiedWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	f := pods.NewTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{pods.TLSHost}})
	secured, address := pods.StartTLSCache(t, pods.Newest, f)
	plain := pods.StartCache(t, pods.Newest)
	const items = 300
	pods.Fill(t, secured.Address(), items)
	pods.Fill(t, plain.Address(), items)
	task := pods.WithTLS(pods.SaveTask(secured, plain), address, plain.Address())
	task.TLS.AllowPlain = true
	outcome, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, tlsOptions(t, f))
	if err != nil || outcome.Items != 2*items {
		t.Errorf("%+v, %v", outcome, err)
	}
}
