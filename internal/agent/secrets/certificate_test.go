package secrets

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/internal/testvolume"
)

var discard = slog.New(slog.DiscardHandler)

func TestCertificateAndKeyAreOfTheSameGeneration(t *testing.T) {
	ca := testcert.NewCA("shards")
	first, second := issue(ca, testcert.Options{}), issue(ca, testcert.Options{})
	volume := testvolume.New(t, first)
	// The reader opens tls.key after it has read tls.crt, and the kubelet replaces both then.
	key := filepath.Join(volume.Dir, "..data", "tls.key")
	if err := errors.Join(os.Remove(key), syscall.Mkfifo(key, 0o600)); err != nil {
		t.Fatal(err)
	}
	var swap sync.WaitGroup
	swap.Go(func() {
		pipe, err := os.OpenFile(key, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Error(err)
			return
		}
		volume.Put(second)
		_, _ = pipe.Write(first["tls.key"])
		_ = pipe.Close()
	})
	secret := newCertificates(volume.Dir, t.TempDir(), testHost, discard)
	secret.poll(time.Now())
	swap.Wait()
	if secret.problem != nil || !isSame(secret.offered, parse(t, second)) {
		t.Errorf("read another certificate than the second: %v", secret.problem)
	}
}

func TestNewPodServesACertificateWithAProblemRatherThanNone(t *testing.T) {
	ca := testcert.NewCA("shards")
	crt, key := ca.Issue(testcert.Options{Names: []string{"example.com"}})
	volume := testvolume.New(t, map[string][]byte{"tls.crt": crt, "tls.key": key})
	secret := newCertificates(volume.Dir, t.TempDir(), testHost, discard)
	got, err := secret.prepare([]string{"-Z"}, time.Now())
	if err != nil || got != secret.offered || !strings.Contains(secret.failure(), "tls.crt isn't valid for "+testHost) {
		t.Errorf("%+v, %v; reports %q", got, err, secret.failure())
	}
	if _, err := secret.prepare([]string{"-Z", "-o", "ssl_verify_mode=1"}, time.Now()); err == nil || !strings.Contains(err.Error(), "has no ca.crt") {
		t.Errorf("client certificates without a CA: %v", err)
	}

	good := issue(ca, testcert.Options{})
	volume.Put(good)
	valid, err := secret.prepare([]string{"-Z"}, time.Now())
	if err != nil || !isSame(valid, parse(t, good)) {
		t.Fatalf("%+v, %v", valid, err)
	}
	// The last good one comes before one with a problem.
	volume.Put(map[string][]byte{"tls.crt": crt, "tls.key": key})
	if got, err := secret.prepare([]string{"-Z"}, time.Now()); err != nil || !isSame(got, valid) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A certificate can become valid, and expire.
func TestCertificateWithAProblemIsReadAgain(t *testing.T) {
	now := time.Now()
	volume := testvolume.New(t, issue(testcert.NewCA("shards"), testcert.Options{NotBefore: now.Add(time.Minute)}))
	secret := newCertificates(volume.Dir, t.TempDir(), testHost, discard)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "isn't valid before"}, {retryInterval - 1, "isn't valid before"}, {2 * time.Minute, ""}} {
		if secret.poll(now.Add(c.after)); (secret.failure() == "") != (c.want == "") || !strings.Contains(secret.failure(), c.want) {
			t.Errorf("after %s: %q, want %q", c.after, secret.failure(), c.want)
		}
	}
}

// memcached never removes a CA or a key type that it has loaded.
func TestMemcachedRestartsToForgetACertificate(t *testing.T) {
	ca, other := testcert.NewCA("shards"), testcert.NewCA("former clients")
	signed := func(o testcert.Options, cas ...*testcert.CA) *certificate {
		content := issue(ca, o)
		for _, more := range cas {
			content["ca.crt"] = append(content["ca.crt"], more.PEM()...)
		}
		return parse(t, content)
	}
	first, second, third := signed(testcert.Options{}), signed(testcert.Options{}), signed(testcert.Options{})
	rsa, both := signed(testcert.Options{RSA: true}), signed(testcert.Options{}, other)
	const (
		ofType = "whose key is of type ECDSA"
		ofCA   = "CA CN=former clients, which ca.crt no longer contains"
	)
	for name, c := range map[string]struct {
		loads    []*certificate
		keeps    bool // memcached keeps using the first one
		verifies bool
		want     string
		kept     int
	}{
		"another certificate":                     {loads: []*certificate{first, second, third}, kept: 1},
		"it keeps the former one":                 {loads: []*certificate{first, second}, keeps: true, want: ofType, kept: 1},
		"another type of key, and back":           {loads: []*certificate{first, rsa, second, third}, want: ofType, kept: 2},
		"a CA is removed":                         {loads: []*certificate{both, first, second}, verifies: true, want: ofCA, kept: 2},
		"a CA is removed, and returns":            {loads: []*certificate{both, first, signed(testcert.Options{}, other)}, verifies: true, kept: 1},
		"a CA is removed that verifies no client": {loads: []*certificate{both, first}, kept: 2},
	} {
		secret := newCertificates("", "", "", discard)
		secret.started(c.loads[0])
		for _, next := range c.loads[1:] {
			a := attempt[*certificate]{secret: &secret, content: next, used: next}
			if c.keeps {
				a.used = first
			}
			a.Record()
		}
		arguments := []string{"-Z"}
		if c.verifies {
			arguments = append(arguments, "-o", "ssl_verify_mode=2")
		}
		got := restartReason(secret.loaded, secret.used, arguments)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(secret.loaded) != c.kept {
			t.Errorf("%s: %q, want %q; it keeps %d", name, got, c.want, len(secret.loaded))
		}
	}
}

// So does the time to verify with one, which each CA of the same name needs.
func TestLargePublicKeyIsRejectedBeforeItVerifies(t *testing.T) {
	content := issue(testcert.NewCA("shards"), testcert.Options{})
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for bits, rejected := range map[uint]bool{16384: false, 8 * maxPublicKey: true} {
		public := &rsa.PublicKey{N: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1)), E: 1<<31 - 1}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
		if err != nil {
			t.Fatal(err)
		}
		large := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		for file, err := range map[string]error{
			"ca.crt":  second(parseCertificate(content["tls.crt"], content["tls.key"], slices.Concat(content["ca.crt"], large), testHost, time.Now())),
			"tls.crt": second(parseCertificate(slices.Concat(content["tls.crt"], large), content["tls.key"], content["ca.crt"], testHost, time.Now())),
		} {
			if got := err != nil && strings.HasPrefix(err.Error(), file+": a public key is too large; use RSA with at most 16384 bits"); got != rejected || err != nil && !got {
				t.Errorf("%s with %d bits: %v", file, bits, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The time to parse one grows with the cube of its size.
func TestLargeKeyIsRejectedBeforeItIsParsed(t *testing.T) {
	content := issue(testcert.NewCA("shards"), testcert.Options{})
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: make([]byte, maxKey+1)})
	for name, text := range map[string][]byte{"alone": key, "after a certificate": append(slices.Clone(content["tls.crt"]), key...)} {
		if _, err := parseCertificate(content["tls.crt"], text, nil, testHost, time.Now()); err == nil || !strings.Contains(err.Error(), "more than 16 KiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
