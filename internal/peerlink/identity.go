package peerlink

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// KeySize is the smallest size of a shared key in bytes.
const KeySize = 32

// ErrOtherKey is a peer that has another key. No later attempt finds that it has the own one.
var ErrOtherKey = errors.New("the other pod has another key, such as that of a deleted Memcached of the same name")

// Identity returns the TLS configuration of both sides: each presents a certificate of
// the key pair that is derived from key, and accepts that one only. There is no authority, no name and
// no date to check: a certificate merely transports the public key. purpose separates the derived key from other uses of key.
func Identity(key []byte, purpose string) (*tls.Config, error) {
	if len(key) < KeySize {
		return nil, fmt.Errorf("the key has %d bytes, and %d are required", len(key), KeySize)
	}
	seed, err := hkdf.Key(sha256.New, key, nil, purpose, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate: %w", err)
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection is stricter
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !public.Equal(state.PeerCertificates[0].PublicKey) {
				return ErrOtherKey
			}
			return nil
		},
	}, nil
}
