package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// maxUsers is one less than memcached reads (MAX_ENTRIES in authfile.c): it ignores the others without a
	// message.
	maxUsers = 7
	// maxUserLine is less than the longest line, in bytes, after which memcached reads the next user as a part
	// of it.
	maxUserLine = 250
	// ownUser is the agent's, which no Secret can have.
	ownUser = "AGENT"
	// loginTimeout bounds one login of each user.
	loginTimeout = 10 * time.Second
)

var userName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

type user struct{ name, password string }

// readUsers reads one generation of the Secret in a volume: each entry is a user with its password.
func readUsers(volume string) (users []user, err error) {
	err = files.ReadGeneration(volume, func(dir string) error {
		users = nil
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			password, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			users = append(users, user{entry.Name(), strings.TrimRight(string(password), "\r\n")})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return users, checkUsers(users)
}

// checkUsers returns why memcached would not read the users, or not as they are.
func checkUsers(users []user) error {
	switch {
	case len(users) == 0:
		return errors.New("the Secret doesn't exist, or has no users")
	case len(users) > maxUsers:
		return fmt.Errorf("there are %d users, with that of a binding; memcached reads at most %d", len(users), maxUsers)
	}
	for _, u := range users {
		switch {
		case !userName.MatchString(u.name):
			return fmt.Errorf("user %q: use 1 to 64 of the characters a-z, 0-9, '.', '_' and '-'", u.name)
		case u.password == "":
			return fmt.Errorf("the password of user %s is empty", u.name)
		case strings.ContainsFunc(u.password, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return fmt.Errorf("the password of user %s contains a space or a control character", u.name)
		case len(u.name)+1+len(u.password) > maxUserLine:
			return fmt.Errorf("user %s and its password have more than %d bytes", u.name, maxUserLine-1)
		}
	}
	return nil
}

// serverUsers is what the supervisor knows of the users that may log in to memcached.
type serverUsers struct {
	// volume of the Secret; empty if none is mounted. path is the file that memcached reads.
	volume, path string
	// password is that of the agent's own user.
	password string
	// generation that was read last, and its content or why memcached can't use it.
	generation string
	offered    []user
	invalid    error

	// loaded are the users that memcached started with or read last; nil without authentication.
	loaded []user
	// reload in progress; nil while there is none.
	reload *usersReload
	// rejected is why memcached doesn't accept the users of the Secret; empty if it does.
	rejected string
}

func newServerUsers(c config) *serverUsers {
	return &serverUsers{volume: c.authVolume, path: filepath.Join(c.dataDir, "users"), password: rand.Text(), generation: "not read yet"}
}

// poll reads the Secret if it has changed, and reports whether it has.
func (u *serverUsers) poll() (changed bool) {
	if u.volume == "" {
		return false
	}
	generation, err := files.Generation(u.volume)
	if err == nil && generation == u.generation {
		return false
	}
	was := u.problem()
	u.generation = generation
	u.offered, u.invalid = readUsers(u.volume)
	return err == nil || u.problem() != was
}

// problem is why the content of the Secret can't be used; empty if it can.
func (u *serverUsers) problem() string {
	if u.invalid != nil {
		return u.invalid.Error()
	}
	return ""
}

// prepare writes the users with which memcached starts: those of the Secret, or else those before. Without
// authentication it returns nil.
func (u *serverUsers) prepare(words []string) ([]user, error) {
	if !cmdline.RequiresLogin(words) {
		return nil, nil
	}
	u.poll()
	users, err := u.offered, u.invalid
	if u.volume == "" {
		err = errors.New("no Secret is mounted")
	}
	if err != nil {
		if users = u.read(); len(users) == 0 {
			return nil, fmt.Errorf("the users can't be read: %w", err)
		}
	}
	return users, u.write(users)
}

// write replaces the file.
func (u *serverUsers) write(users []user) error {
	var text bytes.Buffer
	for _, entry := range append([]user{{ownUser, u.password}}, users...) {
		fmt.Fprintf(&text, "%s:%s\n", entry.name, entry.password)
	}
	if err := files.Replace(u.path, text.Bytes()); err != nil {
		return fmt.Errorf("writing the users: %w", err)
	}
	return nil
}

// read returns the users that were written last, also by an earlier agent.
func (u *serverUsers) read() (users []user) {
	text, err := os.ReadFile(u.path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, password, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != ownUser && name != "" {
			users = append(users, user{name, password})
		}
	}
	return users
}

// server returns how the agent connects to a memcached that starts with these words, and the words with the file.
func (u *serverUsers) server(words []string, address string) ([]string, protocol.Server) {
	i := slices.Index(words, "-Y") // the operator writes it as a word of its own
	if i < 0 || i+1 == len(words) {
		return words, protocol.At(address)
	}
	words = slices.Clone(words)
	words[i+1] = u.path
	return words, protocol.Server{Address: address, User: ownUser, Password: u.password}
}

// started records what memcached was started with; nil without authentication.
func (u *serverUsers) started(users []user) {
	u.loaded, u.reload, u.rejected = users, nil, ""
}

// usersReload is an attempt to let memcached read other users.
type usersReload struct {
	process *process.Process
	to      []user
}

type usersReloadEnd struct {
	reload *usersReload
	err    error
}

// run signals memcached, which reads the file within a second and reports nothing, and logs in as each user.
func (r *usersReload) run() usersReloadEnd {
	if err := r.process.Signal(syscall.SIGHUP); err != nil {
		return usersReloadEnd{r, err}
	}
	for deadline := time.Now().Add(reloadTimeout); ; {
		err := r.logIn()
		if late := time.Now().After(deadline); late && err != nil && !protocol.IsAnswer(err) {
			return usersReloadEnd{r, &process.SlowError{Action: "answer the logins of its users", Within: reloadTimeout}}
		} else if late || err == nil {
			return usersReloadEnd{r, err}
		}
		select {
		case <-r.process.Done:
			return usersReloadEnd{r, err}
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *usersReload) logIn() error {
	ctx, cancel := context.WithTimeout(context.Background(), loginTimeout)
	defer cancel()
	for _, u := range r.to {
		server := r.process.Client.Server
		server.User, server.Password = u.name, u.password
		conn, err := server.Connect(ctx)
		if err != nil {
			return fmt.Errorf("logging in as user %s: %w", u.name, err)
		}
		_ = conn.Close()
	}
	return nil
}

// pollUsers reads the Secret, and lets memcached read its users.
func (s *supervisor) pollUsers() {
	u := s.users
	if u.poll() {
		if problem := u.problem(); problem != "" {
			s.log.Warn("Cannot use the users in the Secret", "reason", problem)
		} else {
			s.log.Info("The Secret has other users", "users", len(u.offered))
		}
		u.rejected = ""
		if s.rejection != "" {
			s.handled.arguments = "" // the users may have been the reason
		}
		s.publish()
	}
	serving := s.phase == wire.PhaseServing || s.phase == wire.PhaseDraining
	if u.loaded == nil || !serving || u.reload != nil || u.problem() != "" || slices.Equal(u.offered, u.loaded) {
		return
	}
	if err := u.write(u.offered); err != nil {
		u.rejected = err.Error()
		s.publish()
		return
	}
	u.reload = &usersReload{s.process, u.offered}
	go func(r *usersReload) { s.usersReloads <- r.run() }(u.reload)
}

func (s *supervisor) handleUsersReload(end usersReloadEnd) {
	u := s.users
	if end.reload.process != s.process { // memcached has stopped since
		return
	}
	u.reload = nil
	if process.IsSlow(end.err) {
		s.log.Warn("memcached has not read the users of the Secret yet; trying again", "reason", end.err)
		return
	}
	u.rejected = ""
	if end.err != nil {
		u.rejected = end.err.Error()
		s.log.Warn("memcached does not accept the users of the Secret", "error", end.err)
	} else {
		u.loaded = end.reload.to
		s.log.Info("memcached has read its users", "users", len(u.loaded))
	}
	s.publish()
}
