package main

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
)

//go:embed metrics.md.tmpl
var metricsTemplate string

// metricsPage returns the reference of the metrics of the shards.
func metricsPage() (string, error) {
	page, err := template.New("").Funcs(template.FuncMap{"join": strings.Join, "source": source}).Parse(metricsTemplate)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.Execute(&text, metrics.Families())
	return text.String(), err
}

// source returns where a metric comes from.
func source(f metrics.Family) string {
	sources := strings.Join(f.Sources(), "; ")
	switch {
	case sources != "":
		return sources
	case f.Type == metrics.Counter && !f.Exporter:
		return "pod"
	}
	return "agent"
}
