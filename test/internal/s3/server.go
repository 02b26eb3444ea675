package s3

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// Credentials that a server takes.
const (
	AccessKey = "backup-tests"
	SecretKey = "a-secret-of-the-tests"
	// Bucket that there is.
	Bucket = "backups"
)

// startWithin is how long a server has to answer.
const startWithin = 30 * time.Second

// Server is a process that serves a folder.
type Server struct {
	// Endpoint is its URL.
	Endpoint string
	// Folder whose folders are the buckets.
	Folder string
	// Authority of its certificate, nil without TLS.
	Authority *Authority

	files   string // certificate and key
	process *exec.Cmd
	ended   chan struct{}
}

// Start serves a folder, in which it makes Bucket, on an address host:port; port 0
// is any that is free. The program is that of the environment variable S3_SERVER.
func Start(ctx context.Context, folder, address string, authority *Authority) (*Server, error) {
	program := os.Getenv("S3_SERVER")
	if program == "" {
		return nil, errors.New("S3_SERVER is not set: run make test, or eval $(make -s env)")
	}
	if err := os.MkdirAll(filepath.Join(folder, Bucket), 0o777); err != nil {
		return nil, err
	}
	s := &Server{Folder: folder, Authority: authority}
	args := arguments(folder, address)
	if authority != nil {
		more, err := s.certify(address)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	s.process = exec.CommandContext(ctx, program, args...)
	// With its tests, however these end.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := s.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	found := make(chan string, 1)
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		listen(said, found)
		_ = s.process.Wait() // it ends by a signal
	}()
	select {
	case text := <-found:
		s.Endpoint = text
	case <-time.After(startWithin):
		err = errors.New("a server of S3 did not start in time")
	}
	if err == nil && s.Endpoint == "" {
		err = errors.New("a server of S3 ended at its start")
	}
	if err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// arguments of the program for a folder. It remembers what it found there for
// minutes, so that what tests change below it is seen after a new start: without
// that (--dir-cache-time 0) it forgets an object amid its upload, and hangs.
func arguments(folder, address string) []string {
	return []string{"s3", folder, "--addr", address, "--auth-key", AccessKey + "," + SecretKey, "--config", ""}
}

// started is what it says when it listens.
var started = regexp.MustCompile(`Starting s3 server on \[(https?://[^/\s]+)/?\]`)

// listen sends the URL that a server says it has, or none at its end, and reads on.
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

// certify writes a certificate for a server's address and returns the arguments for it.
func (s *Server) certify(address string) ([]string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	certificate, key, err := s.Authority.Issue(host)
	if err != nil {
		return nil, err
	}
	if s.files, err = os.MkdirTemp("", "s3-"); err != nil {
		return nil, err
	}
	certificateFile, keyFile := filepath.Join(s.files, "tls.crt"), filepath.Join(s.files, "tls.key")
	if err := errors.Join(os.WriteFile(certificateFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return nil, err
	}
	return []string{"--cert", certificateFile, "--key", keyFile}, nil
}

// Address returns host:port, on which another can be started when this one has ended.
func (s *Server) Address() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// Pause stops the server amid what it does, or has it go on.
func (s *Server) Pause(paused bool) error {
	signal := syscall.SIGCONT
	if paused {
		signal = syscall.SIGSTOP
	}
	return s.process.Process.Signal(signal)
}

// Kill ends the server at once and waits until it has.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
	if s.files != "" {
		_ = os.RemoveAll(s.files)
	}
}
