// Package s3 runs a real S3 server for tests: rclone, which serves the folders of a folder as buckets. It runs as a process
// or in a cluster, with TLS by a CA of the tests.
package s3

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// Credentials of a server, and its bucket.
const (
	AccessKey = "backup-tests"
	SecretKey = "a-secret-of-the-tests"
	Bucket    = "backups"
)

const serverStartTimeout = 5 * time.Minute

// Server is a process that serves a folder.
type Server struct {
	Endpoint string

	files   string // certificate and key
	process *exec.Cmd
	exited  chan struct{}
}

// Start serves a folder, in which it creates Bucket, on a port of 127.0.0.1; port 0 means a free one. A CA issues its
// certificate; nil is a server without TLS. The program is that of the environment variable S3_SERVER.
func Start(ctx context.Context, folder, address string, ca *testcert.CA) (*Server, error) {
	program := os.Getenv("S3_SERVER")
	if program == "" {
		return nil, errors.New("S3_SERVER is not set: run make test, or eval $(make -s env)")
	}
	if err := os.MkdirAll(filepath.Join(folder, Bucket), 0o777); err != nil {
		return nil, err
	}
	s := &Server{}
	args := arguments(folder, address)
	if ca != nil {
		var err error
		if s.files, err = os.MkdirTemp("", "s3-"); err != nil {
			return nil, err
		}
		crt, key := ca.Issue(testcert.Options{Names: []string{"127.0.0.1"}})
		certificateFile, keyFile := filepath.Join(s.files, "tls.crt"), filepath.Join(s.files, "tls.key")
		if err := errors.Join(os.WriteFile(certificateFile, crt, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
			return nil, err
		}
		args = append(args, "--cert", certificateFile, "--key", keyFile)
	}
	s.process = exec.CommandContext(ctx, program, args...)
	// It exits with the tests, however these end.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := s.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	found := make(chan string, 1)
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		listen(said, found)
		_ = s.process.Wait() // killed by a signal
	}()
	select {
	case text := <-found:
		s.Endpoint = text
	case <-time.After(serverStartTimeout):
		err = errors.New("the S3 server did not start in time")
	}
	if err == nil && s.Endpoint == "" {
		err = errors.New("the S3 server exited at its start")
	}
	if err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// arguments of the program for a folder. rclone caches the folder for minutes: changes of its files need a restart.
// Without the cache (--dir-cache-time 0) it loses objects during their upload and hangs.
func arguments(folder, address string) []string {
	return []string{"s3", folder, "--addr", address, "--auth-key", AccessKey + "," + SecretKey, "--config", ""}
}

// started matches the line that rclone logs when it listens.
var started = regexp.MustCompile(`Starting s3 server on \[(https?://[^/\s]+)/?\]`)

// listen sends the URL of a server, or none if it exits, and keeps reading its log.
func listen(said io.Reader, found chan<- string) {
	defer close(found)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if m := started.FindSubmatch(lines.Bytes()); m != nil {
			found <- string(bytes.Clone(m[1]))
			break
		}
	}
	_, _ = io.Copy(io.Discard, said)
}

// Address returns host:port, on which another server can start after this one.
func (s *Server) Address() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// Kill kills the server and waits until it has exited.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may have exited
	<-s.exited
	if s.files != "" {
		_ = os.RemoveAll(s.files)
	}
}
