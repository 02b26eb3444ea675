// Package secrets lets memcached use what mounted Secrets contain: the certificate for TLS, and the users that may log in.
//
// It reads a Secret one generation at a time, since memcached rejects all connections after it has loaded a certificate
// with the key of another one. What memcached can use is written into the data volume. A running memcached loads it
// from there: it compares the certificate that memcached then serves, and logs in as each user. A Secret that can't be
// used changes nothing.
package secrets

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// mountTimeout is how long a container without its Secrets waits for them before it exits with the reason.
	mountTimeout = 45 * time.Second
	// mountInterval is how often it reads them in the meantime.
	mountInterval = 500 * time.Millisecond
)

// Volumes are the paths of mounted Secrets; empty if the pod has none.
type Volumes struct{ Certificate, Users string }

// Set has the Secrets of a pod. Its methods are for one goroutine.
type Set struct {
	certificate secret[*certificate]
	users       secret[*users]
	// loopbackPort is where memcached serves the agent while it serves clients with TLS.
	loopbackPort int
	log          *slog.Logger
	running      running
}

// NewSet returns the Secrets of a pod that clients reach at host. dir is the data volume.
func NewSet(volumes Volumes, dir, host string, loopbackPort int, log *slog.Logger) *Set {
	return &Set{
		certificate:  newCertificates(volumes.Certificate, dir, host, log),
		users:        newUsers(volumes.Users, dir, rand.Text(), log),
		loopbackPort: loopbackPort, log: log,
	}
}

// Throwaway returns Secrets with which memcached starts in a pod without them. It writes them into dir.
func Throwaway(dir string) (*Set, error) {
	s := NewSet(Volumes{}, dir, "", 0, slog.New(slog.DiscardHandler))
	c, err := throwawayCertificate()
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	return s, errors.Join(write(dir, c), write(dir, &users{[]user{{"preflight", password}}, password}))
}

// Await waits until memcached can start with its arguments: the Secrets of a new cache can be created after its pods,
// and the kubelet needs a minute or two to mount them.
func (s *Set) Await(arguments []string, terminations <-chan os.Signal) error {
	for deadline, logged := time.Now().Add(mountTimeout), false; ; logged = true {
		_, err := s.Prepare(arguments, time.Now())
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%w; if the Secret is correct, the kubelet has not mounted it within %s", err, mountTimeout)
		case !logged:
			s.log.Info("Waiting for a Secret", "error", err)
		}
		select {
		case <-terminations:
			return err
		case <-time.After(mountInterval):
		}
	}
}

// Prepare writes what memcached needs of the Secrets to start with its arguments.
func (s *Set) Prepare(arguments []string, now time.Time) (Start, error) {
	certificate, err := s.certificate.prepare(arguments, now)
	users, usersErr := s.users.prepare(arguments, now)
	return Start{arguments, s.certificate.dir, s.loopbackPort, certificate, users}, errors.Join(err, usersErr)
}

// Problem returns why memcached can't change from its current arguments to the desired ones; nil if the Secrets let it.
func (s *Set) Problem(desired, current []string) error {
	return errors.Join(s.certificate.problemOf(desired, current), s.users.problemOf(desired, current))
}

// Memcached is one that runs.
type Memcached struct {
	// Server is how the agent connects to it.
	Server protocol.Server
	// Command sends it a command over a connection that is kept.
	Command func(context.Context, func(*protocol.Conn, context.Context) error) error
	Signal  func(os.Signal) error
	// Done is closed when it has exited.
	Done <-chan struct{}
}

// running is a memcached and its start.
type running struct {
	Memcached
	Start
}

// Started records that memcached runs after it was started as prepared.
func (s *Set) Started(start Start, m Memcached) {
	s.running = running{m, start}
	s.certificate.started(start.certificate)
	s.users.started(start.users)
}

// Poll reads the Secrets that have changed, and reports whether one has.
func (s *Set) Poll(now time.Time) (changed bool) {
	certificate, users := s.certificate.poll(now), s.users.poll(now)
	return certificate || users
}

// Load lets a memcached that serves load what has changed. It returns at once; report gets each result on another
// goroutine.
func (s *Set) Load(now time.Time, report func(Loaded)) {
	s.certificate.load(s.running, now, report)
	s.users.load(s.running, now, report)
}

// Status returns what the agent reports of its Secrets; nil if none is mounted.
func (s *Set) Status() *wire.Secrets {
	if s.certificate.volume == "" && s.users.volume == "" {
		return nil
	}
	c := wire.Certificate{
		Error:           s.certificate.failure(),
		RestartRequired: restartReason(s.certificate.loaded, s.certificate.used, s.running.arguments),
	}
	if used := s.certificate.used; used != nil {
		c.SHA256, c.NotBefore, c.NotAfter = used.fingerprint(), used.leaf.NotBefore, used.leaf.NotAfter
	}
	if c.Error == "" && s.certificate.offered != nil {
		c.Offered = s.certificate.offered.identity()
	}
	return &wire.Secrets{Certificate: c, Users: wire.Users{Error: s.users.failure()}}
}

// Start is a start of memcached with its Secrets.
type Start struct {
	arguments    []string
	dir          string
	loopbackPort int
	// certificate is nil without TLS, and users without authentication.
	certificate *certificate
	users       *users
}

// Line returns memcached's words, and how the agent connects to it, which is without TLS.
//
// No address can have TLS and plain connections. If clients may use both, memcached has a loopback address
// for each, and the agent forwards the connections of clients to them.
func (s Start) Line() (words []string, server protocol.Server) {
	mode := cmdline.TLSModeOf(s.arguments)
	if !mode.On {
		return s.withUsers(s.arguments), s.server(cmdline.PlainAddress(s.arguments))
	}
	own := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.loopbackPort))
	return s.withUsers(append(s.withoutListeners(), "-l", mode.Address("*", s.loopbackPort), "-l", "notls:"+own)), s.server(own)
}

// DryRunLine returns the words of a memcached that listens at one loopback address, and how the agent connects to it. With
// TLS it is an address without TLS, and memcached loads its certificate nevertheless.
func (s Start) DryRunLine(port int) (words []string, server protocol.Server) {
	own := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	words = append(slices.Clone(s.arguments), "-l", own)
	if cmdline.TLSModeOf(s.arguments).On {
		words = append(s.withoutListeners(), "-l", "notls:"+own)
	}
	return s.withUsers(append(words, "-U", "0")), s.server(own)
}

// tlsAddress is where the agent reads the certificate that memcached serves.
func (s Start) tlsAddress() string {
	return cmdline.TLSModeOf(s.arguments).Address("127.0.0.1", s.loopbackPort)
}

// withoutListeners returns the arguments with the files of the certificate, and without addresses.
func (s Start) withoutListeners() (words []string) {
	for i := 0; i < len(s.arguments); i++ {
		if s.arguments[i] == "-l" { // the operator writes it as a word of its own
			i++
			continue
		}
		words = append(words, s.arguments[i])
	}
	combined := filepath.Join(s.dir, combinedFile)
	option := "ssl_chain_cert=" + combined + ",ssl_key=" + combined
	if cmdline.TLSModeOf(s.arguments).VerifiesClients {
		option += ",ssl_ca_cert=" + filepath.Join(s.dir, caFile)
	}
	return append(words, "-o", option)
}

// withUsers returns the words with the file of the users.
func (s Start) withUsers(words []string) []string {
	words = slices.Clone(words)
	if i := slices.Index(words, "-Y"); i >= 0 && i+1 < len(words) { // the operator writes it as a word of its own
		words[i+1] = filepath.Join(s.dir, usersFile)
	}
	return words
}

func (s Start) server(address string) protocol.Server {
	server := protocol.At(address)
	if s.users != nil {
		server.User, server.Password = ownUser, s.users.password
	}
	return server
}
