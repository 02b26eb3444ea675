package handover

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// Any input is either frames within their limits or a documented error.
func FuzzFrames(f *testing.F) {
	item := memfile.Item{Key: []byte("key"), Value: []byte("value"), Size: 8, Flags: 7, Binary: true, ExpiresAt: time.UnixMilli(1_800_000_000_123)}
	f.Add(append(appendItem(nil, &item), item.Value...))
	f.Add(append(peerlink.AppendHead(nil, kindRemoved, 16), make([]byte, 16)...))
	f.Add(append(peerlink.AppendHead(nil, kindOffer, 27), `{"Version":1,"Pod":"a-pod"}`...))
	f.Add(append(peerlink.AppendHead(peerlink.AppendHead(nil, peerlink.KindBeat, 0), kindDone, 2), `{}`...))
	f.Add(append(peerlink.AppendHead(nil, kindError, 15), `{"Code":"Busy"}`...))
	f.Add(peerlink.AppendHead(nil, kindItem, 1<<30))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		for {
			if err := readFrame(t, r); err != nil {
				if !errors.Is(err, peerlink.ErrFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("unexpected error: %v", err)
				}
				return
			}
		}
	})
}

func readFrame(t *testing.T, r *bufio.Reader) error {
	k, size, err := frames.ReadHead(r)
	if err != nil {
		return err
	}
	if limit := frames.Limits[k]; size < 0 || size > int(limit) {
		t.Fatalf("%d bytes of kind %q", size, k)
	}
	switch k {
	case kindItem:
		var key [protocol.MaxKey]byte
		got, err := readItem(r, size, &key)
		if err != nil {
			return err
		}
		value := make([]byte, min(got.size, r.Buffered()))
		if n, _ := io.ReadFull(r, value); n < got.size {
			return io.ErrUnexpectedEOF
		}
		item := memfile.Item{Key: got.key, Value: value, Size: len(got.key) + len(value), Flags: got.flags, Binary: got.binary}
		if got.expires != 0 {
			item.ExpiresAt = time.UnixMilli(got.expires)
		}
		again := append(appendItem(nil, &item), value...)
		second, err := readItem(bufio.NewReader(bytes.NewReader(again[peerlink.HeadSize:])), len(again)-peerlink.HeadSize, new([protocol.MaxKey]byte))
		if err != nil || !bytes.Equal(second.key, got.key) || second.flags != got.flags || second.expires != got.expires || second.size != got.size || second.binary != got.binary {
			t.Errorf("%+v is read as %+v, %v", got, second, err)
		}
	case kindRemoved:
		hashes, err := readRemoved(r, size, nil)
		if err == nil && len(hashes) != size/8 {
			t.Errorf("%d hashes in %d bytes", len(hashes), size)
		}
		return err
	case kindHello:
		_, err = peerlink.ReadMessage[hello](r, size)
	case kindOffer:
		_, err = peerlink.ReadMessage[offer](r, size)
	case kindState:
		_, err = peerlink.ReadMessage[state](r, size)
	case kindDone:
		_, err = peerlink.ReadMessage[done](r, size)
	case kindAcknowledge:
		_, err = peerlink.ReadMessage[acknowledgement](r, size)
	case kindConfirm:
		_, err = peerlink.ReadMessage[confirmation](r, size)
	case kindError:
		if err = frames.ReadFailure(r, size); err == nil {
			t.Error("a failure is no error")
		} else if !errors.Is(err, peerlink.ErrFrame) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
	}
	return err
}
