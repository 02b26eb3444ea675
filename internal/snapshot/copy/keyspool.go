package copy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// ages is the number of age groups: below a minute, two, four and so on, up to a
	// year and more.
	ages = 21
	// youngest in seconds is the first age group: memcached records no second access
	// within a minute.
	youngest = 60
	// spoolBuffer in bytes of each age group's file.
	spoolBuffer = 16 << 10
)

// keySpool stores keys on disk by the age of their last access, so that reading them
// in about that order needs neither memory nor a second pass.
type keySpool struct {
	dir string
	// space is shared by the spools of all shards; nil means no limit. used is of this one.
	space *spoolSpace
	used  int64
	files [ages]*os.File
	out   [ages]*bufio.Writer
	keys  int64

	reading int // the age group
	in      *bufio.Reader
	key     [protocol.MaxKey]byte
}

// spoolSpace is what the spools of a save may use together, in bytes.
type spoolSpace struct {
	limit int64
	used  atomic.Int64
}

func newKeySpool(dir string, space *spoolSpace) (*keySpool, error) {
	own, err := os.MkdirTemp(dir, "keys-")
	if err != nil {
		return nil, spoolFailure(err)
	}
	return &keySpool{dir: own, space: space}, nil
}

// reserve counts bytes that are about to be written. The kubelet would evict a pod whose
// volume exceeds its limit.
func (s *keySpool) reserve(n int64) error {
	if s.space == nil {
		return nil
	}
	s.used += n
	if s.space.used.Add(n) > s.space.limit {
		return wire.FailFinally(wire.ReasonSpoolFull,
			"the keys of the shards exceed the %d MiB of the Job's own volume; set a higher limit of ephemeral-storage in spec.resources", s.space.limit>>20)
	}
	return nil
}

// spoolFailure isn't final: another node has another disk.
func spoolFailure(err error) error {
	return wire.Fail(wire.ReasonJobFailed, "spooling keys on the Job's own volume: %w", err)
}

func ageGroup(seconds int64) int {
	if seconds < youngest {
		return 0
	}
	return min(bits.Len64(uint64(seconds/youngest)), ages-1)
}

// add adds the key of an item of about size bytes that expires at a Unix time, 0 for
// never.
func (s *keySpool) add(key []byte, size, expires int64, age int) error {
	out := s.out[age]
	if out == nil {
		file, err := os.OpenFile(filepath.Join(s.dir, fmt.Sprint(age)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return spoolFailure(err)
		}
		out = bufio.NewWriterSize(file, spoolBuffer)
		s.files[age], s.out[age] = file, out
	}
	// Encoded in the buffer itself, so that a key costs no allocation.
	if out.Available() < 1+2*binary.MaxVarintLen64+len(key) {
		if err := out.Flush(); err != nil {
			return spoolFailure(err)
		}
	}
	entry := append(out.AvailableBuffer(), byte(len(key)))
	entry = binary.AppendUvarint(entry, uint64(size))
	entry = binary.AppendUvarint(entry, uint64(expires))
	entry = append(entry, key...)
	if err := s.reserve(int64(len(entry))); err != nil {
		return err
	}
	s.keys++
	if _, err := out.Write(entry); err != nil {
		return spoolFailure(err)
	}
	return nil
}

// next returns what add was given, youngest age group first, and io.EOF at the end. The
// key is valid until the next call. No key can be added after the first call.
func (s *keySpool) next() (key []byte, size, expires int64, err error) {
	for ; s.reading < ages; s.reading++ {
		if s.files[s.reading] == nil {
			continue
		}
		key, size, expires, err := s.read(s.files[s.reading])
		if errors.Is(err, io.EOF) {
			err = s.removeFile(s.reading)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, 0, 0, spoolFailure(err)
		}
		return key, size, expires, nil
	}
	return nil, 0, 0, io.EOF
}

// read returns the next key of the file of the age group, and io.EOF at its end.
func (s *keySpool) read(file *os.File) (key []byte, size, expires int64, err error) {
	if out := s.out[s.reading]; out != nil { // it was written
		s.out[s.reading] = nil
		if err := out.Flush(); err != nil {
			return nil, 0, 0, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, 0, 0, err
		}
		s.in = bufio.NewReaderSize(file, 64<<10)
	}
	length, err := s.in.ReadByte()
	if err != nil {
		return nil, 0, 0, err
	}
	n, err := binary.ReadUvarint(s.in)
	var at uint64
	if err == nil {
		at, err = binary.ReadUvarint(s.in)
	}
	if err == nil {
		_, err = io.ReadFull(s.in, s.key[:length])
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return s.key[:length], int64(n), int64(at), err
}

func (s *keySpool) removeFile(age int) error {
	file := s.files[age]
	s.files[age], s.out[age] = nil, nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func (s *keySpool) clear() error {
	var errs []error
	for age, file := range s.files {
		if file != nil {
			errs = append(errs, s.removeFile(age))
		}
	}
	if s.space != nil {
		s.space.used.Add(-s.used)
	}
	s.keys, s.reading, s.used = 0, 0, 0
	if err := errors.Join(errs...); err != nil {
		return spoolFailure(err)
	}
	return nil
}

func (s *keySpool) remove() error {
	return errors.Join(s.clear(), os.RemoveAll(s.dir))
}
