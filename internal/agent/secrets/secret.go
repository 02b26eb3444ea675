package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// retryInterval is the time between two attempts with a content that has a problem, or that memcached did not load.
	retryInterval = 5 * time.Second
	// loadTimeout bounds an attempt. memcached needs milliseconds for a certificate, and a second for users.
	loadTimeout = time.Minute
)

// content is what memcached uses of a Secret. It is immutable, and nil is none.
type content[T any] interface {
	comparable
	// files returns what memcached reads, by the names of the files.
	files() map[string][]byte
	// suits returns why memcached can't use the content with its arguments; nil if it can.
	suits(arguments []string) error
	// load lets memcached, which has loaded the former contents, read the files. It returns the content that memcached
	// uses then.
	load(m running, former []T) (used T, err error)
	// replaces returns whether memcached keeps nothing of a former content when it has loaded this one.
	replaces(former T) bool
	// attributes are for the log.
	attributes() []any
}

// secret lets memcached use what a mounted Secret contains.
type secret[T content[T]] struct {
	name string // of the content, for messages
	log  *slog.Logger
	// volume is empty if none is mounted.
	volume string
	// dir is where memcached reads the content. It is in the data volume, so that a container starts with the last
	// content that could be used.
	dir string
	// requires returns whether memcached uses the Secret with its arguments.
	requires func(arguments []string) bool
	// read returns what a folder of the volume contains, and restore what dir contains. With a problem, either memcached
	// can't use the content, which is nil then, or some clients can't.
	read, restore func(dir string, now time.Time) (c T, problem error)

	// offered is the content of the generation of the Secret that was read last, at checkedAt.
	generation string
	checkedAt  time.Time
	offered    T
	problem    error

	// loaded is what memcached has loaded, the latest last, and before it those of which it keeps something. They are none
	// if it doesn't use the Secret.
	loaded []T
	// used is the latest one, unless memcached keeps using a former one.
	used T
	// loading is whether an attempt is in progress. After one that failed, it is uncertain which content memcached uses.
	loading, uncertain bool
	// retryAt is when the next attempt may begin.
	retryAt time.Time
	// rejected is why memcached didn't load what the Secret offers; empty if it did.
	rejected string
}

// poll reads the Secret if it has changed, and reports whether it has. A content with a problem is read again, as it
// can become valid.
func (s *secret[T]) poll(now time.Time) (changed bool) {
	if s.volume == "" {
		return false
	}
	generation, err := files.Generation(s.volume)
	isKnown := err == nil && generation == s.generation
	if isKnown && (s.problem == nil || now.Sub(s.checkedAt) < retryInterval) {
		return false
	}
	former := s.failure()
	s.generation, s.checkedAt = generation, now
	unreadable := files.ReadGeneration(s.volume, func(dir string) error {
		s.offered, s.problem = s.read(dir, now)
		return nil
	})
	if unreadable != nil {
		s.offered, s.problem = *new(T), unreadable
	}
	if (isKnown || err != nil) && s.failure() == former {
		return false
	}
	s.rejected, s.retryAt = "", time.Time{}
	if s.problem != nil {
		s.log.Warn("Cannot use the "+s.name+" in the Secret", "reason", s.problem)
	} else {
		s.log.Info("Read the "+s.name+" in the Secret", s.offered.attributes()...)
	}
	return true
}

// failure is why memcached doesn't use what the Secret offers; empty if it does.
func (s *secret[T]) failure() string {
	if s.problem != nil {
		return s.problem.Error()
	}
	return s.rejected
}

// prepare writes the content with which memcached starts: that of the Secret, or the one before if that has a problem.
// Without a better one, it is that of the Secret in spite of its problem: only some clients reject it. It is nil if
// memcached doesn't use the Secret.
func (s *secret[T]) prepare(arguments []string, now time.Time) (c T, err error) {
	if !s.requires(arguments) {
		return c, nil
	}
	s.poll(now)
	last, lastProblem := s.restore(s.dir, now)
	candidates := []T{s.offered, last}
	if s.problem != nil && lastProblem == nil {
		slices.Reverse(candidates)
	}
	err = s.problem
	if s.volume == "" {
		err = errors.New("no Secret is mounted")
	}
	for _, c := range candidates {
		if c == *new(T) {
			continue
		}
		if err = c.suits(arguments); err == nil {
			return c, write(s.dir, c)
		}
	}
	return c, s.unusable(err)
}

func (s *secret[T]) unusable(err error) error {
	return fmt.Errorf("the %s can't be used: %w", s.name, err)
}

// problemOf returns why memcached can't begin to use the Secret, with the desired arguments.
func (s *secret[T]) problemOf(desired, current []string) error {
	if s.problem != nil && s.requires(desired) && !s.requires(current) {
		return s.unusable(s.problem)
	}
	return nil
}

// started records the content with which memcached was started.
func (s *secret[T]) started(c T) {
	s.loaded, s.used, s.loading, s.uncertain, s.retryAt, s.rejected = nil, c, false, false, time.Time{}, ""
	if c != *new(T) {
		s.loaded = []T{c}
	}
}

// load lets memcached load what the Secret offers if it uses another content. report gets the result on another
// goroutine.
func (s *secret[T]) load(m running, now time.Time, report func(Loaded)) {
	isUsed := len(s.loaded) > 0 && s.problem == nil && s.offered != *new(T)
	if !isUsed || s.loading || now.Before(s.retryAt) || !s.uncertain && isSame(s.offered, s.loaded[len(s.loaded)-1]) {
		return
	}
	s.loading, s.uncertain, s.retryAt = true, true, now.Add(retryInterval)
	a := &attempt[T]{secret: s, done: m.Done, content: s.offered}
	former := slices.Clone(s.loaded)
	if a.err = s.offered.suits(m.arguments); a.err == nil {
		a.err = write(s.dir, s.offered)
	}
	go func() {
		if a.err == nil {
			began := time.Now()
			a.used, a.err = a.content.load(m, former)
			a.late = protocol.IsFull(a.err) || a.err != nil && !protocol.IsAnswer(a.err) && !errors.Is(a.err, errAccepted) && time.Since(began) >= loadTimeout
		}
		report(a)
	}()
}

// write replaces the files in a directory.
func write[T content[T]](dir string, c T) error {
	for name, content := range c.files() {
		if err := files.Replace(filepath.Join(dir, name), content); err != nil {
			return fmt.Errorf("writing what a Secret contains: %w", err)
		}
	}
	return nil
}

func isSame[T content[T]](a, b T) bool { return maps.EqualFunc(a.files(), b.files(), bytes.Equal) }

// Loaded is the end of an attempt to let memcached load what a Secret contains. Record is for the goroutine that polls
// the Secrets.
type Loaded interface{ Record() }

type attempt[T content[T]] struct {
	secret        *secret[T]
	done          <-chan struct{} // closed when memcached has exited
	content, used T
	err           error
	// late is whether the node can be the cause, or that clients use all connections: that says nothing about the Secret.
	late bool
}

func (a *attempt[T]) Record() {
	s := a.secret
	select {
	case <-a.done: // the next memcached starts with what was written
		return
	default:
	}
	s.loading = false
	switch {
	case a.late:
		s.log.Warn("memcached has not loaded the "+s.name+" yet; trying again", "reason", a.err)
	case a.err != nil:
		if s.rejected != a.err.Error() {
			s.log.Warn("memcached did not load the "+s.name, "error", a.err)
		}
		s.rejected = a.err.Error()
	default:
		s.loaded = append(slices.DeleteFunc(s.loaded, a.content.replaces), a.content)
		s.used, s.uncertain, s.rejected = a.used, false, ""
		s.log.Info("memcached has loaded the "+s.name, a.content.attributes()...)
	}
}
