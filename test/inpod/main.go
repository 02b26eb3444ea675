// Command inpod runs a program of an image in a pod of the cluster that KUBECONFIG names, and copies its output:
//
//	inpod --image REFERENCE [--env NAME=VALUE]... PROGRAM [ARGUMENT]...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/inpod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inpod:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	p := inpod.Program{Environment: map[string]string{}, Output: os.Stdout}
	flags := flag.NewFlagSet("inpod", flag.ContinueOnError)
	flags.StringVar(&p.Image, "image", "", "image `REFERENCE`")
	flags.Func("env", "`NAME=VALUE` of an environment variable, may be repeated", func(pair string) error {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=VALUE", pair)
		}
		p.Environment[name] = value
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if p.Command = flags.Args(); p.Image == "" || len(p.Command) == 0 {
		return errors.New("--image and a program are required")
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	return inpod.Run(ctx, c, p)
}
