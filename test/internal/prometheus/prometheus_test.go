package prometheus

import "testing"

func TestShortenDividesWindowsAndTheHour(t *testing.T) {
	const expr = `rate(a[5m]) < 0.7 * avg_over_time(b[1d] offset 1h) and time() - c > 3600`
	const want = `rate(a[5000ms]) < 0.7 * avg_over_time(b[1440000ms] offset 60000ms) and time() - c > 60`
	if got := Shorten(expr, 60); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestShortenedDividesWaitsAndAddsLabels(t *testing.T) {
	groups := []any{map[string]any{"name": "g", "rules": []any{
		map[string]any{"record": "r", "expr": "rate(a[5m])"},
		map[string]any{"alert": "A", "expr": "a > 0", "for": "10m", "labels": map[string]any{"severity": "warning"}},
	}}}
	got, err := Shortened(groups, 60, 5, map[string]any{"waits": "longer"}, false)
	if err != nil {
		t.Fatal(err)
	}
	rules := got[0].(map[string]any)["rules"].([]any)
	if len(rules) != 1 {
		t.Fatalf("the rules are %v", rules)
	}
	alert := rules[0].(map[string]any)
	labels := alert["labels"].(map[string]any)
	if alert["for"] != "120000ms" || labels["severity"] != "warning" || labels["waits"] != "longer" {
		t.Errorf("the alert is %v", alert)
	}
}
