package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// printEnv prints the tests' environment as lines for a shell, and builds what they name first.
func (d dirs) printEnv() error {
	b, err := d.prepare()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	versions, err := memcachedVersions(b.memcached)
	if err != nil {
		return err
	}
	config := os.Getenv("KUBECONFIG") // the user's own cluster
	if config == "" {
		config = d.kubeconfig()
	}
	return writeEnv(os.Stdout, [][2]string{
		{"KUBECONFIG", config},
		{"KUBEBUILDER_ASSETS", b.kubernetes},
		{"MEMCACHED_DIR", b.memcached},
		{"MEMCACHED_NEWEST", versions[len(versions)-1]},
		{"MEMCACHED_CLIENTS", b.clients},
		{"MEMCACHED_OPERATOR_CLUSTER", program},
		{"S3_SERVER", filepath.Join(b.s3, "s3")},
	})
}

func writeEnv(w io.Writer, variables [][2]string) error {
	for _, v := range variables {
		quoted := "'" + strings.ReplaceAll(v[1], "'", `'\''`) + "'"
		if _, err := fmt.Fprintf(w, "export %s=%s\n", v[0], quoted); err != nil {
			return err
		}
	}
	return nil
}

func (d dirs) printKubeconfig() error {
	if !exists(d.kubeconfig()) {
		return errNotRunning
	}
	_, err := fmt.Println(d.kubeconfig())
	return err
}
