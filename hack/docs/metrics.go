package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
)

// list matches a list of metrics.
var list = regexp.MustCompile("(?m)(?:^- `.*\n)+")

// metricsPage returns the reference of the metrics of the shards with its lists: of every answer, of slab classes, and of the agent.
func metricsPage(page string) (string, error) {
	var lists [3]string
	for _, f := range metrics.Families() {
		i := 0
		switch {
		case !f.Exporter:
			i = 2
		case f.Classes:
			i = 1
		}
		name := f.Name
		if len(f.Labels) > 0 {
			name += "{" + strings.Join(f.Labels, ",") + "}"
		}
		lists[i] += fmt.Sprintf("- `%s` (%s): %s Source: %s\n", name, f.Type, f.Help, source(f))
	}
	if found := len(list.FindAllString(page, -1)); found != len(lists) {
		return "", fmt.Errorf("there are %d lists of metrics, want %d", found, len(lists))
	}
	i := -1
	return list.ReplaceAllStringFunc(page, func(string) string { i++; return lists[i] }), nil
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
