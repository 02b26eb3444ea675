package peers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
	"github.com/memcached-operator/memcached-operator/test/internal/s3"
)

// job runs the program of the Jobs as the kubelet does, but as root.
type job struct {
	*testing.T
	task snapshotwire.Task
	// access and secret are the credentials; empty is none.
	access, secret string
	// wrap goes before the program, environment beside what the kubelet gives.
	wrap, environment []string

	dir string
	// port of its progress, once it runs.
	port    int
	said    *pods.Log
	command *exec.Cmd
	done    chan struct{}
}

// newJob returns the Job of a snapshot in a store.
func newJob(t *testing.T, store snapshotwire.Store) *job {
	t.Helper()
	return &job{T: t, access: s3.AccessKey, secret: s3.SecretKey, dir: t.TempDir(),
		task: snapshotwire.Task{ID: "11111111-2222", Path: "ns/cache/backup-11111111", Store: store,
			Memcached: snapshotwire.Memcached{Namespace: "ns", Name: "cache", UID: "3333"}}}
}

func (j *job) terminationLog() string { return filepath.Join(j.dir, "termination-log") }

// start begins to run an action.
func (j *job) start(action snapshotwire.Action) {
	j.Helper()
	program, err := pods.SnapshotProgram()
	pods.Must(j, err)
	task, err := json.Marshal(j.task)
	pods.Must(j, err)
	pods.WriteFile(j.T, j.terminationLog(), "")
	pods.Must(j, os.Chmod(j.terminationLog(), 0o666))
	j.port, j.said, j.done = pods.FreePort(j.T), &pods.Log{}, make(chan struct{})
	words := append(j.wrap, program, string(action), "-task", string(task),
		"-termination-log", j.terminationLog(), "-listen", fmt.Sprintf("127.0.0.1:%d", j.port))
	j.command = exec.Command(words[0], words[1:]...)
	// The environment that the kubelet sets, and no other variables.
	j.command.Env = append(j.environment, "PATH="+os.Getenv("PATH"), "GOMEMLIMIT=96MiB", "AWS_ACCESS_KEY_ID="+j.access, "AWS_SECRET_ACCESS_KEY="+j.secret)
	j.command.Stdout, j.command.Stderr = j.said, j.said
	pods.Must(j, j.command.Start())
	go func() {
		_ = j.command.Wait()
		close(j.done)
	}()
	j.Cleanup(func() {
		_ = j.command.Process.Kill()
		<-j.done
	})
}

// end waits for the end and returns the outcome and the exit code.
func (j *job) end() (o snapshotwire.Outcome, code int) {
	j.Helper()
	select {
	case <-j.done:
	case <-time.After(pods.Patience):
		_ = j.command.Process.Signal(syscall.SIGQUIT) // it prints what it waits for
		<-j.done
		j.Fatalf("it still runs:\n%s", j.said)
	}
	text, err := os.ReadFile(j.terminationLog())
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		j.Fatalf("the termination message %q: %v\n%s", text, err, j.said)
	}
	if len(text) > 4096 {
		j.Errorf("the termination message has %d bytes", len(text))
	}
	return o, j.command.ProcessState.ExitCode()
}

// run runs an action to its end.
func (j *job) run(action snapshotwire.Action) (snapshotwire.Outcome, int) {
	j.Helper()
	j.start(action)
	return j.end()
}

// must runs an action that succeeds.
func (j *job) must(action snapshotwire.Action) snapshotwire.Outcome {
	j.Helper()
	o, code := j.run(action)
	if code != 0 || o.Reason != snapshotwire.ReasonSucceeded {
		j.Fatalf("%s: exit code %d, %+v\n%s", action, code, o, j.said)
	}
	return o
}

// fails ends the test unless a run finished with a reason, which it reports in these words.
func (j *job) fails(o snapshotwire.Outcome, code int, reason string, final bool, words ...string) {
	j.Helper()
	wanted := snapshotwire.ExitFailed
	if final {
		wanted = snapshotwire.ExitFinal
	}
	if o.Reason != reason || o.Final != final || code != wanted || o.Snapshot != nil {
		j.Fatalf("exit code %d, %+v, want %s, final %v\n%s", code, o, reason, final, j.said)
	}
	for _, word := range words {
		pods.WantContains(j.T, "the message", o.Message, word)
	}
	if j.secret != "" && strings.Contains(j.said.String(), j.secret) {
		j.Errorf("it gives its secret away:\n%s", j.said)
	}
}

// progress requests the Job's progress.
func (j *job) progress() (p snapshotwire.Progress, err error) {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/progress", j.port))
	if err != nil {
		return p, err
	}
	defer response.Body.Close()
	return p, json.NewDecoder(response.Body).Decode(&p)
}

// copies waits until the Job has copied some items, but not all.
func (j *job) copies() {
	j.Helper()
	var p snapshotwire.Progress
	var err error
	if !pods.Eventually(func() bool {
		p, err = j.progress()
		return err == nil && p.Items > 0 && p.TaskID == j.task.ID
	}) {
		j.Fatalf("it copies nothing: %+v, %v\n%s", p, err, j.said)
	}
	if p.TotalItems < p.Items {
		j.Fatalf("it has copied more than there is: %+v", p)
	}
}

// serveS3 serves a folder as S3 until the test ends.
func serveS3(t *testing.T, folder, address string, ca *testcert.CA) *s3.Server {
	t.Helper()
	server, err := s3.Start(context.WithoutCancel(t.Context()), folder, address, ca)
	pods.Must(t, err)
	t.Cleanup(server.Kill)
	return server
}

// trusting returns a file with a CA's certificate.
func trusting(t *testing.T, ca *testcert.CA) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	pods.WriteFile(t, file, string(ca.PEM()))
	return file
}

// bucket returns the store of a server's bucket.
func bucket(server *s3.Server, caFile string) snapshotwire.Store {
	return snapshotwire.Store{S3: &snapshotwire.S3{Bucket: s3.Bucket, Prefix: "cache/production", Endpoint: server.Endpoint, CAFile: caFile}}
}

// filesBelow returns the files of a folder, by their paths in it.
func filesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(folder, path)
			all = append(all, name)
		}
		return err
	})
	pods.Must(t, err)
	return all
}

// smallDisk mounts a folder of so many bytes.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := filepath.Join(pods.SharedDir(t), "disk")
	pods.MakeDir(t, dir)
	pods.Must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=777", size)))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// filled returns a memcached with items.
func filled(t *testing.T, size int) (*pods.Cache, *items.Set) {
	t.Helper()
	server := pods.StartCache(t, pods.Newest, "-m", "256")
	set := items.New("stores", size, server.Address())
	t.Cleanup(func() { _ = set.Close() })
	pods.Must(t, set.Fill())
	return server, set
}

func TestUnusableS3ServerIsReportedWithWhatToDo(t *testing.T) {
	t.Parallel()
	ours, others := testcert.NewCA("ours"), testcert.NewCA("others")
	secure := serveS3(t, t.TempDir(), "127.0.0.1:0", ours)
	plain := serveS3(t, t.TempDir(), "127.0.0.1:0", nil)
	good := func() snapshotwire.Store { return bucket(secure, trusting(t, ours)) }
	with := func(edit func(*snapshotwire.S3)) snapshotwire.Store {
		store := good()
		edit(store.S3)
		return store
	}
	for name, test := range map[string]struct {
		store  snapshotwire.Store
		secret string // "" is the right one
		reason string
		words  []string
	}{
		"a wrong secret":                        {good(), "wrong", snapshotwire.ReasonStoreAccessDenied, []string{"SignatureDoesNotMatch", "credentials"}},
		"a bucket that is not there":            {with(func(b *snapshotwire.S3) { b.Bucket = "another" }), "", snapshotwire.ReasonStoreNotFound, []string{"another", "NoSuchBucket"}},
		"a certificate of an unknown authority": {with(func(b *snapshotwire.S3) { b.CAFile = "" }), "", snapshotwire.ReasonStoreCertificateInvalid, []string{"ca.crt"}},
		"a certificate of another authority":    {bucket(secure, trusting(t, others)), "", snapshotwire.ReasonStoreCertificateInvalid, []string{"ca.crt"}},
		"a certificate of another name": {with(func(b *snapshotwire.S3) { b.Endpoint = strings.Replace(b.Endpoint, "127.0.0.1", "localhost", 1) }),
			"", snapshotwire.ReasonStoreCertificateInvalid, []string{"localhost"}},
		"TLS to a server without it": {with(func(b *snapshotwire.S3) { b.Endpoint = strings.Replace(plain.Endpoint, "http:", "https:", 1) }),
			"", snapshotwire.ReasonStoreCertificateInvalid, []string{"TLS", "http://"}},
		"no TLS to a server with it": {with(func(b *snapshotwire.S3) { b.Endpoint = strings.Replace(b.Endpoint, "https:", "http:", 1) }),
			"", snapshotwire.ReasonStoreCertificateInvalid, []string{"TLS", "https://"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, test.store)
			j.secret = cmp.Or(test.secret, j.secret)
			o, code := j.run(snapshotwire.ActionDelete)
			j.fails(o, code, test.reason, true, test.words...)
		})
	}
}

// The proxy of a Secret has precedence over that of the environment, and its password reaches only the proxy.
func TestStoreIsReachedThroughProxy(t *testing.T) {
	t.Parallel()
	const withPassword = "//user:secret@"
	server := serveS3(t, t.TempDir(), "127.0.0.1:0", nil)
	for name, environment := range map[string]func(proxy string) []string{
		"of the environment": func(proxy string) []string { return []string{"HTTP_PROXY=" + proxy} },
		"of its Secret": func(proxy string) []string {
			return []string{"HTTP_PROXY=http://127.0.0.1:1", snapshotwire.ProxyVariable + "=" + proxy}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var authorized atomic.Int32
			proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				if r.In.Header.Get("Proxy-Authorization") == "Basic dXNlcjpzZWNyZXQ=" {
					authorized.Add(1)
				}
				// the name in the request stays, for it is signed
				r.Out.Host, r.Out.URL.Host = r.In.Host, server.Address()
			}})
			t.Cleanup(proxy.Close)
			place := bucket(server, "")
			place.S3.Endpoint = "http://s3.invalid:9000"
			j := newJob(t, place)
			j.environment = environment(strings.Replace(proxy.URL, "//", withPassword, 1))
			j.must(snapshotwire.ActionDelete)
			if authorized.Load() == 0 {
				t.Error("the proxy got no request with its password")
			}
		})
	}
}

// securityTokenService answers as that of Amazon does to a token of a ServiceAccount.
func securityTokenService(t *testing.T, role, token string) string {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("RoleArn") != role || r.Form.Get("WebIdentityToken") != token {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code>`+
				`<Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			s3.AccessKey, s3.SecretKey, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(service.Close)
	return service.URL
}

func TestStoreIsOpenedByWebIdentity(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::111122223333:role/snapshots"
	server := serveS3(t, t.TempDir(), "127.0.0.1:0", nil)
	service := securityTokenService(t, role, "token-of-the-service-account")
	for name, c := range map[string]struct {
		environment []string
		token       string
		words       []string // of the failure
	}{
		"the role may be assumed": {[]string{"AWS_ROLE_ARN=" + role}, "token-of-the-service-account", nil},
		"another token":           {[]string{"AWS_ROLE_ARN=" + role}, "token", []string{"AccessDenied", "ServiceAccount"}},
		"nothing was injected":    {nil, "token-of-the-service-account", []string{"serviceAccountName", "AWS_ROLE_ARN"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, bucket(server, ""))
			j.access, j.secret = "", ""
			file := filepath.Join(j.dir, "token")
			pods.WriteFile(t, file, c.token)
			j.environment = append(c.environment, "AWS_ENDPOINT_URL_STS="+service, "AWS_WEB_IDENTITY_TOKEN_FILE="+file)
			if c.words == nil {
				j.must(snapshotwire.ActionDelete)
				return
			}
			o, code := j.run(snapshotwire.ActionDelete)
			j.fails(o, code, snapshotwire.ReasonStoreAccessDenied, true, c.words...)
		})
	}
}

func TestSnapshotIsRestoredFromEachKindOfStore(t *testing.T) {
	t.Parallel()
	authority := testcert.NewCA("s3")
	secure, plain := t.TempDir(), t.TempDir()
	folder := filepath.Join(t.TempDir(), "made", "for", "it")
	tests := map[string]struct {
		store snapshotwire.Store
		below string // where its objects are
	}{
		"S3 with TLS":    {bucket(serveS3(t, secure, "127.0.0.1:0", authority), trusting(t, authority)), filepath.Join(secure, s3.Bucket)},
		"S3 without TLS": {bucket(serveS3(t, plain, "127.0.0.1:0", nil), ""), filepath.Join(plain, s3.Bucket)},
		"a folder":       {snapshotwire.Store{Folder: folder}, folder},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10_000
			from, set := filled(t, size)
			into := pods.StartCache(t, pods.Newest, "-m", "256")
			j := newJob(t, test.store)
			j.task.Servers = []string{from.Address()}
			saved := j.must(snapshotwire.ActionSave)
			if saved.Items != size || saved.Snapshot == nil || saved.Snapshot.Items != size {
				t.Fatalf("the outcome is %+v", saved)
			}
			if again := j.must(snapshotwire.ActionSave); again.Snapshot == nil || !again.Snapshot.TakenAt.Equal(saved.Snapshot.TakenAt) {
				t.Errorf("a second run of the same Job made another snapshot: %+v, before %+v", again.Snapshot, saved.Snapshot)
			}
			at := j.task.Path
			if test.store.S3 != nil {
				at = filepath.Join(test.store.S3.Prefix, at)
			}
			for _, file := range filesBelow(t, test.below) {
				if !strings.HasPrefix(file, at+"/") || strings.HasSuffix(file, ".attrs") || strings.HasSuffix(file, ".tmp") {
					t.Errorf("there is %s", file)
				}
			}
			j.inspect(size)

			j.task.Servers, j.task.Load = []string{into.Address()}, &snapshotwire.Load{}
			loaded := j.must(snapshotwire.ActionLoad)
			if loaded.Restored != size {
				t.Errorf("it restored %+v", loaded)
			}
			there := items.New("stores", size, into.Address())
			t.Cleanup(func() { _ = there.Close() })
			for _, all := range []*items.Set{there, set} {
				_, err := all.Keep(1)
				pods.Must(t, err)
			}

			j.must(snapshotwire.ActionDelete)
			if left := filesBelow(t, test.below); len(left) > 0 {
				t.Errorf("after it was deleted there is %v", left)
			}
			if _, err := os.Stat(filepath.Join(test.below, "ns")); err == nil {
				t.Error("after it was deleted its folders are there")
			}
			j.must(snapshotwire.ActionDelete)
		})
	}
}

// inspect runs the inspect command on the Job's snapshot.
func (j *job) inspect(size int) {
	j.Helper()
	program, err := pods.SnapshotProgram()
	pods.Must(j, err)
	place := j.task.Store.Folder
	if b := j.task.Store.S3; b != nil {
		place = fmt.Sprintf("s3://%s/%s?endpoint=%s", b.Bucket, b.Prefix, b.Endpoint)
		if b.CAFile != "" {
			place += "&ca=" + b.CAFile
		}
	}
	command := exec.Command(program, "inspect", "-store", place, "-path", j.task.Path, "-verify")
	command.Env = []string{"AWS_ACCESS_KEY_ID=" + j.access, "AWS_SECRET_ACCESS_KEY=" + j.secret}
	out, err := command.CombinedOutput()
	pods.Must(j, err)
	pods.WantContains(j.T, "what is in it", string(out), fmt.Sprint(size))
}

// noisy returns a memcached with items of 100 kB, which nothing makes smaller.
func noisy(t *testing.T, size int) *pods.Cache {
	t.Helper()
	server := pods.StartCache(t, pods.Newest, "-m", "256")
	conn, err := net.Dial("tcp", server.Address())
	pods.Must(t, err)
	defer conn.Close()
	value := make([]byte, 100_000)
	noise := rand.NewChaCha8([32]byte{})
	for i := range size {
		_, _ = noise.Read(value)
		_, err := fmt.Fprintf(conn, "set noise-%d 0 0 %d\r\n%s\r\n", i, len(value), value)
		pods.Must(t, err)
	}
	answers := bufio.NewScanner(io.LimitReader(conn, int64(size*len("STORED\r\n"))))
	for answers.Scan() {
		if answers.Text() != "STORED" {
			t.Fatalf("memcached says %q", answers.Text())
		}
	}
	return server
}

func TestUnwritableStoreIsReportedAndContainsNoSnapshot(t *testing.T) {
	t.Parallel()
	const disk = 8 << 20
	from := noisy(t, 200) // 20 MB
	locked := pods.SharedDir(t)
	pods.Must(t, os.Chmod(locked, 0o755))
	readOnly := smallDisk(t, disk)
	pods.Must(t, syscall.Mount("", readOnly, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	asNobody := []string{"setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "--no-new-privs", "--bounding-set=-all"}
	full, fullOfS3 := smallDisk(t, disk), smallDisk(t, disk)
	tests := []struct {
		name   string
		store  snapshotwire.Store
		folder string
		wrap   []string
		reason string
		words  []string
		passes bool // it is worth another try
	}{
		{name: "a full volume", store: snapshotwire.Store{Folder: full}, folder: full, reason: snapshotwire.ReasonStoreFull, words: []string{"no space left", "make room"}},
		// which does not say why
		{name: "a full server of S3", store: bucket(serveS3(t, fullOfS3, "127.0.0.1:0", nil), ""), folder: fullOfS3, reason: snapshotwire.ReasonStoreFailed, words: []string{"InternalError"}, passes: true},
		{name: "a volume that is read-only", store: snapshotwire.Store{Folder: readOnly}, folder: readOnly, reason: snapshotwire.ReasonStoreReadOnly, words: []string{"read-only"}},
		{name: "a folder that cannot be created", store: snapshotwire.Store{Folder: filepath.Join(readOnly, "a")}, folder: readOnly, reason: snapshotwire.ReasonStoreNotFound, words: []string{"read-only", "name"}},
		{name: "a volume of another user", store: snapshotwire.Store{Folder: locked}, folder: locked, wrap: asNobody, reason: snapshotwire.ReasonStoreAccessDenied, words: []string{"fsGroup"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, test.store)
			j.task.Servers, j.wrap = []string{from.Address()}, test.wrap
			if test.wrap != nil {
				// its folder is root's alone
				j.dir = pods.SharedDir(t)
			}
			o, code := j.run(snapshotwire.ActionSave)
			j.fails(o, code, test.reason, !test.passes, test.words...)
			left := slices.DeleteFunc(filesBelow(t, test.folder), func(name string) bool { return filepath.Base(name) == "attempt.json" }) // some bytes
			if len(left) > 0 {
				t.Errorf("there is %v: what is full stays full", left)
			}
			t.Log(o.Message)
		})
	}
}

func TestStoreThatRestartsMidwayFailsNothing(t *testing.T) {
	t.Parallel()
	const size = 200
	from, into := noisy(t, size), pods.StartCache(t, pods.Newest, "-m", "256")
	folder := t.TempDir()
	server := serveS3(t, folder, fmt.Sprintf("127.0.0.1:%d", pods.FreePort(t)), nil) // which no other process gets in between
	j := newJob(t, bucket(server, ""))
	j.task.Servers = []string{from.Address()}
	restarted := func(action snapshotwire.Action) snapshotwire.Outcome {
		t.Helper()
		j.task.BytesPerSecond = 2 << 20 // 10 s, in which this test must look once
		j.start(action)
		j.copies()
		server.Kill()
		server = serveS3(t, folder, server.Address(), nil)
		o, code := j.end()
		if code != 0 {
			t.Fatalf("%s: exit code %d, %+v\n%s", action, code, o, j.said)
		}
		return o
	}
	if saved := restarted(snapshotwire.ActionSave); saved.Items != size {
		t.Errorf("the outcome is %+v", saved)
	}
	j.task.Servers, j.task.Load = []string{into.Address()}, &snapshotwire.Load{}
	if loaded := restarted(snapshotwire.ActionLoad); loaded.Restored != size || into.Items() != size {
		t.Errorf("the outcome is %+v, and %d items are there", loaded, into.Items())
	}
}

// A manifest of very many chunks is larger than a part.
func TestMultipartObjectIsCompleteOrAbsent(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3.SecretKey)
	folder := t.TempDir()
	server := serveS3(t, folder, "127.0.0.1:0", nil)
	backend, err := url.Parse(server.Endpoint)
	pods.Must(t, err)
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	forward := httputil.NewSingleHostReverseProxy(backend)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/aborted") && r.URL.Query().Get("partNumber") == "2" {
			abort()
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	b, err := store.Open(t.Context(), snapshotwire.Store{S3: &snapshotwire.S3{Bucket: s3.Bucket, Endpoint: proxy.URL}})
	pods.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	content := make([]byte, 17<<20+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	pods.Must(t, store.Put(t.Context(), b, "whole", content))
	if err := store.Put(ctx, b, "aborted", content); !errors.Is(err, context.Canceled) {
		t.Errorf("an aborted write returned %v", err)
	}
	if got, err := b.ReadAll(t.Context(), "whole"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if there, err := b.Exists(t.Context(), "aborted"); there || err != nil {
		t.Errorf("what was aborted exists: %v, %v", there, err)
	}
	if files := filesBelow(t, folder); len(files) != 1 {
		t.Errorf("there is %v", files)
	}
}
