// Package diagrams draws docs/architecture.svg and docs/handover.svg.
package diagrams

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const style = `
text { font: 13px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328; text-anchor: middle; }
.small { font-size: 11.5px; fill: #59636e; } .title { font-weight: 600; }
.ground { fill: #ffffff; stroke: #d1d9e0; } .box { fill: #f6f8fa; stroke: #59636e; } .inner { fill: #ffffff; stroke: #59636e; }
.ours { fill: #ddf4ff; stroke: #0969da; } .items { fill: #0969da; stroke: #0969da; } .gone { fill: none; stroke: #59636e; stroke-dasharray: 3 3; }
.data { fill: none; stroke: #59636e; stroke-width: 1.5; marker-end: url(#a); } .both { marker-start: url(#a); }
.copy { stroke: #0969da; stroke-width: 3; } .control { fill: none; stroke: #0969da; stroke-width: 1.5; stroke-dasharray: 5 3; marker-end: url(#a); }
.head { fill: #59636e; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .small { fill: #9198a1; }
.ground { fill: #0d1117; stroke: #3d444d; } .box { fill: #151b23; stroke: #9198a1; } .inner { fill: #0d1117; stroke: #9198a1; }
.ours { fill: #0c2d6b; stroke: #58a6ff; } .items { fill: #58a6ff; stroke: #58a6ff; } .gone { stroke: #9198a1; }
.data { stroke: #9198a1; } .head { fill: #9198a1; } .copy, .control { stroke: #58a6ff; }
}
`

// diagram is a picture of a size, in pixels.
type diagram struct {
	bytes.Buffer
	width, height int
	title         string
}

// Draw draws the diagrams in docs/.
func Draw(context.Context, []string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	for name, d := range diagrams() {
		if err := os.WriteFile(filepath.Join(root, "docs", name), d.svg(), 0o644); err != nil { //nolint:gosec // a document
			return err
		}
	}
	return nil
}

func diagrams() map[string]*diagram {
	return map[string]*diagram{"architecture.svg": architecture(), "handover.svg": handover()}
}

func (d *diagram) svg() []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0,0,%[1]d,%[2]d" role="img" aria-labelledby="t">
<title id="t">%[3]s</title>
<style>%[4]s</style>
<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>
<rect class="ground" x="0.5" y="0.5" width="%[5]d" height="%[6]d" rx="6"/>
%[7]s</svg>
`, d.width, d.height, html.EscapeString(d.title), style, d.width-1, d.height-1, d.String())
}

// box draws a rectangle with a name, and a remark below it.
func (d *diagram) box(class string, x, y, width, height int, name, remark string) {
	fmt.Fprintf(d, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="5"/>`+"\n", class, x, y, width, height)
	middle := y + height/2 + 4
	if remark != "" {
		d.text("small", x+width/2, middle+9, remark)
		middle -= 8
	}
	d.text("", x+width/2, middle, name)
}

func (d *diagram) text(class string, x, y int, words string) {
	if words != "" {
		fmt.Fprintf(d, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(words))
	}
}

func (d *diagram) arrow(class, path string) {
	fmt.Fprintf(d, `<path class="%s" d="%s"/>`+"\n", class, path)
}

func architecture() *diagram {
	d := &diagram{width: 900, height: 400, title: "Architecture: a Service, a ReplicaSet and a pod per shard"}
	d.box("box", 20, 150, 110, 60, "your clients", "hash each key")
	d.box("box", 390, 30, 310, 110, "", "")
	d.text("", 545, 49, "pod of shard cache-0")
	d.box("inner", 402, 60, 96, 66, "memcached", "")
	d.box("inner", 510, 60, 84, 66, "items", "in memory")
	d.box("ours", 606, 60, 84, 66, "agent", "PID 1")
	d.arrow("data both", "M498 93H509")
	d.arrow("data both", "M606 93H595")
	for i, y := range []int{60, 155, 250} {
		remark := ""
		if i == 0 {
			remark = "stable address"
		} else {
			d.box("box", 390, y, 310, 50, fmt.Sprintf("pod of shard cache-%d", i), "")
		}
		d.box("box", 190, y, 130, 50, fmt.Sprintf("Service cache-%d", i), remark)
		d.arrow("data", fmt.Sprintf("M130 %dL188 %d", 170+10*i, y+25+5*(1-i)))
		d.arrow("data", fmt.Sprintf("M320 %dH%d", y+25, []int{400, 388, 388}[i]))
	}
	d.box("box", 750, 60, 130, 50, "ReplicaSet", "one per shard")
	d.box("ours", 750, 155, 130, 50, "operator", "")
	d.box("ours", 425, 335, 240, 46, "Job", "backs up or restores all shards")
	d.box("box", 750, 335, 130, 46, "volume or S3", "")
	d.arrow("control", "M750 75H702")
	d.arrow("control", "M815 155V112")
	d.arrow("control", "M750 165L692 120")
	d.arrow("control", "M750 185H702")
	d.arrow("control", "M750 195L702 262")
	d.arrow("control", "M815 205C 805 290 740 320 660 334")
	d.arrow("data both", "M545 333V302")
	d.arrow("data both", "M665 358H748")
	d.text("small", 150, 350, "solid: connections and items")
	d.text("small", 150, 368, "dashed: what creates and manages")
	return d
}

// handover has a frame for each of its steps.
func handover() *diagram {
	const frame, pod = 224, 86
	d := &diagram{width: 4*frame + 4, height: 262, title: "A handover: the first pod serves until the replacement has its items"}
	for i, step := range []struct {
		title, remark, more string
		first, second       int // squares of items; -1 without a pod
	}{
		{"1. The first pod serves", "until an update, a drain", "or a deletion replaces it", 4, -1},
		{"2. The items are copied", "while the first pod serves;", "changes are copied again", 4, 2},
		{"3. The Service switches", "Strict: no pod serves, up to a second", "Available: both serve, 5 s or more", 4, 4},
		{"4. The replacement serves", "with the items; the first pod", "is deleted", -1, 4},
	} {
		x := 2 + i*frame
		d.text("title", x+frame/2, 28, step.title)
		d.box("box", x+frame/2-60, 44, 120, 34, "Service cache-0", "")
		for at, squares := range []int{step.first, step.second} {
			left, name := x+18+at*(pod+16), []string{"first pod", "replacement"}[at]
			if squares < 0 {
				d.box("gone", left, 124, pod, 70, "", "")
				continue
			}
			d.box("box", left, 124, pod, 70, "", "")
			d.text("small", left+pod/2, 143, name)
			for n := range 4 {
				class := "inner"
				if n < squares {
					class = "items"
				}
				d.box(class, left+9+n*18, 156, 14, 24, "", "")
			}
		}
		first, second := fmt.Sprintf("M%d 78L%d 122", x+frame/2-20, x+18+pod/2), fmt.Sprintf("M%d 78L%d 122", x+frame/2+20, x+34+pod+pod/2)
		switch i {
		case 0, 1:
			d.arrow("data", first)
		case 2:
			d.arrow("data gone", first)
			d.arrow("data gone", second)
		case 3:
			d.arrow("data", second)
		}
		if i == 1 || i == 2 {
			d.arrow("data copy", fmt.Sprintf("M%d 168H%d", x+18+pod-8, x+34+pod+6))
		}
		d.text("small", x+frame/2, 220, step.remark)
		d.text("small", x+frame/2, 237, step.more)
		if i > 0 {
			fmt.Fprintf(d, `<path class="ground" d="M%d 16V246"/>`+"\n", x)
		}
	}
	return d
}
