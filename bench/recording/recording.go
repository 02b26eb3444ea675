// Package recording draws docs/quickstart.svg, an animation of the commands of docs/quickstart.md and of what they print.
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

// Run draws the picture from a recording, which is a file of asciinema with commands as inputs, or again from the one in the picture.
func Run(_ context.Context, args []string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs/quickstart.svg")
	source, extract := file, read
	if len(args) > 0 {
		source, extract = args[0], func(cast []byte) []byte { return cast }
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	svg, err := draw(extract(content))
	if err != nil {
		return err
	}
	return os.WriteFile(file, svg, 0o644) //nolint:gosec // a document
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

// What the animation shows, in characters, rows and seconds.
const (
	columns, visible, longest       = 62, 24, 8
	wait, typing, reading, lastHold = 2.0, 0.15, 1.0, 6.0
)

// row is a row of the terminal, and when it appears, in seconds.
type row struct {
	class, text string
	seconds     float64
}

// rows returns the rows of a recording without its last command, which deletes the cache, and the seconds that it took.
func rows(events []event) (all []row, took float64) {
	shown, begun, before, printed := 0.0, 0.0, 0.0, 0
	add := func(class, text string) {
		for len(text) > columns {
			end := strings.LastIndex(text[:columns], " ")
			if end < columns/2 {
				end = columns
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
				if printed++; printed <= longest {
					add("", text)
				} else if printed == longest+1 {
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

// draw returns the picture. Without animations, it is the last frame.
func draw(cast []byte) ([]byte, error) {
	events, err := parse(cast)
	if err != nil {
		return nil, err
	}
	all, took := rows(events)
	const space, left, top = 22, 12, 40
	total := all[len(all)-1].seconds + lastHold
	var texts, curtain, scroll strings.Builder
	for i, r := range all {
		fmt.Fprintf(&texts, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", r.class, left, i*space+16, strings.ReplaceAll(html.EscapeString(r.text), " ", "\u00a0")) // browsers collapse spaces
		if i+1 < len(all) && all[i+1].seconds == r.seconds {
			continue
		}
		percent := 100 * r.seconds / total
		fmt.Fprintf(&curtain, "%.2f%% { transform: translateY(%dpx); }\n", percent, (i+1)*space)
		fmt.Fprintf(&scroll, "%.2f%% { transform: translateY(%dpx); }\n", percent, -max(0, i+2-visible)*space)
	}
	const width, height = columns*98/10 + 2*left, visible*space + top + 6
	curtainEnd, scrollEnd := len(all)*space, -max(0, len(all)+1-visible)*space
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0,0,%[1]d,%[2]d" role="img" aria-labelledby="t">
<title id="t">The commands of the quickstart: a client reads 1,000 items again after an upgrade</title>
%[3]s%[4]s%[5]s
<style>%[6]s.curtain { transform: translateY(%[7]dpx); animation: curtain %.1[8]fs step-end infinite; }
.scroll { transform: translateY(%[9]dpx); animation: scroll %.1[8]fs step-end infinite; }
@media (prefers-reduced-motion: reduce) { .curtain, .scroll { animation: none; } }
@keyframes curtain {
0%% { transform: none; }
%[10]s100%% { transform: translateY(%[7]dpx); }
}
@keyframes scroll {
0%% { transform: none; }
%[11]s100%% { transform: translateY(%[9]dpx); }
}
</style>
<rect class="frame" x="0.5" y="0.5" width="%[12]d" height="%[13]d" rx="6"/>
<text class="note" x="%[14]d" y="25">Recorded in %.0[15]f s with images pulled; waits shortened to %.0[16]f s</text>
<svg y="%[17]d" width="%[1]d" height="%[18]d"><g class="scroll">
%[19]s<g class="curtain"><rect class="ground" x="2" width="%[20]d" height="%[21]d"/><rect class="cursor" x="%[14]d" y="2" width="9" height="18"/></g>
</g></svg>
</svg>
`, width, height, dataBegin, html.EscapeString(string(cast)), dataEnd, style, curtainEnd, total, scrollEnd, curtain.String(), scroll.String(),
		width-1, height-1, left, took, wait, top, visible*space, texts.String(), width-4, (len(all)+1)*space), nil
}
