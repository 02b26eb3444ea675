package protocol

import (
	"bufio"
	"strings"
)

// ReadVersion reads the answer to "version" and returns the version, such as "1.6.45".
func ReadVersion(r *bufio.Reader) (string, error) {
	line, err := readLine(r)
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(line, "VERSION ")
	if !ok {
		return "", answerError(line)
	}
	return version, nil
}
