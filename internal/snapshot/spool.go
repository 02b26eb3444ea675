package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

const (
	// ages is how many there are to tell apart: below a minute, two, four and so on,
	// up to a year and more.
	ages = 21
	// youngest in seconds is the first age: memcached notes no second access within
	// a minute.
	youngest = 60
	// spoolBuffer in bytes of each age's file; there are 21 of them a shard.
	spoolBuffer = 16 << 10
)

// spool keeps keys on disk by the age of their last access, so that they can be
// read in about that order: what sorts them costs neither memory nor a second pass.
type spool struct {
	dir   string
	files [ages]*os.File
	out   [ages]*bufio.Writer
	keys  int64

	reading int
	in      *bufio.Reader
	key     [memcache.MaxKey]byte
}

// newSpool makes a spool in a folder of its own below dir.
func newSpool(dir string) (*spool, error) {
	own, err := os.MkdirTemp(dir, "keys-")
	if err != nil {
		return nil, spoolFailure(err)
	}
	return &spool{dir: own}, nil
}

// spoolFailure is worth another try: another node has other disks.
func spoolFailure(err error) error {
	return snapshotapi.Fail(v1alpha1.ReasonJobFailed, "keeping the names of keys on the Job's own volume: %w", err)
}

// ageOf returns which of the ages it is, in seconds.
func ageOf(seconds int64) int {
	if seconds < youngest {
		return 0
	}
	return min(bits.Len64(uint64(seconds/youngest)), ages-1)
}

// add keeps a key whose item has about size bytes and expires at a Unix time, 0 being
// never.
func (s *spool) add(key []byte, size, expires int64, age int) error {
	out := s.out[age]
	if out == nil {
		file, err := os.OpenFile(filepath.Join(s.dir, fmt.Sprint(age)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return spoolFailure(err)
		}
		out = bufio.NewWriterSize(file, spoolBuffer)
		s.files[age], s.out[age] = file, out
	}
	// Written into the buffer itself, so that nothing is made for each key.
	if out.Available() < 1+2*binary.MaxVarintLen64+len(key) {
		if err := out.Flush(); err != nil {
			return spoolFailure(err)
		}
	}
	entry := append(out.AvailableBuffer(), byte(len(key)))
	entry = binary.AppendUvarint(entry, uint64(size))
	entry = binary.AppendUvarint(entry, uint64(expires))
	entry = append(entry, key...)
	s.keys++
	if _, err := out.Write(entry); err != nil {
		return spoolFailure(err)
	}
	return nil
}

// next returns the next key, which belongs to the spool until the next call, about
// how many bytes its item has, and when it expires; io.EOF after the last. Nothing
// can be added any more.
func (s *spool) next() (key []byte, size, expires int64, err error) {
	for s.reading < ages {
		file := s.files[s.reading]
		if file == nil {
			s.reading++
			continue
		}
		if s.out[s.reading] != nil {
			if err := s.rewind(file); err != nil {
				return nil, 0, 0, spoolFailure(err)
			}
		}
		length, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			if err := s.drop(s.reading); err != nil {
				return nil, 0, 0, spoolFailure(err)
			}
			s.reading++
			continue
		}
		if err != nil {
			return nil, 0, 0, spoolFailure(err)
		}
		n, err := binary.ReadUvarint(s.in)
		var at uint64
		if err == nil {
			at, err = binary.ReadUvarint(s.in)
		}
		if err == nil {
			_, err = io.ReadFull(s.in, s.key[:length])
		}
		if err != nil {
			return nil, 0, 0, spoolFailure(err)
		}
		return s.key[:length], int64(n), int64(at), nil
	}
	return nil, 0, 0, io.EOF
}

// rewind turns the file that is to be read next from writing to reading.
func (s *spool) rewind(file *os.File) error {
	err := s.out[s.reading].Flush()
	s.out[s.reading] = nil
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if s.in == nil {
		s.in = bufio.NewReaderSize(nil, 64<<10)
	}
	s.in.Reset(file)
	return nil
}

// drop removes a file that was read: what is on disk becomes less.
func (s *spool) drop(age int) error {
	file := s.files[age]
	s.files[age], s.out[age] = nil, nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// clear forgets all keys.
func (s *spool) clear() error {
	var errs []error
	for age, file := range s.files {
		if file != nil {
			errs = append(errs, s.drop(age))
		}
	}
	s.keys, s.reading = 0, 0
	if err := errors.Join(errs...); err != nil {
		return spoolFailure(err)
	}
	return nil
}

// remove leaves nothing behind.
func (s *spool) remove() error {
	return errors.Join(s.clear(), os.RemoveAll(s.dir))
}
