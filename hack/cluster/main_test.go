package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
)

func TestBadArguments(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	for _, line := range []string{
		"", "frobnicate", "up now", "down now", "down --wope", "status x", "build", "logs", "env x", "kubeconfig x", "logs a b",
		"node", "node add node1", "node add node99", "node grow", "node add node2 node3",
		"olm", "olm down", "olm up now", "olmv1", "olmv1 up now", "olmv1 grow",
		"load", "load ref", "load ref a b", "load ref tar --dir d", "load ref --dir d --label novalue",
		"image", "image build", "image build -t ref -o tar", "image build -t ref .", "image build -t ref -o tar --build-arg x .", "image push tar", nodeInitCommand, olmv1InitCommand,
	} {
		if err := run(strings.Fields(line)); !errors.Is(err, errUsage) {
			t.Errorf("cluster %s: error %v, want one that names the usage", line, err)
		}
	}
}

func TestWithoutCluster(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	dir := t.TempDir()
	for _, args := range [][]string{{"olm", "up"}, {"olmv1", "up"}, {"load", "ref:1", "--dir", dir}} {
		if err := run(args); !errors.Is(err, errNotRunning) {
			t.Errorf("%v: error %v, want %v", args, err, errNotRunning)
		}
	}
}

func TestUsageNamesEveryCommand(t *testing.T) {
	for name := range commands {
		if !strings.Contains(usage, "\n  "+name) {
			t.Errorf("help does not name %s", name)
		}
	}
}

func TestParseFlagsAnywhere(t *testing.T) {
	for _, line := range []string{"--n 1 a b", "a --n 1 b", "a b --n=1"} {
		flags := flag.NewFlagSet("x", flag.ContinueOnError)
		n := flags.Int("n", 0, "")
		rest, err := parse(flags, strings.Fields(line))
		if err != nil || *n != 1 || !slices.Equal(rest, []string{"a", "b"}) {
			t.Errorf("%s: n=%d, rest %v, error %v", line, *n, rest, err)
		}
	}
}

func TestEnvIsQuotedForAShell(t *testing.T) {
	var out bytes.Buffer
	if err := writeEnv(&out, map[string]string{"B": "it's $HOME", "A": "/with space"}); err != nil {
		t.Fatal(err)
	}
	want := "export A='/with space'\nexport B='it'\\''s $HOME'\n"
	if out.String() != want {
		t.Errorf("got %s want %s", out.String(), want)
	}
}
