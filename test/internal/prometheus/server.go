// Package prometheus runs a Prometheus for tests, which scrapes and evaluates what the operator made for it.
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Server is a running Prometheus.
type Server struct {
	address string
	command *exec.Cmd
	output  bytes.Buffer
}

// Interval is the time between two scrapes, and between two evaluations of the rules.
const Interval = time.Second

// Start starts Prometheus with groups of rules. dir is for its files.
func Start(dir string, scrapes []Scrape, groups []any) (*Server, error) {
	program := os.Getenv("PROMETHEUS")
	if program == "" {
		return nil, errors.New(`PROMETHEUS is not set: run this through make (make test-e2e), or first eval "$(make -s env)"`)
	}
	rules, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": Interval.String(), "scrape_timeout": Interval.String(), "evaluation_interval": Interval.String()},
		"rule_files": []string{filepath.Join(dir, "rules.yml")}, "scrape_configs": scrapes,
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "prometheus.yml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "rules.yml"), rules, 0o600), os.WriteFile(path, config, 0o600)); err != nil {
		return nil, err
	}
	s := &Server{}
	for range 100 { // a port below those that the kernel gives to clients, and that other tests use
		s.address = fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(5_000))
		listener, err := net.Listen("tcp", s.address) //nolint:noctx // of this machine
		if err == nil {
			_ = listener.Close()
			break
		}
	}
	s.command = exec.Command(program, "--config.file", path, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", s.address) //nolint:noctx // Stop stops it
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	return s, s.command.Start()
}

// Stop ends Prometheus and returns what it wrote.
func (s *Server) Stop() string {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	return s.output.String()
}

// Series is a result of a query: values over time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Range evaluates a query at each step from a time until another.
func (s *Server) Range(ctx context.Context, query string, from, until time.Time, step time.Duration) ([]Series, error) {
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	return s.query(ctx, "query_range", url.Values{"query": {query}, "start": {at(from)}, "end": {at(until)}, "step": {step.String()}})
}

// Now evaluates a query now.
func (s *Server) Now(ctx context.Context, query string) ([]Series, error) {
	return s.query(ctx, "query", url.Values{"query": {query}})
}

func (s *Server) query(ctx context.Context, what string, values url.Values) ([]Series, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/"+what+"?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the result of %s: %w", values.Get("query"), err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", values.Get("query"), answer.Error)
	}
	var all []Series
	for _, result := range answer.Data.Result {
		series := Series{Labels: result.Metric}
		if result.Values == nil {
			result.Values = [][2]any{result.Value}
		}
		for _, pair := range result.Values {
			seconds, _ := pair[0].(float64)
			text, _ := pair[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("the value of %s: %w", values.Get("query"), err)
			}
			series.Points = append(series.Points, Point{At: time.UnixMilli(int64(seconds * 1000)), Value: value})
		}
		all = append(all, series)
	}
	return all, nil
}

// Shorten divides the windows, the waits and the seconds of an hour, or a quarter of one, in the groups of a PrometheusRule's spec.
func Shorten(groups []any, by float64) {
	for _, group := range groups {
		rules, _ := group.(map[string]any)["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			expr, _ := rule["expr"].(string)
			rule["expr"] = shortened(expr, by)
			if wait, ok := rule["for"].(string); ok {
				rule["for"] = shortenedDuration(wait, by)
			}
		}
	}
}

// shortened divides the windows of an expression and the seconds of an hour, or a quarter of one.
func shortened(expr string, by float64) string {
	expr = windows.ReplaceAllStringFunc(expr, func(window string) string {
		parts := windows.FindStringSubmatch(window)
		return parts[1] + shortenedDuration(parts[2], by)
	})
	return strings.NewReplacer("3600", fmt.Sprintf("%g", 3600/by), "900", fmt.Sprintf("%g", 900/by)).Replace(expr)
}

var windows = regexp.MustCompile(`(\[|:|offset )([0-9]+[smhd])`)

// shortenedDuration divides a duration of Prometheus.
func shortenedDuration(text string, by float64) string {
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, _ := strconv.Atoi(text[:len(text)-1]) // by a regular expression, or checked by Prometheus
	return fmt.Sprintf("%dms", int64(float64(n)*float64(unit.Milliseconds())/by))
}
