package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// envCommand prints what the tests read from their environment, as lines for a
// shell. What the lines name is built first.
func envCommand(d dirs, args []string) error {
	if err := noArguments("env", args); err != nil {
		return err
	}
	b, err := d.prepare()
	if err != nil {
		return err
	}
	program, err := d.installSelf()
	if err != nil {
		return err
	}
	versions, err := memcachedVersions(b.memcached)
	if err != nil {
		return err
	}
	config := os.Getenv("KUBECONFIG") // a person's own cluster goes before
	if config == "" {
		config = d.kubeconfig()
	}
	return printEnv(os.Stdout, [][2]string{
		{"KUBECONFIG", config},
		{"KUBEBUILDER_ASSETS", b.kubernetes},
		{"MEMCACHED_DIR", b.memcached},
		{"MEMCACHED_NEWEST", versions[len(versions)-1]},
		{"MEMCACHED_CLIENTS", b.clients},
		{"MEMCACHED_OPERATOR_CLUSTER", program},
		{"S3_SERVER", filepath.Join(b.s3, "s3")},
	})
}

func printEnv(w io.Writer, variables [][2]string) error {
	for _, v := range variables {
		quoted := "'" + strings.ReplaceAll(v[1], "'", `'\''`) + "'"
		if _, err := fmt.Fprintf(w, "export %s=%s\n", v[0], quoted); err != nil {
			return err
		}
	}
	return nil
}

// installSelf returns a path of this program that stays: "go run" deletes its
// own as soon as it is done.
func (d dirs) installSelf() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if !strings.Contains(exe, string(filepath.Separator)+"go-build") {
		return exe, nil
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		return "", err
	}
	dir, err := d.build("cluster", key(string(content)), "keeping this program", func(to, _ string) error {
		return copyFile(exe, filepath.Join(to, "cluster"))
	})
	return filepath.Join(dir, "cluster"), err
}

func kubeconfigCommand(d dirs, args []string) error {
	if err := noArguments("kubeconfig", args); err != nil {
		return err
	}
	if !exists(d.kubeconfig()) {
		return errNotRunning
	}
	_, err := fmt.Println(d.kubeconfig())
	return err
}
