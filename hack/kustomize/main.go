// Command kustomize builds a folder of config/ for "kubectl apply":
//
//	go -C hack run ./kustomize [--image NAME=REFERENCE]... [--without KIND]... DIR
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/memcached-operator/memcached-operator/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kustomize:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	images := map[string]string{}
	without := map[string]bool{}
	flags := flag.NewFlagSet("kustomize", flag.ExitOnError)
	flags.Func("image", "`NAME=REFERENCE`: use this image in place of NAME", func(value string) error {
		name, reference, found := strings.Cut(value, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=REFERENCE", value)
		}
		images[name] = reference
		return nil
	})
	flags.Func("without", "leave objects of this `KIND` out", func(kind string) error {
		without[kind] = true
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("one folder is needed, %d given", flags.NArg())
	}
	built, err := config.Build("..", flags.Arg(0), images)
	if err != nil {
		return err
	}
	for _, id := range built.AllIds() {
		if without[id.Kind] {
			if err := built.Remove(id); err != nil {
				return fmt.Errorf("omitting %s: %w", id, err)
			}
		}
	}
	out, err := built.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}
