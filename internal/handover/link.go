package handover

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// purpose separates the key of the handover from other uses of the same secret.
const purpose = "memcached-operator handover 1 ed25519"

// identity returns the TLS configuration of both sides.
func identity(key []byte) (*tls.Config, error) {
	config, err := peerlink.Identity(key, purpose)
	if err != nil {
		return nil, fmt.Errorf("using the key of the handover: %w", err)
	}
	return config, nil
}

// link sends and receives the frames of a handover.
type link struct{ *peerlink.Link }

func newLink(conn net.Conn) *link { return &link{peerlink.New(conn, frames)} }

// sendItem buffers an item, and returns the hash of what it has sent of one that memcached may have changed since.
func (l *link) sendItem(item *memfile.Item, h *hasher) (content uint64, err error) {
	h.begin(item)
	err = l.Write(func(dst []byte) []byte { return appendItem(dst, item) }, func(write func([]byte) error) error {
		err := item.EachPart(func(part []byte) error {
			_, _ = h.h.Write(part)
			return write(part)
		})
		if errors.Is(err, memfile.ErrTorn) {
			err = nil
		}
		return err
	})
	return h.h.Sum64(), err
}

// sendName buffers a key.
func (l *link) sendName(key []byte) error {
	return l.Write(func(dst []byte) []byte { return peerlink.AppendHead(dst, kindName, len(key)) }, func(write func([]byte) error) error { return write(key) })
}

// expect reads a message of a kind, or the peer's failure.
func expect[T any](l *link, want kind) (T, error) { return peerlink.Expect[T](l.Link, want) }
