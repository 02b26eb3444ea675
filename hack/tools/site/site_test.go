// Package site tests the site of docs/ in a browser.
package site

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// serve builds the site, and that of a release in it, for a server that it returns with the site's folder.
func serve(t *testing.T) (server *httptest.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join(dir, filepath.FromSlash(r.URL.Path))
		if _, err := os.Stat(name); err == nil {
			http.ServeFile(w, r, name)
			return
		}
		// As GitHub's server does.
		page, err := os.ReadFile(filepath.Join(dir, "404.html"))
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(page)
	}))
	t.Cleanup(server.Close)
	for _, release := range []string{"", "1.0.0"} {
		hugo := exec.Command("go", "tool", "hugo", "--source", "../../site", "--destination", filepath.Join(dir, release), "--panicOnWarning", "--noBuildLock")
		hugo.Env = append(os.Environ(), "HUGO_PARAMS_ADDRESS="+server.URL+"/", "HUGO_PARAMS_RELEASES=1.0.0", "HUGO_PARAMS_RELEASE="+release)
		if out, err := hugo.CombinedOutput(); err != nil {
			t.Fatalf("building the site: %v\n%s", err, out)
		}
	}
	return server, dir
}

var (
	reference = regexp.MustCompile(`\s(?:href|src)="?([^"\s>]+)`)
	id        = regexp.MustCompile(`\sid="?([^"\s>]+)`)
)

// pages returns the paths of the pages, with a leading slash.
func pages(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".html") {
			all = append(all, filepath.ToSlash(strings.TrimPrefix(path, dir)))
		}
		return err
	})
	if err != nil || len(all) < 70 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

func TestLinksOfTheSiteResolve(t *testing.T) {
	server, dir := serve(t)
	links, ids := map[string][]string{}, map[string]bool{}
	for _, page := range pages(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, page))
		must(t, err)
		for _, match := range reference.FindAllSubmatch(content, -1) {
			links[page] = append(links[page], string(match[1]))
		}
		for _, match := range id.FindAllSubmatch(content, -1) {
			ids[page+"#"+string(match[1])] = true
		}
	}
	for page, all := range links {
		base, _ := url.Parse(server.URL + page) // which is a path
		for _, link := range all {
			to, err := base.Parse(link)
			if err != nil {
				t.Errorf("%s links to %s: %v", page, link, err)
				continue
			}
			local, found := strings.CutPrefix(to.String(), server.URL)
			if _, err := os.Stat(filepath.Join(dir, to.Path)); found && (err != nil || to.Fragment != "" && !ids[local]) {
				t.Errorf("%s links to %s, which doesn't exist", page, link)
			}
		}
	}
}

func TestSitePassesInABrowser(t *testing.T) {
	const missing = "/runbooks/none.html"
	server, dir := serve(t)
	program, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		program, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		t.Fatal(`a browser is missing: run "apt-get install chromium-headless-shell" as root`)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Hour))...) // its default is 20 s
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	copying := browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "clipboard-write"}, Setting: browser.PermissionSettingGranted}
	_, err = chromedp.CallBrowser(ctx, browser.SetPermission, copying)
	must(t, err)
	console := chromedp.Console(ctx)
	tooWide := chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
		must(t, err)
		for _, width := range []int64{1440, 400} {
			look := func(name string, steps ...chromedp.Action[chromedp.Void]) {
				t.Helper()
				name = fmt.Sprintf("%s-%d-%s", name, width, scheme)
				if err := chromedp.Do(ctx, steps...); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if wide, err := chromedp.Run(ctx, tooWide); err != nil || wide {
					t.Errorf("%s: the page is wider than the screen, %v", name, err)
				}
				picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
				must(t, err)
				must(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), picture, 0o644))
			}
			open := func(page string) chromedp.Action[chromedp.Void] { return chromedp.Navigate(server.URL + page) }
			const field = "#memcachedspecupdatestrategyhandovernodedraintaints"
			look("home", chromedp.EmulateViewport(width, 900), open("/index.html"))
			look("search", chromedp.SendKeys("input[type=search]", "nodeDrain taints"), chromedp.WaitVisible("#found a"))
			look("api", chromedp.KeyEvent("\r"), chromedp.WaitVisible(field))
			if found, err := chromedp.Run(ctx, chromedp.Location()); err != nil || found != server.URL+"/api.html"+field {
				t.Errorf("the search leads to %s, %v", found, err)
			}
			look("page", open("/tls.html"), chromedp.Click(".copy"), chromedp.WaitVisible(`//button[.="Copied"]`))
			look("tables", open("/changes.html"))
			look("missing", open(missing), chromedp.WaitVisible("main a"))
			if width == 400 {
				look("menu", open("/tls.html"), chromedp.Click("button[popovertarget=menu]"), chromedp.Click(`//summary[.="Start"]`), chromedp.WaitVisible(`//nav/*/a[.="Quickstart"]`))
			}
		}
	}
	for _, page := range pages(t, dir) { // on the phone
		must(t, chromedp.Do(ctx, chromedp.Navigate(server.URL+page)))
		if wide, err := chromedp.Run(ctx, tooWide); err != nil || wide {
			t.Errorf("%s is wider than the screen of a phone, %v", page, err)
		}
	}
	const end = "the last message"
	_, err = chromedp.Run(ctx, chromedp.Evaluate[any](`console.log("`+end+`")`))
	must(t, err)
	for message, err := range console {
		must(t, err)
		if message.Text == end {
			break
		}
		if message.URL != server.URL+missing {
			t.Errorf("the console says %s: %s (%s)", message.Type, message.Text, message.URL)
		}
	}
}

// Editors read the schema that the first line of a sample names.
func TestSamplesFollowTheirSchemas(t *testing.T) {
	_, dir := serve(t)
	var config struct{ Params struct{ Address string } }
	settings, err := os.ReadFile("../../site/hugo.yaml")
	must(t, err)
	must(t, yaml.Unmarshal(settings, &config))
	samples, err := filepath.Glob("../../../config/samples/cache_*.yaml")
	if err != nil || len(samples) < 6 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	for _, sample := range samples {
		content, err := os.ReadFile(sample)
		must(t, err)
		first, _, _ := bytes.Cut(content, []byte("\n"))
		name, found := strings.CutPrefix(string(first), "# yaml-language-server: $schema="+config.Params.Address)
		if !found {
			t.Errorf("%s begins with %q, which names no schema", sample, first)
			continue
		}
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", sample, err)
			continue
		}
		var object map[string]any
		must(t, yaml.Unmarshal(content, &object))
		if err := schema.Validate(object); err != nil {
			t.Errorf("%s: %v", sample, err)
		}
		object["spec"].(map[string]any)["memmory"] = "1Gi"
		if schema.Validate(object) == nil {
			t.Errorf("%s accepts a field that doesn't exist", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
