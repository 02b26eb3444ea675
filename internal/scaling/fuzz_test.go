package scaling

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// Any input is either frames within their limits or a documented error.
func FuzzFrames(f *testing.F) {
	i := item{key: []byte("key"), flags: 7, expires: 1000, cas: 5, binary: true, value: []byte("value")}
	f.Add(append(i.append(nil), i.value...))
	f.Add(append(peerlink.AppendHead(nil, kindLost, 16), make([]byte, 16)...))
	f.Add(append(peerlink.AppendHead(nil, kindAsk, 8), appendName(appendName(nil, []byte("a")), []byte("name1"))...))
	f.Add(append(peerlink.AppendHead(nil, kindShown, entrySize), make([]byte, entrySize)...))
	f.Add(append(peerlink.AppendHead(nil, kindFailed, 19), `{"Code":"Unproven"}`...))
	f.Add(peerlink.AppendHead(nil, kindItem, 1<<30))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		for {
			if err := parse(t, r); err != nil {
				if !errors.Is(err, peerlink.ErrFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("unexpected error: %v", err)
				}
				return
			}
		}
	})
}

func parse(t *testing.T, r *bufio.Reader) error {
	k, size, err := frames.ReadHead(r)
	if err != nil {
		return err
	}
	var buffer []byte
	switch k {
	case kindItem:
		got, err := readItem(r, size, &buffer)
		if err != nil {
			return err
		}
		again := append(got.append(nil), got.value...)
		second, err := readItem(bufio.NewReader(bytes.NewReader(again[peerlink.HeadSize:])), len(again)-peerlink.HeadSize, new([]byte))
		if err != nil || !bytes.Equal(second.key, got.key) || !bytes.Equal(second.value, got.value) || second.cas != got.cas || second.expires != got.expires ||
			second.flags != got.flags || second.binary != got.binary {
			t.Errorf("%+v is read as %+v, %v", got, second, err)
		}
		return nil
	case kindOffer:
		_, err = peerlink.ReadMessage[offer](r, size)
		return err
	case kindFailed:
		message, err := peerlink.ReadMessage[failure](r, size)
		if err == nil && message.err() == nil {
			t.Errorf("%+v is no error", message)
		}
		return err
	}
	list, err := readFrame(r, size, &buffer)
	if err != nil {
		return err
	}
	switch k {
	case kindAsk, kindDrop:
		var again []byte
		err = eachName(list, func(key []byte) error {
			again = appendName(again, key)
			return nil
		})
		if err == nil && !bytes.Equal(again, list) {
			t.Errorf("the names of %q are %q", list, again)
		}
	case kindLost, kindStored:
		n := 0
		err = eachHash(list, func(uint64) { n++ })
		if err == nil && n != size/8 {
			t.Errorf("%d numbers in %d bytes", n, size)
		}
	case kindShown:
		table, failed := newPairs(pairsSize(0))
		if failed != nil {
			t.Fatal(failed)
		}
		defer table.Close()
		err = (&source{pairs: table}).shown(list)
	}
	return err
}
