// Package recording draws pictures of commands on a page in docs/ and of what they print: docs/quickstart.svg, which is animated, and
// those of the plugin for kubectl.
package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// recording is a picture, docs/NAME.svg.
type recording struct {
	name, title string
	// columns is its width in characters, and longest is how many lines of an output it shows.
	columns, longest int
}

var recordings = []recording{
	{"quickstart", "The commands of the quickstart: a client reads 1,000 items again after an upgrade", 80, 8},
	{"plugin-status", "The output of kubectl memcached status", 100, 40},
	{"plugin-top", "The output of kubectl memcached top", 100, 40},
	{"plugin-ring", "The output of kubectl memcached ring", 100, 40},
	{"plugin-size", "The output of kubectl memcached size", 110, 40},
	{"plugin-why", "The output of kubectl memcached why", 100, 40},
}

func (r recording) file(root string) string { return filepath.Join(root, "docs", r.name+".svg") }

// Run draws the picture of each recording, which is a file of asciinema with commands as inputs. Without files, it draws all pictures
// again from the recordings in them.
func Run(_ context.Context, files []string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	for _, r := range recordings {
		if len(files) == 0 {
			svg, err := os.ReadFile(r.file(root))
			if err != nil {
				return err
			}
			if err := r.write(root, read(svg)); err != nil {
				return err
			}
		}
		for _, file := range files {
			if filepath.Base(file) != r.name+".cast" {
				continue
			}
			cast, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := r.write(root, cast); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r recording) write(root string, cast []byte) error {
	svg, err := r.draw(cast)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", r.name, err)
	}
	return os.WriteFile(r.file(root), svg, 0o644) //nolint:gosec // a document
}

const dataBegin, dataEnd = "<metadata>", "</metadata>"

// read returns the recording in a picture.
func read(svg []byte) []byte {
	_, data, _ := bytes.Cut(svg, []byte(dataBegin))
	data, _, _ = bytes.Cut(data, []byte(dataEnd))
	return []byte(html.UnescapeString(string(data)))
}

// event is a command, an input, or what it printed.
type event struct {
	seconds    float64
	kind, text string
}

func parse(cast []byte) (events []event, err error) {
	for _, line := range bytes.Split(bytes.TrimSpace(cast), []byte("\n"))[1:] { // the first one is a header
		var e event
		if err := json.Unmarshal(line, &[]any{&e.seconds, &e.kind, &e.text}); err != nil {
			return nil, fmt.Errorf("reading %s: %w", line, err)
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, errors.New("the recording has no command")
	}
	return events, nil
}

// What an animation shows, in rows and seconds.
const (
	visible                         = 24
	wait, typing, reading, lastHold = 2.0, 0.15, 1.0, 6.0
)

// row is a row of the terminal, and when it appears, in seconds.
type row struct {
	class, text string
	seconds     float64
}

// rows returns the rows of a recording without its last command, which deletes the cache, and the seconds that it took.
func (r recording) rows(events []event) (all []row, took float64) {
	shown, begun, before, printed := 0.0, 0.0, 0.0, 0
	add := func(class, text string) {
		for len(text) > r.columns {
			end := strings.LastIndex(text[:r.columns], " ")
			if end < r.columns/2 {
				end = r.columns
			}
			all = append(all, row{class, text[:end], shown})
			text = " " + text[end:]
		}
		all = append(all, row{class, text, shown})
	}
	for _, e := range events {
		shown += min(e.seconds-before, wait)
		if e.kind == "i" {
			if before-begun >= 1 {
				add("note", fmt.Sprintf("(%.0f s)", before-begun))
			}
			if strings.HasPrefix(e.text, "kubectl delete ") {
				break
			}
			shown, begun, printed = shown+reading, e.seconds, 0
			for text := range strings.SplitSeq("$ "+strings.TrimSpace(e.text), "\n") {
				add("command", text)
				shown += typing
			}
			shown += reading
		} else {
			for text := range strings.SplitSeq(strings.TrimSpace(e.text), "\n") {
				if printed++; printed <= r.longest {
					add("", text)
				} else if printed == r.longest+1 {
					add("note", "…")
				}
			}
		}
		before = e.seconds
	}
	return all, before
}

const style = `
text { font: 16px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; fill: #59636e; }
.ground { fill: #f6f8fa; } .frame { fill: #f6f8fa; stroke: #d1d9e0; } .command { fill: #1f2328; font-weight: 600; } .note { fill: #0969da; } .cursor { fill: #59636e; }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1; }
.ground { fill: #0d1117; } .frame { fill: #0d1117; stroke: #3d444d; } .command { fill: #f0f6fc; } .note { fill: #58a6ff; } .cursor { fill: #9198a1; }
}
`

// The rows of a picture, in pixels.
const space, left, bar, bottom = 22, 12, 40, 6

// draw returns the picture. Only one of several commands is animated.
func (r recording) draw(cast []byte) ([]byte, error) {
	events, err := parse(cast)
	if err != nil {
		return nil, err
	}
	all, took := r.rows(events)
	var texts strings.Builder
	for i, row := range all {
		fmt.Fprintf(&texts, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", row.class, left, i*space+16, strings.ReplaceAll(html.EscapeString(row.text), " ", "\u00a0")) // browsers collapse spaces
	}
	commands := 0
	for _, e := range events {
		if e.kind == "i" {
			commands++
		}
	}
	width, height, top := r.columns*98/10+2*left, len(all)*space, bottom
	keyframes, note, body := "", "", texts.String()
	if commands > 1 {
		height, top = visible*space, bar
		keyframes, body = animate(all, body, width)
		note = fmt.Sprintf("<text class=\"note\" x=\"%d\" y=\"25\">Recorded in %.0f s with images pulled; waits shortened to %.0f s</text>\n", left, took, wait)
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0,0,%[1]d,%[2]d" role="img" aria-labelledby="t">
<title id="t">%[3]s</title>
%[4]s%[5]s%[6]s
<style>%[7]s%[8]s</style>
<rect class="frame" x="0.5" y="0.5" width="%[9]d" height="%[10]d" rx="6"/>
%[11]s<svg y="%[12]d" width="%[1]d" height="%[13]d">%[14]s</svg>
</svg>
`, width, height+top+bottom, r.title, dataBegin, html.EscapeString(string(cast)), dataEnd, style, keyframes, width-1, height+top+bottom-1, note, top, height, body), nil
}

// animate returns the style of an animation that shows one row after the other, and the rows in it. Where animations are off, it is the
// last frame.
func animate(all []row, texts string, width int) (keyframes, body string) {
	total := all[len(all)-1].seconds + lastHold
	var curtain, scroll strings.Builder
	for i, r := range all {
		if i+1 < len(all) && all[i+1].seconds == r.seconds {
			continue
		}
		percent := 100 * r.seconds / total
		fmt.Fprintf(&curtain, "%.2f%% { transform: translateY(%dpx); }\n", percent, (i+1)*space)
		fmt.Fprintf(&scroll, "%.2f%% { transform: translateY(%dpx); }\n", percent, -max(0, i+2-visible)*space)
	}
	curtainEnd, scrollEnd := len(all)*space, -max(0, len(all)+1-visible)*space
	return fmt.Sprintf(`.curtain { transform: translateY(%[1]dpx); animation: curtain %.1[2]fs step-end infinite; }
.scroll { transform: translateY(%[3]dpx); animation: scroll %.1[2]fs step-end infinite; }
@media (prefers-reduced-motion: reduce) { .curtain, .scroll { animation: none; } }
@keyframes curtain {
0%% { transform: none; }
%[4]s100%% { transform: translateY(%[1]dpx); }
}
@keyframes scroll {
0%% { transform: none; }
%[5]s100%% { transform: translateY(%[3]dpx); }
}
`, curtainEnd, total, scrollEnd, curtain.String(), scroll.String()), fmt.Sprintf(`<g class="scroll">
%s<g class="curtain"><rect class="ground" x="2" width="%d" height="%d"/><rect class="cursor" x="%d" y="2" width="9" height="18"/></g>
</g>`, texts, width-4, (len(all)+1)*space, left)
}
