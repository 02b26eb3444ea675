package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/memcached/args"
)

// parseArguments parses the JSON array of memcached's argument words. An empty text
// means memcached's defaults.
func parseArguments(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var words []string
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	err := decoder.Decode(&words)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected text after the array")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON array of strings: %w", err)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("argument %q contains a NUL byte", word)
		}
	}
	for _, option := range args.Options(words) {
		if reason, forbidden := forbiddenOptions[option.Letter]; forbidden {
			return nil, fmt.Errorf("option -%c is not allowed: %s", option.Letter, reason)
		}
	}
	return words, nil
}

// forbiddenOptions would take memcached out of the agent's control.
var forbiddenOptions = map[byte]string{
	'e': "the agent sets the file of the restartable cache",
	'd': "memcached must stay a child of the agent",
	'h': "memcached would print its help and exit",
	'i': "memcached would print its license and exit",
	'V': "memcached would print its version and exit",
}

func address(words []string) string {
	port := "11211"
	for _, option := range args.Options(words) {
		if option.Letter == 'p' {
			port = option.Value
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}
