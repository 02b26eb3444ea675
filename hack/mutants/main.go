// Mutants changes one expression or statement of the code at a time, on the lines that differ from a base, and reports
// those changes that no test of the same package detects. Such a line lacks a test, or isn't needed.
//
// gremlins 0.6.0 can't do this: with --diff, it skips all mutants of a package that isn't the module's root, and without, it
// counts the conditions of a switch as not covered.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sourcegraph/go-diff/diff"
)

// packages are the folders whose own tests verify each of their decisions.
var packages = []string{
	"controllers/memcached/plan", "controllers/memcached/preflight", "controllers/memcached/resources", "controllers/memcached/rollout",
	"controllers/memcached/shard", "controllers/memcached/status", "controllers/schedule", "controllers/transfer",
	"internal/agent", "internal/handover", "internal/memcached", "internal/snapshot",
}

func main() {
	base := flag.String("base", "origin/main", "commit or branch that the changed lines differ from")
	flag.Parse()
	if err := os.Chdir(".."); err != nil { // "go -C hack run" starts this program in hack
		panic(err)
	}
	if flag.NArg() > 0 {
		packages = flag.Args()
	}
	survivors, err := run(*base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		fmt.Printf("%d mutants survived: test these lines, or delete what they don't need\n", survivors)
		os.Exit(1)
	}
}

func run(base string) (survivors int, err error) {
	changed, err := changedLines(base)
	if err != nil {
		return 0, err
	}
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		source, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		mutants, err := mutate(source, changed[file])
		if err != nil {
			return 0, err
		}
		if len(mutants) == 0 {
			continue
		}
		if out, err := test(file, source); err != nil {
			return 0, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", path.Dir(file), err, out)
		}
		killed := 0
		for _, m := range mutants {
			out, err := test(file, m.apply(source))
			var exit *exec.ExitError
			switch {
			case err == nil:
				survivors++
				fmt.Printf("%s:%d: %s\n", file, m.line, m.what)
			case !errors.As(err, &exit):
				return 0, err
			case !bytes.Contains(out, []byte("[build failed]")):
				killed++
			}
		}
		fmt.Printf("%s: %d mutants killed\n", file, killed)
	}
	return survivors, nil
}

// lines are the changed lines of a file.
type lines map[int]bool

// changedLines returns the lines of the packages' files that differ from a base.
func changedLines(base string) (map[string]lines, error) {
	args := []string{"diff", "--unified=0", "--no-color", "--no-ext-diff", "--merge-base", base, "--"}
	git := exec.Command("git", append(args, packages...)...)
	git.Stderr = os.Stderr
	out, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff: %w", err)
	}
	files, err := diff.ParseMultiFileDiff(out)
	if err != nil {
		return nil, fmt.Errorf("reading the output of git diff: %w", err)
	}
	changed := map[string]lines{}
	for _, f := range files {
		name := strings.TrimPrefix(f.NewName, "b/") // without it, the file was deleted
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") {
			continue
		}
		changed[name] = lines{}
		for _, hunk := range f.Hunks {
			for n := range hunk.NewLines {
				changed[name][int(hunk.NewStartLine+n)] = true
			}
		}
	}
	return changed, nil
}

// mutant replaces a part of a source.
type mutant struct {
	line, from, to int
	text, what     string
}

func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.from], []byte(m.text), source[m.to:])
}

// opposites are the operators that replace another one.
var opposites = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// mutate returns the mutants of a source on some of its lines: another operator, a negated condition, a call or an assignment
// that is omitted. Some don't compile.
func mutate(source []byte, only lines) (all []mutant, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	textOf := func(n ast.Node) string {
		return string(source[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
	}
	add := func(from, to token.Pos, text, what string) {
		m := mutant{files.Position(from).Line, files.Position(from).Offset, files.Position(to).Offset, text, strings.Join(strings.Fields(what), " ")}
		if only[m.line] {
			all = append(all, m)
		}
	}
	negate := func(condition ast.Expr) {
		add(condition.Pos(), condition.End(), "!("+textOf(condition)+")", "negates "+textOf(condition))
	}
	omit := func(statements []ast.Stmt) {
		for _, s := range statements {
			possible := false
			switch s := s.(type) {
			case *ast.ExprStmt, *ast.IncDecStmt:
				possible = true
			case *ast.AssignStmt:
				possible = s.Tok != token.DEFINE
			}
			if possible {
				add(s.Pos(), s.End(), "", "omits "+textOf(s))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if other, ok := opposites[n.Op]; ok {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), fmt.Sprintf("%s becomes %s in %s", n.Op, other, textOf(n)))
			}
		case *ast.IfStmt:
			negate(n.Cond)
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				if n.Tag == nil {
					for _, condition := range clause.(*ast.CaseClause).List {
						negate(condition)
					}
				}
			}
		case *ast.BlockStmt:
			omit(n.List)
		case *ast.CaseClause:
			omit(n.Body)
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b mutant) int { return a.from - b.from })
	return all, nil
}

// test runs the tests of a file's package with another content of the file. An environment for the tests of other packages
// is removed.
func test(file string, content []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	replacement, overlay := filepath.Join(dir, path.Base(file)), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	index, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(replacement, content, 0o600), os.WriteFile(overlay, index, 0o600)); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=5m", "-overlay="+overlay, "./"+path.Dir(file))
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBEBUILDER_ASSETS=") })
	return cmd.CombinedOutput()
}
