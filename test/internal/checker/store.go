package checker

import (
	"errors"
	"net"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// timeout of one request.
const timeout = 500 * time.Millisecond

type store interface {
	get(key string) (value string, there bool, err error)
	set(key, value string) error
	delete(key string) error
}

// cache is the store of one worker, a client that does not retry.
type cache struct{ client *memcache.Client }

func dial(addresses []string) cache {
	c := memcache.New(addresses...)
	c.Timeout = timeout
	c.MaxIdleConns = 1
	return cache{c}
}

func (c cache) get(key string) (string, bool, error) {
	item, err := c.client.Get(key)
	switch {
	case errors.Is(err, memcache.ErrCacheMiss):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	return string(item.Value), true, nil
}

func (c cache) set(key, value string) error {
	return c.client.Set(&memcache.Item{Key: key, Value: []byte(value)})
}

func (c cache) delete(key string) error {
	err := c.client.Delete(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil // it is empty now, too
	}
	return err
}

// outcomeOf returns the outcome of a write with this error.
func outcomeOf(err error) outcome {
	var (
		late *memcache.ConnectTimeoutError
		op   *net.OpError
	)
	switch {
	case err == nil:
		return done
	case errors.As(err, &late) || errors.As(err, &op) && op.Op == "dial":
		return undone
	default:
		return unknown
	}
}
