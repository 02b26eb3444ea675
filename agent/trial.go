package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trialBound is how long a trial may take while memcached serves or is about to:
// nothing else is done meanwhile. It takes 30 ms: without a saved file there is
// nothing to read and no memory to fill.
const trialBound = 3 * time.Second

// try runs memcached with arguments beside the one that serves, with a port of
// its own and without the items, and returns why it does not start within bound.
//
// It is tried because a memcached that ends between taking up its items and
// listening has used them up: it has moved pointers in them, and its
// memory.meta is gone.
func try(path, dir string, arguments []string, bound time.Duration) error {
	port, err := freePort()
	if err != nil {
		return fmt.Errorf("looking for a port to try the new arguments: %w", err)
	}
	words := append(slices.Clone(arguments), "-p", strconv.Itoa(port), "-U", "0")
	if endpointOf(arguments).network == "unix" {
		// It would take the socket away from the one that serves.
		words = append(words, "-s", filepath.Join(dir, "trial.socket"))
	}
	exits, readies := make(chan *child, 1), make(chan ready, 1)
	c, err := startProgram(path, words, endpointOf(words), exits)
	if err != nil {
		return err
	}
	go awaitReady(c, readies)
	select {
	case r := <-readies:
		if r.silent {
			err = fmt.Errorf("it takes connections and answered none for %s", silentBound)
		}
	case <-c.done:
		sentence, _ := c.end()
		// A listener with a port of its own is in use by the memcached that serves.
		if strings.Contains(strings.ToLower(sentence), syscall.EADDRINUSE.Error()) {
			return nil
		}
		return errors.New(sentence)
	case <-time.After(bound):
		err = fmt.Errorf("it did not answer within %s", bound)
	}
	_ = c.signal(syscall.SIGKILL)
	<-c.done
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
