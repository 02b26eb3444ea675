package pods

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// WordsLogin are those with which the operator switches authentication on.
var WordsLogin = []string{"-Y", "users"}

// UserShard is a shard whose pod mounts a Secret with users.
type UserShard struct{ *Shard }

// NewUserShard returns a shard with a folder for the Secret with its users.
func NewUserShard(t testing.TB) *UserShard {
	t.Helper()
	s := &UserShard{Shard: NewShard(t)}
	s.users = filepath.Join(s.Dir, "users")
	MakeDir(t, s.users)
	Project(t, s.users, nil)
	return s
}

// Put replaces the users of the Secret.
func (s *UserShard) Put(users map[string]string) {
	s.T.Helper()
	Project(s.T, s.users, users)
}

// LogIn returns nil if memcached accepts the user.
func (s *UserShard) LogIn(user, password string) error {
	ctx, cancel := context.WithTimeout(s.T.Context(), Patience)
	defer cancel()
	conn, err := protocol.Server{Address: s.Address(), User: user, Password: password}.Connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// WantLogin waits until memcached accepts a user, or no longer.
func (s *UserShard) WantLogin(user, password string, accepted bool) {
	s.T.Helper()
	var err error
	if !Eventually(func() bool {
		err = s.LogIn(user, password)
		return (err == nil) == accepted
	}) {
		s.T.Fatalf("user %s: %v, want accepted: %t", user, err, accepted)
	}
}
