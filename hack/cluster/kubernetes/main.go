// Kubernetes, kubectl and etcd in one program, which is called by their names. Linking once saves most of the build.
// With the tag apiserver it has only what a test of the API needs: etcd and kube-apiserver.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// programs are the main functions by name. They may return; the program then exits with 0.
var programs = map[string]func(){
	"etcd":           func() { etcdmain.Main(os.Args) },
	"kube-apiserver": server(apiserver.NewAPIServerCommand),
}

func server(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s is not a program of Kubernetes that this binary contains: call it by one of the links beside it\n", name)
		os.Exit(2)
	}
	run()
}
