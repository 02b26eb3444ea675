package process

import (
	"cmp"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// tlsFiles are the Secret's files in the volume of a Job.
type tlsFiles struct {
	dir string
	ca  *testcert.CA
}

func newTLSFiles(t testing.TB, ca *testcert.CA, o testcert.Options) tlsFiles {
	t.Helper()
	f := tlsFiles{sharedDir(t), ca}
	crt, key := ca.Issue(o)
	for name, content := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()} {
		if err := os.WriteFile(filepath.Join(f.dir, name), content, 0o644); err != nil { //nolint:gosec // memcached is another user
			t.Fatal(err)
		}
	}
	return f
}

// startTLSCache starts a memcached that serves clients with certificates at the second address, and the test at its own.
func startTLSCache(t testing.TB, version string, f tlsFiles, args ...string) (c *cache, address string) {
	t.Helper()
	c = &cache{t: t, version: version, port: freePort(t)}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	file := func(name string) string { return filepath.Join(f.dir, name) }
	c.args = append([]string{"-Z", "-l", "notls:" + c.address(), "-l", address,
		"-o", "ssl_chain_cert=" + file("tls.crt") + ",ssl_key=" + file("tls.key") + ",ssl_ca_cert=" + file("ca.crt") + ",ssl_verify_mode=2,ssl_session_cache"}, args...)
	c.start()
	t.Cleanup(c.kill)
	return c, address
}

// withTLS lets a task connect to these addresses with TLS.
func withTLS(task snapshotwire.Task, addresses ...string) snapshotwire.Task {
	task.Servers, task.TLS = addresses, &snapshotwire.TLS{ClientCertificate: true}
	for range addresses {
		task.TLS.ServerNames = append(task.TLS.ServerNames, tlsHost)
	}
	return task
}

func tlsOptions(t *testing.T, f tlsFiles) copy.Options {
	t.Helper()
	o := testOptions(t)
	o.TLSDir = f.dir
	return o
}

func TestSnapshotIsCopiedOverTLS(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := newTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{tlsHost}})
			source, from := startTLSCache(t, version, f, "-m", "256", "-I", "8m")
			target, to := startTLSCache(t, version, f, "-m", "256", "-I", "8m")
			items := someItems(7, 3000)
			items["large"] = entry{strings.Repeat("x", 5<<20), 3, -1}
			source.put(items)
			bucket := memblob.OpenBucket(nil)
			if _, err := copy.Save(t.Context(), bucket, withTLS(saveTask(source), from), tlsOptions(t, f)); err != nil {
				t.Fatal(err)
			}
			outcome, err := copy.Load(t.Context(), bucket, withTLS(loadTask(target), to), tlsOptions(t, f))
			if err != nil || outcome.Restored != int64(len(items)) {
				t.Fatalf("%+v, %v", outcome, err)
			}
			wantSameItems(t, target, source, names(items), 0)
		})
	}
}

// memcached can wait for more data after pipelined sets, until the connection counts as lost. Several sets of 300 bytes are
// written at a time, those of 5,000 bytes one by one.
func TestRestoreOverTLSDoesNotStall(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for name, size := range map[string]func(i int) int{
			"300 bytes":   func(int) int { return 300 },
			"5,000 bytes": func(int) int { return 5000 },
			"mixed":       func(i int) int { return []int{10, 3000, 7900, 200, 8200, 40, 17000, 900, 1, 5000}[i%10] },
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				f := newTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{tlsHost}})
				source := startCache(t, version)
				target, to := startTLSCache(t, version, f)
				items := map[string]entry{}
				for i := range 50 {
					items["key-"+strconv.Itoa(i)] = entry{strings.Repeat(string(rune('a'+i%26)), size(i)), 0, -1}
				}
				source.put(items)
				bucket := memblob.OpenBucket(nil)
				save(t, bucket, saveTask(source))
				const stall = 15 * time.Second // half of the time after which a connection is lost
				var longest time.Duration
				for range 100 {
					target.talk("flush_all\r\n")
					began := time.Now()
					task := withTLS(loadTask(target), to)
					task.Load.Replace = true
					outcome, err := copy.Load(t.Context(), bucket, task, tlsOptions(t, f))
					if err != nil || outcome.Restored != int64(len(items)) {
						t.Fatalf("%+v, %v", outcome, err)
					}
					if longest = max(longest, time.Since(began)); longest > stall {
						t.Fatalf("a restore took %s", longest)
					}
				}
				t.Logf("the longest of 100 restores took %s", longest)
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
		edit          func(*snapshotwire.Task, *cache)
		want          string
	}{
		"another CA":   {trusts: testcert.NewCA("others"), want: "its certificate isn't accepted for localhost: tls: failed to verify certificate: x509: certificate signed by unknown authority; correct the Secret of spec.tls"},
		"another name": {served: testcert.Options{Names: []string{"example.com"}}, want: "correct the Secret of spec.tls"},
		"expired":      {served: testcert.Options{NotAfter: time.Now().Add(-time.Minute)}, want: "certificate has expired"},
		"no client certificate": {edit: func(task *snapshotwire.Task, _ *cache) { task.TLS.ClientCertificate = false },
			want: "it requires a client certificate: tls: certificate required; wait until the Memcached is Ready"},
		"client certificate of another CA": {signs: testcert.NewCA("others"),
			want: "it rejects the client certificate: tls: unknown certificate authority; correct the Secret of spec.tls"},
		"client certificate for servers only": {presented: testcert.Options{ServerOnly: true},
			want: "it rejects the client certificate: tls: unsupported certificate; correct the Secret of spec.tls"},
		"no TLS": {edit: func(task *snapshotwire.Task, c *cache) { task.Servers = []string{c.address()} }, want: "it serves without TLS; wait until the Memcached is Ready"},
	} {
		c.presented.Names = []string{tlsHost}
		if c.served.Names == nil {
			c.served.Names = []string{tlsHost}
		}
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				served := newTLSFiles(t, ca, c.served)
				source, from := startTLSCache(t, version, served)
				job := newTLSFiles(t, cmp.Or(c.signs, ca), c.presented)
				if err := os.WriteFile(filepath.Join(job.dir, "ca.crt"), cmp.Or(c.trusts, ca).PEM(), 0o644); err != nil { //nolint:gosec // as the others
					t.Fatal(err)
				}
				task := withTLS(saveTask(source), from)
				if c.edit != nil {
					c.edit(&task, source)
				}
				options := tlsOptions(t, job)
				options.ShardTimeout = time.Second
				_, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, options)
				wantContains(t, "the error", wantFailure(t, err, snapshotwire.ReasonShardUnreachable, false), c.want)
			})
		}
	}
}

func TestMigrationIsCopiedWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	f := newTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{tlsHost}})
	secured, address := startTLSCache(t, newest, f)
	plain := startCache(t, newest)
	items := someItems(3, 300)
	secured.put(items)
	plain.put(items)
	task := withTLS(saveTask(secured, plain), address, plain.address())
	task.TLS.AllowPlain = true
	outcome, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, tlsOptions(t, f))
	if err != nil || outcome.Items != int64(2*len(items)) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// BenchmarkSnapshotTLS reports the rates of a save and a load over TLS with client certificates and a login, divided by those
// without. ITEMS is how many items of 500 bytes, and ROUNDS how often.
func BenchmarkSnapshotTLS(b *testing.B) {
	size := number("ITEMS", 200_000)
	f := newTLSFiles(b, testcert.NewCA("shards"), testcert.Options{Names: []string{tlsHost}})
	users, accounts := sharedDir(b), filepath.Join(f.dir, "accounts")
	for name, content := range map[string]string{filepath.Join(users, "app"): "secret", accounts: "app:secret\n"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil { //nolint:gosec // memcached is another user
			b.Fatal(err)
		}
	}
	source, target := startCache(b, newest, "-m", "1024"), startCache(b, newest, "-m", "1024")
	login := []string{"-m", "1024", "-Y", accounts}
	securedSource, from := startTLSCache(b, newest, f, login...)
	securedTarget, to := startTLSCache(b, newest, f, login...)
	fillCaches(b, size, 500, source)
	secured := func(task snapshotwire.Task, address string) snapshotwire.Task {
		task.Login = true
		return withTLS(task, address)
	}
	options := func() copy.Options {
		return copy.Options{SpoolDir: b.TempDir(), TLSDir: f.dir, UsersDir: users, Progress: &copy.Progress{}, Log: slog.New(slog.DiscardHandler)}
	}
	save := func(bucket *blob.Bucket, task snapshotwire.Task) time.Duration {
		began := time.Now()
		if outcome, err := copy.Save(b.Context(), bucket, task, options()); err != nil || outcome.Items != int64(size) {
			b.Fatal(outcome, err)
		}
		return time.Since(began)
	}
	load := func(bucket *blob.Bucket, task snapshotwire.Task) time.Duration {
		task.Load.Replace = true // of the former round
		began := time.Now()
		if outcome, err := copy.Load(b.Context(), bucket, task, options()); err != nil || outcome.Restored != int64(size) {
			b.Fatal(outcome, err)
		}
		return time.Since(began)
	}
	bucket := memblob.OpenBucket(nil)
	save(bucket, saveTask(source))
	load(bucket, secured(loadTask(securedSource), from))
	var saves, loads []float64
	for b.Loop() {
		for range number("ROUNDS", 3) {
			plain, tls := memblob.OpenBucket(nil), memblob.OpenBucket(nil)
			plainSave, tlsSave := save(plain, saveTask(source)), save(tls, secured(saveTask(securedSource), from))
			plainLoad, tlsLoad := load(plain, loadTask(target)), load(tls, secured(loadTask(securedTarget), to))
			b.Logf("save %s plain, %s TLS and login; load %s plain, %s TLS and login", plainSave, tlsSave, plainLoad, tlsLoad)
			saves = append(saves, plainSave.Seconds()/tlsSave.Seconds())
			loads = append(loads, plainLoad.Seconds()/tlsLoad.Seconds())
		}
	}
	b.ReportMetric(quantile(saves, 0.5), "rate-save")
	b.ReportMetric(quantile(loads, 0.5), "rate-load")
	b.ReportMetric(0, "ns/op")
}
