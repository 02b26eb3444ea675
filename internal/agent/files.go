package agent

import (
	"errors"
	"io"
	"os"
)

var errTooLarge = errors.New("the file is too large")

// readBounded reads a file, and returns errTooLarge if it exceeds the limit.
func readBounded(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(text)) > limit {
		return "", errTooLarge
	}
	return string(text), nil
}

// replaceFile replaces a file atomically.
func replaceFile(path string, content []byte) error {
	partial := path + ".part"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
