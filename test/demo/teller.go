package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// teller writes the story: what a person would type, what came of it, and when.
type teller struct {
	to    io.Writer
	began time.Time
	color bool
}

func newTeller(to *os.File) *teller {
	info, err := to.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &teller{to: to, began: time.Now(), color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// chapter begins a part of the story.
func (t *teller) chapter(title string) {
	fmt.Fprintf(t.to, "\n%s\n", t.paint("1", title))
}

// command shows what a person would type to the same end.
func (t *teller) command(format string, args ...any) {
	fmt.Fprintf(t.to, "  %s\n", t.paint("36", "$ "+fmt.Sprintf(format, args...)))
}

// result tells what came of it, after how long since the demo began.
func (t *teller) result(format string, args ...any) {
	fmt.Fprintf(t.to, "  %s %s\n", t.paint("2", fmt.Sprintf("%5.1fs", time.Since(t.began).Seconds())), fmt.Sprintf(format, args...))
}

// good is a result that the operator is there for.
func (t *teller) good(format string, args ...any) {
	t.result("%s", t.paint("32", fmt.Sprintf(format, args...)))
}

func (t *teller) say(text string) { fmt.Fprintln(t.to, text) }

func (t *teller) paint(style, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
