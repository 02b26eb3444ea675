package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
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

var errAccepted = errors.New("memcached still accepts the former login")

const (
	userCharacters = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	maxUserName    = 64
)

// users are those who may log in to memcached, without the agent's own.
type users struct {
	list     []user
	password string // of ownUser
}

type user struct{ name, password string }

func (u *users) has(entry user) bool { return slices.Contains(u.list, entry) }

// removed returns a login of former users that these don't have: memcached rejects it once it has read the file.
func (u *users) removed(former []*users) (login user, ok bool) {
	if len(former) == 0 {
		return user{}, false
	}
	list := former[len(former)-1].list
	if i := slices.IndexFunc(list, func(entry user) bool { return !u.has(entry) }); i >= 0 {
		return list[i], true
	}
	return user{}, false
}

// usersFile is the name of the file that memcached reads.
const usersFile = "users"

// newUsers returns what lets memcached use the users in a volume. password is that of the agent's own user.
func newUsers(volume, dir, password string, log *slog.Logger) secret[*users] {
	return secret[*users]{
		name: "users", log: log, volume: volume, dir: dir, requires: cmdline.RequiresLogin,
		read:    func(dir string, _ time.Time) (*users, error) { return readUsers(dir, password) },
		restore: func(dir string, _ time.Time) (*users, error) { return restoreUsers(dir, password) },
	}
}

// readUsers reads a folder: each entry is a user with its password.
func readUsers(dir, own string) (*users, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []user
	for _, entry := range entries {
		password, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, user{entry.Name(), strings.TrimRight(string(password), "\r\n")})
	}
	return validUsers(list, own)
}

// restoreUsers returns the users that were written last, also by an earlier agent.
func restoreUsers(dir, own string) (*users, error) {
	text, err := os.ReadFile(filepath.Join(dir, usersFile))
	if err != nil {
		return nil, err
	}
	var list []user
	for line := range strings.Lines(string(text)) {
		if name, password, _ := strings.Cut(strings.TrimRight(line, "\n"), ":"); name != ownUser && name != "" {
			list = append(list, user{name, password})
		}
	}
	return validUsers(list, own)
}

// validUsers returns an error if memcached would not read the users, or not as they are.
func validUsers(list []user, own string) (*users, error) {
	switch {
	case len(list) == 0:
		return nil, errors.New("the Secret doesn't exist, or has no users")
	case len(list) > maxUsers:
		return nil, fmt.Errorf("there are %d users, with that of a binding; memcached reads at most %d", len(list), maxUsers)
	}
	for _, u := range list {
		switch {
		case u.name == "username" || u.name == "password":
			return nil, fmt.Errorf("the Secret has the entry %s, as Secrets of type kubernetes.io/basic-auth do; an entry is a user, and its value the password, "+
				"as in kubectl create secret generic NAME --from-literal=USER=PASSWORD", u.name)
		case u.name == "" || len(u.name) > maxUserName || strings.Trim(u.name, userCharacters) != "":
			return nil, fmt.Errorf("user %q: use 1 to 64 of the characters a-z, 0-9, '.', '_' and '-'", u.name)
		case u.password == "":
			return nil, fmt.Errorf("the password of user %s is empty", u.name)
		case strings.ContainsFunc(u.password, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return nil, fmt.Errorf("the password of user %s contains a space or a control character", u.name)
		case len(u.name)+1+len(u.password) > maxUserLine:
			return nil, fmt.Errorf("user %s and its password have more than %d bytes", u.name, maxUserLine-1)
		}
	}
	return &users{list, own}, nil
}

func (u *users) files() map[string][]byte {
	var text bytes.Buffer
	for _, entry := range append([]user{{ownUser, u.password}}, u.list...) {
		fmt.Fprintf(&text, "%s:%s\n", entry.name, entry.password)
	}
	return map[string][]byte{usersFile: text.Bytes()}
}

func (u *users) attributes() []any { return []any{"users", len(u.list)} }

func (u *users) suits([]string) error { return nil }

func (u *users) replaces(*users) bool { return true }

// load signals memcached, which reads the file within a second and reports nothing, and logs in as each user. A login that
// was removed must fail.
func (u *users) load(m running, former []*users) (*users, error) {
	if err := m.Signal(syscall.SIGHUP); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(loadTimeout); ; {
		err := u.logIn(m.Server)
		if removed, ok := u.removed(former); ok && err == nil {
			switch rejection := (&users{list: []user{removed}}).logIn(m.Server); {
			case rejection == nil:
				err = fmt.Errorf("%w of user %s", errAccepted, removed.name)
			case !protocol.IsAnswer(rejection) || protocol.IsFull(rejection):
				err = rejection
			}
		}
		if err == nil || time.Now().After(deadline) {
			return u, err
		}
		select {
		case <-m.Done:
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (u *users) logIn(server protocol.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), loginTimeout)
	defer cancel()
	for _, entry := range u.list {
		server.User, server.Password = entry.name, entry.password
		conn, err := server.Connect(ctx)
		if err != nil {
			return fmt.Errorf("logging in as user %s: %w", entry.name, err)
		}
		_ = conn.Close()
	}
	return nil
}
