// Package docs tests the documents against the API and the repository.
package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// markdown returns the text of all documents by their paths in the repository.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	documents := map[string]string{"README.md": "", "CONTRIBUTING.md": "", "SECURITY.md": "", "MAINTAINERS.md": "", "CHANGELOG.md": ""}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			documents[path] = ""
		}
		return err
	})
	if err != nil || len(documents) < 30 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	for path := range documents {
		documents[path] = read(t, path)
	}
	return documents
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// block is a fenced block of a document.
type block struct {
	document, language, text string
	line                     int
}

// split returns the fenced blocks of a document, and its text without them.
func split(path, document string) (blocks []block, prose string) {
	var text strings.Builder
	var open *block
	for i, line := range strings.Split(document, "\n") {
		language, isFence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case isFence && open == nil:
			open = &block{document: path, language: language, line: i + 1}
		case isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		default:
			text.WriteString(line + "\n")
		}
	}
	return blocks, text.String()
}

// section returns the text below a heading, up to the next heading of the same level
// or above.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	level := strings.Repeat("#", strings.IndexByte(heading, ' '))
	_, below, found := strings.Cut("\n"+document, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	if end := regexp.MustCompile(`(?m)^#{1,` + strconv.Itoa(len(level)) + `} `).FindStringIndex(below); end != nil {
		below = below[:end[0]]
	}
	return below
}

// rows returns the cells of all table rows in a text, without headers.
func rows(text string) [][]string {
	var all [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("`([^`\n]+)`")
)

// anchors returns the anchors that GitHub and the site give to the headings of a document.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	_, prose := split("", document)
	for _, match := range heading.FindAllStringSubmatch(prose, -1) {
		kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		anchor := "#" + strings.ReplaceAll(kept, " ", "-")
		for n := 1; found[anchor]; n++ {
			anchor = strings.TrimSuffix(anchor, "-"+strconv.Itoa(n-1)) + "-" + strconv.Itoa(n)
		}
		found[anchor] = true
	}
	return found
}

func TestLinksOfTheDocumentsResolve(t *testing.T) {
	documents := markdown(t)
	for document, text := range documents {
		_, prose := split(document, text)
		for _, match := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := document
			if match[1] != "" {
				target = path.Join(path.Dir(document), match[1])
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", document, match[1], err)
			} else if match[2] != "" && !anchors(read(t, target))[match[2]] {
				t.Errorf("%s links to %s%s, and %s has no such heading", document, match[1], match[2], target)
			}
		}
	}
}

// The catalog of OperatorHub shows these links.
func TestLinksOfTheBundleToTheRepositoryResolve(t *testing.T) {
	base := read(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml")
	linked := regexp.MustCompile(`https://github\.com/memcached-operator/memcached-operator/blob/[\w.-]+/([\w./-]+)(#[\w-]+)?`).FindAllStringSubmatch(base, -1)
	if len(linked) == 0 {
		t.Error("it has no link to a document")
	}
	for _, match := range linked {
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
			t.Error(err)
		} else if match[2] != "" && !anchors(read(t, match[1]))[match[2]] {
			t.Errorf("%s has no heading %s", match[1], match[2])
		}
	}
}

// installed is the release that a command of a document installs.
var installed = regexp.MustCompile(`\?ref=(\S+?)"`)

func TestDocumentsInstallAnExistingRelease(t *testing.T) {
	releases, err := fs.Glob(os.DirFS(root), "catalog/releases/[0-9]*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("%v, %v", releases, err)
	}
	for path, document := range markdown(t) {
		for _, ref := range installed.FindAllStringSubmatch(document, -1) {
			version := strings.TrimPrefix(ref[1], "v")
			if _, err := os.Stat(filepath.Join(root, "catalog/releases", version)); err != nil {
				t.Errorf("%s installs %s, which is no release: %v", path, ref[1], err)
			}
		}
	}
}

func TestTheIndexLinksToEveryDocument(t *testing.T) {
	linked := map[string]bool{"docs/README.md": true, "README.md": true}
	for _, match := range link.FindAllStringSubmatch(read(t, "docs/README.md"), -1) {
		linked[path.Join("docs", match[1])] = true
	}
	for document := range markdown(t) {
		if !linked[document] {
			t.Errorf("docs/README.md doesn't link to %s", document)
		}
	}
}

// languages are those of fenced blocks, and what checks them.
var languages = map[string]string{
	"yaml":       "TestEveryExampleIsAKnownKind, and TestExamplesOfTheDocumentsAreValid in internal/schemaedit",
	"shell":      "TestCommandsOfTheDocuments",
	"go":         "TestSnippetsOfTheDocuments in test/peers, for clients.md",
	"python":     "TestSnippetsOfTheDocuments in test/peers",
	"console":    "nothing: the output of a command",
	"text":       "nothing",
	"json":       "nothing: an extract of a file",
	"php":        "nothing",
	"java":       "nothing",
	"ruby":       "nothing",
	"javascript": "nothing",
}

func TestEveryBlockHasALanguage(t *testing.T) {
	for document, text := range markdown(t) {
		blocks, _ := split(document, text)
		for _, b := range blocks {
			if languages[b.language] == "" {
				t.Errorf("%s:%d: no test knows the language %q", document, b.line, b.language)
			}
		}
	}
}

func TestHeadingsAreBetweenBlankLines(t *testing.T) {
	for document, text := range markdown(t) {
		_, prose := split(document, text)
		for _, match := range regexp.MustCompile(`(?m)(?:^.+\n(#+ .+)$)|(?:^(#+ .+)\n.)`).FindAllString(prose, -1) {
			t.Errorf("%s: no blank line beside the heading in %q", document, match)
		}
	}
}

// paths are inline code that looks like a path in the repository.
var paths = regexp.MustCompile(`^(api|bundle|catalog|cmd|config|controllers|dist|docs|hack|internal|test)/[\w./{},*-]*$`)

func TestPathsOfTheDocumentsExist(t *testing.T) {
	checked := 0
	for document, text := range markdown(t) {
		_, prose := split(document, text)
		for _, match := range code.FindAllStringSubmatch(prose, -1) {
			if !paths.MatchString(match[1]) || strings.ContainsAny(match[1], "{*") || strings.HasPrefix(match[1], "dist") {
				continue
			}
			checked++
			// A release's folder exists after its command.
			if strings.HasPrefix(match[1], "catalog/releases/") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names `%s`: %v", document, match[1], err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d paths were found", checked)
	}
}
