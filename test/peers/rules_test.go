package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
	"github.com/memcached-operator/memcached-operator/test/internal/prometheus"
)

// monitoringDir contains the rules and dashboards that the operator creates.
const monitoringDir = "../../config/monitoring"

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Getenv("PROMTOOL"), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

type ruleGroups struct {
	Groups []struct {
		Name  string           `json:"name"`
		Rules []map[string]any `json:"rules"`
	} `json:"groups"`
}

// TestAlertsFireAndStaySilent evaluates the rules with series of failures, and of a rolling update, scaling, a surge
// and closed windows. Each alert is among those that fire.
func TestAlertsFireAndStaySilent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests, err := os.ReadFile("testdata/rules.test.yaml")
	pods.Must(t, err)
	for _, name := range []string{"shards.rules.yaml", "operator.rules.yaml"} {
		raw, err := os.ReadFile(filepath.Join(monitoringDir, name))
		pods.Must(t, err)
		pods.Must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
		promtool(t, dir, "check", "rules", name)
		var groups ruleGroups
		pods.Must(t, yaml.UnmarshalStrict(raw, &groups))
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				delete(rule, "annotations")
				if alert, ok := rule["alert"].(string); ok && !strings.Contains(string(tests), "alertname: "+alert+"\n    exp_alerts: [{") {
					t.Errorf("no test has %s fire", alert)
				}
			}
		}
		var spec struct{ Groups []any }
		pods.Must(t, yaml.Unmarshal(raw, &spec))
		prometheus.Shorten(spec.Groups, 60)
		short, err := yaml.Marshal(map[string]any{"groups": spec.Groups})
		pods.Must(t, err)
		pods.Must(t, os.WriteFile(filepath.Join(dir, "short.yaml"), short, 0o600))
		promtool(t, dir, "check", "rules", "short.yaml")
		if long := regexp.MustCompile(`[\[: ][0-9]+[mhd]\b`).FindString(string(short)); long != "" {
			t.Errorf("%s: %q isn't shortened for the test on a cluster", name, long)
		}
		stripped, err := yaml.Marshal(groups)
		pods.Must(t, err)
		pods.Must(t, os.WriteFile(filepath.Join(dir, name), stripped, 0o600))
	}
	pods.Must(t, os.WriteFile(filepath.Join(dir, "rules.test.yaml"), tests, 0o600))
	promtool(t, dir, "test", "rules", "rules.test.yaml")
}

func TestQueriesOfDashboardsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(monitoringDir, "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the dashboards are %v (%v)", files, err)
	}
	dir, variables := t.TempDir(), strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$memcached", ".*", "$shard", ".*") // as Grafana does
	for i, file := range files {
		raw, err := os.ReadFile(file)
		pods.Must(t, err)
		d, err := prometheus.ParseDashboard(raw)
		pods.Must(t, err)
		var rules []any
		for _, p := range d.AllPanels() {
			if len(p.Targets) == 0 {
				t.Errorf("%s: panel %s has no query", file, p.Title)
			}
			for _, target := range p.Targets {
				expr := variables.Replace(target.Expr)
				if strings.Contains(expr, "$") {
					t.Errorf("%s: a variable is unknown in %s", file, expr)
				}
				rules = append(rules, map[string]any{"record": fmt.Sprintf("query:%d", len(rules)), "expr": expr})
			}
		}
		if len(rules) < 15 {
			t.Errorf("%s has only %d queries", file, len(rules))
		}
		name := fmt.Sprintf("%d.yaml", i)
		content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
		pods.Must(t, err)
		pods.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		promtool(t, dir, "check", "rules", name)
	}
}
