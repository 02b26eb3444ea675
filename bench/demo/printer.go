package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// printer prints chapters, commands of a user, and their results.
type printer struct {
	to    io.Writer
	began time.Time
	color bool
}

// colorVariable is set in the pod when the demo prints to a terminal.
const colorVariable = "DEMO_COLOR"

func newPrinter(to *os.File) *printer {
	info, err := to.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{to: to, began: time.Now(), color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p *printer) chapter(title string) {
	fmt.Fprintf(p.to, "\n%s\n", p.paint("1", title))
}

// command prints the command that a user would run.
func (p *printer) command(format string, args ...any) {
	fmt.Fprintf(p.to, "  %s\n", p.paint("36", "$ "+fmt.Sprintf(format, args...)))
}

// result prints a result with the time since the start of the demo.
func (p *printer) result(format string, args ...any) {
	fmt.Fprintf(p.to, "  %s %s\n", p.paint("2", fmt.Sprintf("%5.1fs", time.Since(p.began).Seconds())), fmt.Sprintf(format, args...))
}

// good prints a result that is the purpose of the operator.
func (p *printer) good(format string, args ...any) {
	p.result("%s", p.paint("32", fmt.Sprintf(format, args...)))
}

func (p *printer) say(text string) { fmt.Fprintln(p.to, text) }

func (p *printer) paint(style, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// kubectl runs kubectl in the project's folder and prints the command and its output.
func (p *printer) kubectl(ctx context.Context, format string, args ...any) error {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		program = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	}
	line := fmt.Sprintf(format, args...)
	p.command("kubectl %s", line)
	cmd := exec.CommandContext(ctx, program, strings.Fields(line)...)
	if cmd.Dir, err = cluster.Root(); err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", line, err, out)
	}
	for row := range strings.Lines(string(out)) {
		p.say("  " + strings.TrimRight(row, "\n"))
	}
	return nil
}
