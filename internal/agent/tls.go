package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// secretTimeout is how long a container without its Secrets waits for them before it exits with the reason.
	secretTimeout = 45 * time.Second
	// reloadRetry is the time between two attempts to let memcached serve the Secret's certificate.
	reloadRetry = 5 * time.Second
	// reloadTimeout bounds such an attempt, and one to let memcached read the Secret's users. memcached needs
	// milliseconds for a certificate, and a second for users.
	reloadTimeout = time.Minute
)

// tlsFiles are the files that memcached reads its certificate from. They stay in the data volume, so that
// a container starts with the last certificate that could be used.
type tlsFiles struct{ dir string }

func (f tlsFiles) combined() string { return filepath.Join(f.dir, "tls.pem") }
func (f tlsFiles) ca() string       { return filepath.Join(f.dir, "ca.pem") }

// write replaces the files.
func (f tlsFiles) write(c *certificate) error {
	for path, content := range map[string][]byte{f.combined(): c.combined, f.ca(): c.ca} {
		if err := files.Replace(path, content); err != nil {
			return fmt.Errorf("writing the certificate: %w", err)
		}
	}
	return nil
}

// read returns what was written last.
func (f tlsFiles) read(host string, now time.Time) (*certificate, error) {
	combined, err := os.ReadFile(f.combined())
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(f.ca())
	if err != nil {
		return nil, err
	}
	return parseCertificate(combined, combined, ca, host, now)
}

// commandLine returns memcached's words for a start, and the address at which the agent connects to it,
// which is without TLS.
//
// No address can have TLS and plain connections. If clients may use both, memcached has a loopback address
// for each, and the agent forwards the connections of clients to them.
func (f tlsFiles) commandLine(words []string, loopbackPort int) (line []string, own string) {
	mode := cmdline.TLSModeOf(words)
	if !mode.On {
		return words, cmdline.PlainAddress(words)
	}
	own = net.JoinHostPort("127.0.0.1", strconv.Itoa(loopbackPort))
	return append(f.withoutListeners(words, mode), "-l", mode.Address("*", loopbackPort), "-l", "notls:"+own), own
}

// withoutListeners returns the words with the files, and without addresses.
func (f tlsFiles) withoutListeners(words []string, mode cmdline.TLSMode) (line []string) {
	for i := 0; i < len(words); i++ {
		if words[i] == "-l" { // the operator writes it as a word of its own
			i++
			continue
		}
		line = append(line, words[i])
	}
	files := "ssl_chain_cert=" + f.combined() + ",ssl_key=" + f.combined()
	if mode.VerifiesClients {
		files += ",ssl_ca_cert=" + f.ca()
	}
	return append(line, "-o", files)
}

// serverTLS is what the supervisor knows of the certificate.
type serverTLS struct {
	tlsFiles
	// volume of the Secret; empty if none is mounted. host is the name of this shard for clients.
	volume, host string
	// generation that was read last, and its content or why memcached can't use it. checkedAt is when.
	generation string
	offered    *certificate
	invalid    error
	checkedAt  time.Time

	// loaded is what memcached started with or reloaded last, and served what it serves: it can keep
	// the one before. Both are nil without TLS. keyTypes and cas are all that it has had since its start.
	loaded, served *certificate
	keyTypes       []string
	cas            []*x509.Certificate
	// reload in progress; nil while there is none. retryAt is when the next one may begin.
	reload  *reload
	retryAt time.Time
	// rejected is why memcached doesn't load the certificate of the Secret, and restart why it has to
	// restart to serve nothing else; empty if it does.
	rejected, restart string
}

func newServerTLS(c config) *serverTLS {
	host, _, _ := net.SplitHostPort(c.service)
	return &serverTLS{tlsFiles: tlsFiles{c.dataDir}, volume: c.tlsVolume, host: host, generation: "not read yet"}
}

// poll reads the Secret if it has changed, and reports whether it has. A certificate with a problem is read
// again, as it can become valid.
func (t *serverTLS) poll(now time.Time) (changed bool) {
	if t.volume == "" {
		return false
	}
	generation, err := files.Generation(t.volume)
	isSame := err == nil && generation == t.generation
	if isSame && (t.offered == nil || t.offered.problem == nil || now.Sub(t.checkedAt) < reloadRetry) {
		return false
	}
	was := t.problem()
	t.generation, t.checkedAt = generation, now
	t.offered, t.invalid = readCertificate(t.volume, t.host, now)
	return !isSame && err == nil || t.problem() != was
}

// problem is why the content of the Secret can't be used; empty if it can.
func (t *serverTLS) problem() string {
	switch {
	case t.invalid != nil:
		return t.invalid.Error()
	case t.offered != nil && t.offered.problem != nil:
		return t.offered.problem.Error()
	}
	return ""
}

// prepare writes the certificate with which memcached starts: that of the Secret, or the one before it if that has a
// problem. Without a better one, it is that of the Secret in spite of its problem: only some clients reject it.
func (t *serverTLS) prepare(mode cmdline.TLSMode, now time.Time) (*certificate, error) {
	t.poll(now)
	last, _ := t.read(t.host, now)
	err := t.invalid
	if t.volume == "" {
		err = errors.New("no Secret is mounted")
	}
	for _, c := range []*certificate{t.offered, last} {
		if c == nil || c == t.offered && c.problem != nil && last != nil && last.problem == nil {
			continue
		}
		if err = c.serves(mode); err == nil {
			return c, t.write(c)
		}
	}
	return nil, err
}

// forStart returns the certificate with which memcached starts; nil without TLS.
func (t *serverTLS) forStart(words []string, now time.Time) (*certificate, error) {
	mode := cmdline.TLSModeOf(words)
	if !mode.On {
		return nil, nil
	}
	c, err := t.prepare(mode, now)
	if err != nil {
		return nil, fmt.Errorf("the certificate for TLS can't be used: %w", err)
	}
	return c, nil
}

// awaitSecrets waits until the first memcached of a pod can start: the Secrets of a new cache can be created
// after its pods, and the kubelet needs a minute or two to mount them.
func awaitSecrets(memcached binary, text string, saved savedData, terminations <-chan os.Signal, log *slog.Logger) error {
	words, err := cmdline.Parse(text)
	if err != nil || !saved.last.At.IsZero() {
		return nil
	}
	for deadline, logged := time.Now().Add(secretTimeout), false; ; logged = true {
		_, err := memcached.tls.forStart(words, time.Now())
		if err == nil {
			_, err = memcached.users.prepare(words)
		}
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%w; if the Secret is correct, the kubelet has not mounted it within %s", err, secretTimeout)
		case !logged:
			log.Info("Waiting for a Secret", "error", err)
		}
		select {
		case <-terminations:
			return err
		case <-time.After(pollInterval):
		}
	}
}

// started records what memcached was started with; nil without TLS.
func (t *serverTLS) started(c *certificate) {
	t.loaded, t.served, t.reload, t.keyTypes, t.cas, t.rejected, t.restart = c, c, nil, nil, nil, "", ""
	if c != nil {
		t.keyTypes, t.cas = []string{c.keyType()}, slices.Clone(c.cas)
	}
}

// secrets returns what the agent reports of its Secrets; nil if none is mounted.
func (s *supervisor) secrets() *wire.Secrets {
	if s.tls.volume == "" && s.users.volume == "" {
		return nil
	}
	return &wire.Secrets{Certificate: s.tls.status(), Users: wire.Users{Error: cmp.Or(s.users.problem(), s.users.rejected)}}
}

// status returns what the agent reports of the certificate.
func (t *serverTLS) status() wire.Certificate {
	s := wire.Certificate{Error: cmp.Or(t.problem(), t.rejected), RestartRequired: t.restart}
	if t.served != nil {
		s.SHA256, s.NotBefore, s.NotAfter = t.served.fingerprint(), t.served.leaf.NotBefore, t.served.leaf.NotAfter
	}
	if s.Error == "" && t.offered != nil {
		s.Offered = t.offered.fingerprint()
	}
	return s
}

// reload is an attempt to let memcached serve another certificate.
type reload struct {
	process *process.Process
	to      *certificate
	// previous is what memcached served before.
	previous *certificate
	mode     cmdline.TLSMode
	files    tlsFiles
	address  string
}

// reloadEnd is its result. served is the fingerprint of the certificate that memcached serves; empty if
// that is unknown.
type reloadEnd struct {
	reload *reload
	served string
	err    error
}

// run replaces the files, lets memcached read them, and compares what it serves.
func (r *reload) run() reloadEnd {
	end := reloadEnd{reload: r}
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	if end.err = r.files.write(r.to); end.err == nil {
		if end.err = r.refresh(ctx); end.err != nil && protocol.IsAnswer(end.err) {
			// It can have loaded a part, with which it rejects all connections.
			if err := r.files.write(r.previous); err == nil {
				_ = r.refresh(ctx)
			}
		}
	}
	if end.err == nil {
		end.served, end.err = servedFingerprint(ctx, r.process.Client.Server, r.address)
	}
	if ctx.Err() != nil && end.err != nil && !protocol.IsAnswer(end.err) {
		end.err = &process.SlowError{Action: "load the certificate of the Secret", Within: reloadTimeout}
	}
	return end
}

func (r *reload) refresh(ctx context.Context) error {
	return r.process.Client.Command(ctx, (*protocol.Conn).RefreshCertificates)
}

// servedFingerprint returns that of the certificate at an address.
func servedFingerprint(ctx context.Context, server protocol.Server, address string) (served string, err error) {
	conn, err := protocol.Server{Address: address, DialContext: server.DialContext}.Connect(ctx)
	if err == nil {
		err = tls.Client(conn, &tls.Config{
			InsecureSkipVerify: true, // this compares it with the one that is expected
			MinVersion:         tls.VersionTLS12,
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				served = fingerprint(raw[0])
				return nil
			},
		}).HandshakeContext(ctx)
		_ = conn.Close()
	}
	if served != "" { // a server that requires a client certificate ends the handshake after that
		return served, nil
	}
	return "", fmt.Errorf("reading the certificate that memcached serves: %w", err)
}

// pollCertificate reads the Secret, and lets memcached load a certificate that it can use.
func (s *supervisor) pollCertificate() {
	t, now := s.tls, s.now()
	if t.poll(now) {
		if problem := t.problem(); problem != "" {
			s.log.Warn("Cannot use the certificate in the Secret", "reason", problem)
		} else {
			s.log.Info("The Secret has a certificate", "sha256", t.offered.fingerprint(), "notAfter", t.offered.leaf.NotAfter)
		}
		t.rejected, t.retryAt = "", time.Time{}
		if s.rejection != "" {
			s.handled.arguments = "" // the certificate may have been the reason
		}
		s.publish()
	}
	serving := s.phase == wire.PhaseServing || s.phase == wire.PhaseDraining
	if t.loaded == nil || !serving || t.reload != nil || t.offered == nil || t.offered == t.loaded || t.problem() != "" || now.Before(t.retryAt) {
		return
	}
	t.retryAt = now.Add(reloadRetry)
	mode := cmdline.TLSModeOf(s.arguments)
	if err := t.offered.serves(mode); err != nil {
		t.rejected = err.Error()
		s.publish()
		return
	}
	t.reload = &reload{process: s.process, to: t.offered, previous: t.loaded, mode: mode, files: t.tlsFiles,
		address: mode.Address("127.0.0.1", s.loopbackPort)}
	go func(r *reload) { s.reloads <- r.run() }(t.reload)
}

// handleReload records what memcached serves now.
func (s *supervisor) handleReload(end reloadEnd) {
	t := s.tls
	if end.reload.process != s.process { // memcached has stopped since
		return
	}
	t.reload = nil
	if process.IsSlow(end.err) {
		s.log.Warn("memcached has not loaded the certificate yet; trying again", "reason", end.err)
		return
	}
	if end.err != nil {
		t.rejected = end.err.Error()
		s.log.Warn("memcached did not load the certificate; it keeps the previous one", "error", end.err)
		s.publish()
		return
	}
	to := end.reload.to
	t.rejected, t.restart = "", t.restartReason(to, end)
	t.loaded, t.keyTypes, t.cas = to, append(t.keyTypes, to.keyType()), append(t.cas, to.cas...)
	if end.served == to.fingerprint() {
		t.served = to
	}
	s.log.Info("memcached has loaded the certificate", "sha256", end.served, "notAfter", to.leaf.NotAfter, "restartRequired", t.restart)
	s.publish()
}

// restartReason returns why memcached has to restart after it has loaded a certificate; empty if not.
func (t *serverTLS) restartReason(to *certificate, end reloadEnd) string {
	hasOtherType := slices.ContainsFunc(t.keyTypes, func(keyType string) bool { return keyType != to.keyType() })
	removed := to.lacks(t.cas)
	switch {
	case hasOtherType || end.served != to.fingerprint():
		return fmt.Sprintf("memcached can still serve the previous certificate beside the new one, whose key is of type %s", to.keyType())
	case end.reload.mode.VerifiesClients && removed != nil:
		return fmt.Sprintf("memcached still accepts clients of CA %s, which ca.crt no longer contains", removed.Subject)
	}
	return ""
}
