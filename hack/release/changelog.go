package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const changelogFile = "CHANGELOG.md"

var (
	unreleasedHeading = regexp.MustCompile(`(?m)^## \[Unreleased\]\n`)
	unreleasedLink    = regexp.MustCompile(`(?m)^\[Unreleased\]: (.*)/compare/v(.*)\.\.\.HEAD$`)
	nextHeading       = regexp.MustCompile(`(?m)^(## |\[)`)
)

// changelog moves the unreleased changes to the version.
func (r release) changelog() (string, error) {
	content, err := os.ReadFile(filepath.Join(r.root, changelogFile))
	if err != nil {
		return "", fmt.Errorf("reading the changelog: %w", err)
	}
	heading, link := unreleasedHeading.FindIndex(content), unreleasedLink.FindSubmatch(content)
	if heading == nil || link == nil {
		return "", errors.New("CHANGELOG.md needs the heading \"## [Unreleased]\" and the link \"[Unreleased]: …/compare/v<last version>...HEAD\"")
	}
	before, after := string(content[:heading[1]]), string(content[heading[1]:])
	changes, _, _ := strings.Cut(nextHeading.ReplaceAllString(after, "\x00$1"), "\x00")
	if !strings.Contains(changes, "\n- ") {
		return "", errors.New("CHANGELOG.md lists no change under \"## [Unreleased]\": add what users notice")
	}
	after = unreleasedLink.ReplaceAllString(after, fmt.Sprintf("[Unreleased]: ${1}/compare/v%s...HEAD\n[%s]: ${1}/compare/v${2}...v%s", r.version, r.version, r.version))
	return fmt.Sprintf("%s\n## [%s] - %s\n%s", before, r.version, r.now.UTC().Format("2006-01-02"), after), nil
}
