package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// fenced is a block of commands or of their output, with the prose before it.
var fenced = regexp.MustCompile("(.*)\n+```(shell|console)\n((?:.*\n)+?)```\n")

// The test runs the commands of the page, except for those of kind, with the chart and the manifest of this repository. The
// last installation on the page keeps running.
func TestCommandsOfTheQuickstartKeepAllItems(t *testing.T) {
	s := &space{(&suite.Space{Namespace: "default"}).In(t)}
	root, err := cluster.Root()
	s.Must(err)
	page, err := os.ReadFile(filepath.Join(root, "docs/quickstart.md"))
	s.Must(err)
	program, err := exec.CommandContext(s.Ctx, "go", "-C", filepath.Join(root, "test"), "tool", "-n", "helm").Output()
	s.Must(err)
	programs := t.TempDir()
	t.Setenv("PATH", programs+":"+filepath.Dir(string(program))+":"+os.Getenv("PATH"))
	image, err := k.OperatorImage(s.Ctx)
	s.Must(err)
	i := strings.LastIndex(image, ":")
	local := strings.NewReplacer(
		"oci://ghcr.io/memcached-operator/charts/memcached-operator", // the CRDs exist
		fmt.Sprintf("%s/charts/memcached-operator --take-ownership --set image.repository=%s,image.tag=%s", root, image[:i], image[i+1:]),
		"https://github.com/memcached-operator/memcached-operator/releases/latest/download/install.yaml",
		fmt.Sprintf("<(kubectl kustomize %s/config/default | sed -E 's#%s#%s#')", root, cluster.ReleasedImage, image),
		"kubectl krew install --manifest-url=https://github.com/memcached-operator/memcached-operator/releases/latest/download/memcached.yaml",
		fmt.Sprintf("go -C %s/cmd/kubectl-memcached build -o %s/kubectl-memcached . && echo Installed plugin: memcached", root, programs))
	s.ReturnsOperator(image, func(ctx context.Context) error {
		if s.Failed() {
			s.Log(k.Describe(ctx, s.Namespace))
		}
		return errors.Join(k.DeleteAllOf(ctx, &v1beta1.Memcached{}, client.InNamespace(s.Namespace)), s.helm().uninstall(ctx))
	})

	steps, output := 0, ""
	var began time.Time
	var recording []byte // events as in a file of asciinema, with a command as an input
	record := func(kind, text string) {
		event, err := json.Marshal([]any{time.Since(began).Seconds(), kind, text})
		s.Must(err)
		recording = append(append(recording, '\n'), event...)
	}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		prose, language, text := block[1], block[2], block[3]
		switch {
		case language == "shell" && !strings.HasPrefix(text, "kind "):
			steps++
			command := local.Replace(text)
			if strings.Contains(text, cluster.OperatorNamespace) { // it installs the operator
				s.Must(k.Uninstall(s.Ctx))
				recording, began = []byte(`{"version": 2, "width": 80, "height": 24}`), time.Now()
			}
			record("i", text)
			begun := time.Now()
			result, err := exec.CommandContext(s.Ctx, "bash", "-euo", "pipefail", "-c", command).CombinedOutput()
			output = string(result)
			record("o", output)
			s.Logf("%.1f s: %s%s", time.Since(begun).Seconds(), text, output)
			s.Must(err)
		case language == "console" && !strings.HasSuffix(prose, "similar to this:"):
			for line := range strings.Lines(text) {
				if !slices.Contains(strings.Split(output, "\n"), strings.TrimSuffix(line, "\n")) {
					s.Fatalf("the output lacks %q", line)
				}
			}
		}
	}
	if folder := os.Getenv(recordingsVariable); folder != "" {
		s.Must(os.WriteFile(filepath.Join(folder, "quickstart.cast"), recording, 0o600))
	}
	if steps < 8 || steps > 10 {
		t.Errorf("the page has %d steps, want at most 10", steps)
	}
}
