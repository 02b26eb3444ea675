package prometheus

import "testing"

func TestShortenDividesWindowsWaitsAndTheHour(t *testing.T) {
	rule := map[string]any{"alert": "A", "expr": `rate(a[5m]) < 0.7 * avg_over_time(b[1d] offset 1h) and time() - c > 3600`, "for": "10m"}
	Shorten([]any{map[string]any{"name": "g", "rules": []any{rule}}}, 60)
	const want = `rate(a[5000ms]) < 0.7 * avg_over_time(b[1440000ms] offset 60000ms) and time() - c > 60`
	if rule["expr"] != want || rule["for"] != "10000ms" {
		t.Errorf("the rule is %v, want %s", rule, want)
	}
}
