package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// A manifest can have 64 MiB, and a Job has 128 MiB of memory. So manifest.json is written
// and read as a stream, and only the list of chunks is in memory, with 32 bytes a chunk:
//
//	{"format":NAME,"version":1,"checksum":SUM,"snapshot":MANIFEST}
//
// Every version has these fields. The checksum is that of the bytes of the manifest.

// encode writes manifest.json. It encodes the manifest twice, as the checksum precedes it.
func (m *Manifest) encode(w io.Writer) error {
	sum, size := xxhash.New(), &counter{}
	if err := m.encodeSnapshot(io.MultiWriter(sum, size)); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	// Errors of out are kept until Flush.
	n, _ := fmt.Fprintf(out, `{"format":%q,"version":%d,"checksum":%q,"snapshot":`, Name, Version, Checksum(sum.Sum64()).String())
	if int64(n)+size.n+2 > maxManifest {
		return wire.FailFinally(wire.ReasonStoreFailed, "the snapshot has more chunks than a manifest can list; back up fewer items")
	}
	if err := m.encodeSnapshot(out); err != nil {
		return err
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}

func (m *Manifest) encodeSnapshot(w io.Writer) error {
	out := bufio.NewWriter(w)
	head := *m
	head.Shards = []Shard{}
	if err := writeOpen(out, head); err != nil {
		return err
	}
	for i, shard := range m.Shards {
		writeComma(out, i)
		head := shard
		head.Chunks = []Chunk{}
		if err := writeOpen(out, head); err != nil {
			return err
		}
		for j, chunk := range shard.Chunks {
			writeComma(out, j)
			text, err := json.Marshal(chunk)
			if err != nil {
				return fmt.Errorf("encoding the manifest: %w", err)
			}
			_, _ = out.Write(text)
		}
		_, _ = out.WriteString("]}")
	}
	_, _ = out.WriteString("]}")
	return out.Flush()
}

// writeOpen writes an object whose last field is an empty list without the end of that list.
func writeOpen(out *bufio.Writer, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	_, _ = out.Write(bytes.TrimSuffix(text, []byte("]}")))
	return nil
}

func writeComma(out *bufio.Writer, place int) {
	if place > 0 {
		_ = out.WriteByte(',')
	}
}

// counter counts the bytes that are written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// decodeManifest reads and checks a manifest.json. Errors have the reasons
// SnapshotOwnedByOther, SnapshotTooNew and SnapshotCorrupt, or are those of the reader.
func decodeManifest(r io.Reader) (*Manifest, error) {
	input := &hashedInput{r: bufio.NewReader(r)}
	d := &manifestDecoder{json: json.NewDecoder(input), input: input}
	input.decoded = d.json.InputOffset
	err := d.envelope()
	switch {
	case input.err != nil:
		return nil, input.err
	case err != nil && wire.AsFailure(err) == nil && d.format != Name:
		return nil, wire.FailFinally(wire.ReasonSnapshotOwnedByOther, "%s is not a manifest of this operator: %w; check the path", ManifestName, err)
	case err != nil && wire.AsFailure(err) == nil:
		return nil, damaged(err)
	case err != nil:
		return nil, err
	}
	if err := d.manifest.check(); err != nil {
		return nil, damaged(err)
	}
	return d.manifest, nil
}

func damaged(err error) error {
	return wire.FailFinally(wire.ReasonSnapshotCorrupt, "the snapshot's manifest is damaged: %w; use another snapshot", err)
}

type manifestDecoder struct {
	json  *json.Decoder
	input *hashedInput

	format, checksum string
	version          int
	manifest         *Manifest
}

func (d *manifestDecoder) envelope() error {
	err := d.object(map[string]any{"format": &d.format, "version": &d.version, "checksum": &d.checksum, "snapshot": d.snapshot})
	if err != nil {
		return err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after it")
	}
	if d.manifest == nil {
		if err := d.readable(); err != nil {
			return err
		}
		return errors.New("it lacks the snapshot")
	}
	return nil
}

// readable returns why the format and the version can't be read, or nil.
func (d *manifestDecoder) readable() error {
	switch {
	case d.format != Name:
		return wire.FailFinally(wire.ReasonSnapshotOwnedByOther, "%s has the format %.80q, not %q of this operator; check the path", ManifestName, d.format, Name)
	case d.version > Version:
		return wire.FailFinally(wire.ReasonSnapshotTooNew, "the snapshot has format version %d, but this operator reads up to %d; upgrade the operator", d.version, Version)
	case d.version < 1:
		return damaged(fmt.Errorf("format version %d doesn't exist", d.version))
	}
	return nil
}

// snapshot decodes the manifest and compares its checksum, which must come before it.
func (d *manifestDecoder) snapshot() error {
	if err := d.readable(); err != nil {
		return err
	}
	if d.manifest != nil {
		return errors.New("it has two snapshots")
	}
	m := &Manifest{}
	d.manifest = m
	err := d.fields(d.input.begin, map[string]any{
		"taskID": &m.TaskID, "takenAt": &m.TakenAt, "createdAt": &m.CreatedAt, "memcached": &m.Memcached, "folder": &m.Folder,
		"shards": func() error {
			return d.array(func() error {
				if len(m.Shards) == maxShards {
					return fmt.Errorf("it has more than %d shards", maxShards)
				}
				shard, err := d.shard()
				m.Shards = append(m.Shards, shard)
				return err
			})
		},
	})
	if err != nil {
		return err
	}
	if sum := d.input.sum(d.json); sum.String() != d.checksum {
		return damaged(fmt.Errorf("its checksum is %s, but it says %.40q", sum, d.checksum))
	}
	return nil
}

func (d *manifestDecoder) shard() (Shard, error) {
	shard := Shard{Chunks: []Chunk{}}
	err := d.object(map[string]any{
		"ordinal": &shard.Ordinal, "items": &shard.Items, "bytes": &shard.Bytes, "gone": &shard.Gone, "stale": &shard.Stale, "unnamed": &shard.Unnamed,
		"chunks": func() error {
			return d.array(func() error {
				var chunk Chunk
				err := d.json.Decode(&chunk)
				if err == nil {
					err = chunk.check(len(shard.Chunks), len(d.manifest.Shards))
				}
				shard.Chunks = append(shard.Chunks, chunk)
				d.input.release(d.json)
				return err
			})
		},
	})
	return shard, err
}

// object decodes the fields of an object, by their names, into a variable or by a function. It
// skips others.
func (d *manifestDecoder) object(fields map[string]any) error {
	return d.fields(func(*json.Decoder) {}, fields)
}

// fields is object, and also calls a function at its beginning.
func (d *manifestDecoder) fields(begin func(*json.Decoder), fields map[string]any) error {
	return d.between('{', '}', begin, func() error {
		token, err := d.json.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // JSON has no other names
		switch field := fields[name].(type) {
		case nil:
			return d.skip()
		case func() error:
			return field()
		default:
			return d.json.Decode(field)
		}
	})
}

// array calls a function for each element of an array, which it decodes.
func (d *manifestDecoder) array(element func() error) error {
	return d.between('[', ']', func(*json.Decoder) {}, element)
}

func (d *manifestDecoder) between(first, last json.Delim, begin func(*json.Decoder), next func() error) error {
	if err := d.delimiter(first); err != nil {
		return err
	}
	begin(d.json)
	for d.json.More() {
		if err := next(); err != nil {
			return err
		}
	}
	return d.delimiter(last)
}

func (d *manifestDecoder) delimiter(want json.Delim) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("it has %v in place of %v", token, want)
	}
	return nil
}

func (d *manifestDecoder) skip() error {
	var ignored json.RawMessage
	return d.json.Decode(&ignored)
}

// hashedInput passes on what it reads, and hashes a part of it.
type hashedInput struct {
	r io.Reader
	// err of r, or that there is too much to read.
	err error
	// pending is what was read since the offset start. It is not hashed yet, or not known
	// yet to be of the part that is.
	pending []byte
	start   int64
	digest  *xxhash.Digest // nil outside of the part
	// decoded is the offset up to which the decoder has decoded.
	decoded func() int64
}

// Read implements io.Reader.
func (h *hashedInput) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.pending = append(h.pending, p[:n]...)
	switch {
	case h.start+int64(len(h.pending)) > maxManifest:
		h.err = wire.FailFinally(wire.ReasonSnapshotCorrupt, "the snapshot's manifest is larger than %d MiB; use another snapshot", maxManifest>>20)
		return 0, h.err
	case h.start+int64(len(h.pending))-h.decoded() > maxField:
		h.err = damaged(fmt.Errorf("one of its fields has more than %d KiB", maxField>>10))
		return 0, h.err
	case err != nil && !errors.Is(err, io.EOF):
		h.err = err
	}
	return n, err
}

// begin says that the part begins with the delimiter that a decoder has decoded.
func (h *hashedInput) begin(d *json.Decoder) {
	h.drop(d.InputOffset() - 1 - h.start)
	h.digest = xxhash.New()
}

// release drops what a decoder has decoded.
func (h *hashedInput) release(d *json.Decoder) { h.drop(d.InputOffset() - h.start) }

func (h *hashedInput) drop(n int64) {
	if h.digest != nil {
		_, _ = h.digest.Write(h.pending[:n]) // it returns no error
	}
	h.start += n
	h.pending = h.pending[:copy(h.pending, h.pending[n:])]
}

// sum returns the checksum of the part, which ends with what a decoder has decoded.
func (h *hashedInput) sum(d *json.Decoder) Checksum {
	h.release(d)
	sum := Checksum(h.digest.Sum64())
	h.digest = nil
	return sum
}
