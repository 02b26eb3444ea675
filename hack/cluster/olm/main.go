// What the image of OLM needs besides OLM's own programs, which go.mod lists as
// tools: a probe of catalogs and a cp, in one program that takes the name it is
// called under.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	var err error
	switch name := filepath.Base(os.Args[0]); name {
	case "cp":
		err = cp(os.Args[1:])
	case "grpc_health_probe":
		err = probe(os.Args[1:])
	default:
		err = fmt.Errorf("%s is not a program that this binary holds: call it as cp or grpc_health_probe", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cp copies one file with its mode, which is all that OLM does with it: its pods
// copy a program of this image to a volume and run it in another image. Flags
// are accepted and change nothing of that.
func cp(args []string) error {
	var files []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			files = append(files, a)
		}
	}
	if len(files) != 2 {
		return fmt.Errorf("cp takes a file and the place of its copy, got %q", files)
	}
	from, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(files[1], os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// probe asks a server whether it serves, as gRPC's health checking protocol
// says. OLM's catalog pods are probed with "grpc_health_probe -addr=:50051".
func probe(args []string) error {
	flags := flag.NewFlagSet("grpc_health_probe", flag.ContinueOnError)
	addr := flags.String("addr", "", "host:port")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conn, err := grpc.NewClient(*addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s is %s", *addr, answer.Status)
	}
	return nil
}
