// Command commits checks the subjects of the commits since release 1.0.0: imperative, with a capital, without a full stop
// and of at most 72 characters. "make check-commits" runs it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// since is the subject of the commit after which the rule applies.
	since  = "Release 1.0.0"
	length = 72
	// bot names modules and folders in its subjects, whatever their length.
	bot = "dependabot[bot]"
)

func main() {
	checked, shallow, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "commits:", err)
		os.Exit(1)
	}
	if shallow {
		fmt.Print("a clone without its whole history: ")
	}
	fmt.Printf("checked the subjects of %d commits\n", checked)
}

// check returns how many commits it checked in the repository in dir, and whether the clone is shallow, so that it lacks
// older ones.
func check(dir string) (checked int, shallow bool, err error) {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	answer, err := git("rev-parse", "--is-shallow-repository")
	if err != nil {
		return 0, false, err
	}
	shallow = answer == "true"
	first, err := git("log", "-1", "--format=%H", "--grep=^"+regexp.QuoteMeta(since)+"$")
	if err != nil {
		return 0, shallow, err
	}
	if first == "" && !shallow {
		return 0, shallow, fmt.Errorf("no commit has the subject %q, after which commits are checked", since)
	}
	commits := []string{"log", "--no-merges", "--format=%h%x00%an%x00%s", "HEAD"}
	if first != "" {
		commits = append(commits, "^"+first)
	}
	log, err := git(commits...)
	if err != nil {
		return 0, shallow, err
	}
	var wrong []error
	for line := range strings.Lines(log) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if part[1] == bot {
			continue
		}
		checked++
		if why := fault(part[2]); why != "" {
			wrong = append(wrong, fmt.Errorf("%s %q: %s", part[0], part[2], why))
		}
	}
	if len(wrong) > 0 {
		return checked, shallow, fmt.Errorf("%d subjects need another wording (git rebase -i, reword):\n%w", len(wrong), errors.Join(wrong...))
	}
	return checked, shallow, nil
}

var (
	firstWord = regexp.MustCompile(`^[A-Z][a-z]+(-[a-z]+)*\b`)
	// An area, as in "Makefile: build once".
	area = regexp.MustCompile(`^[A-Za-z0-9/ ._-]+: `)
	// Verbs that look like another form.
	imperative = []string{"embed", "feed", "need", "seed", "shed", "speed", "bring", "string", "focus", "alias", "bias"}
	// First words that begin a statement.
	noVerb = []string{"a", "an", "the", "this", "that", "these", "it", "its", "no", "each", "every", "all", "what", "when", "who", "how", "we", "new", "more"}
)

// fault returns what is wrong with a subject; empty if nothing is.
func fault(subject string) string {
	if n := utf8.RuneCountInString(subject); n > length {
		return fmt.Sprintf("it has %d characters, use at most %d", n, length)
	}
	if strings.HasSuffix(subject, ".") {
		return "it ends with a full stop"
	}
	text := subject
	if prefix := area.FindString(subject); prefix != "" {
		text = strings.TrimPrefix(subject, prefix)
		text = strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
	}
	word := strings.ToLower(firstWord.FindString(text))
	switch {
	case word == "":
		return "it does not start with a capitalized verb"
	case slices.Contains(imperative, word):
		return ""
	case slices.Contains(noVerb, word) || strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing") ||
		strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return fmt.Sprintf("start with a verb in the imperative, such as Add or Fix, in place of %q", word)
	}
	return ""
}
