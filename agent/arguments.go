package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// parseArguments reads the JSON array of memcached's argument words. No text is
// no arguments: memcached's defaults.
func parseArguments(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var words []string
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	err := decoder.Decode(&words)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the array")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON array of strings: %w", err)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("the argument %q holds a NUL byte", word)
		}
	}
	for _, option := range geometry.Options(words) {
		if why, refused := ownOptions[option.Letter]; refused {
			return nil, fmt.Errorf("the option -%c is not possible here: %s", option.Letter, why)
		}
	}
	return words, nil
}

// ownOptions are those that would take memcached out of the agent's hands.
var ownOptions = map[byte]string{
	'e': "the agent gives the file of the restartable cache",
	'd': "the agent must stay memcached's parent",
	'h': "memcached would print and end",
	'i': "memcached would print and end",
	'V': "memcached would print and end",
}
