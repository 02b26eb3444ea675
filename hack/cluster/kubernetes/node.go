//go:build !apiserver

package main

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func init() {
	programs["kube-controller-manager"] = server(controllermanager.NewControllerManagerCommand)
	programs["kube-scheduler"] = server(func() *cobra.Command { return scheduler.NewSchedulerCommand() })
	programs["kube-proxy"] = server(proxy.NewProxyCommand)
	programs["kubelet"] = server(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) })
	programs["kubectl"] = func() {
		// kubectl prints its own errors and chooses its own exit status.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlerrors.CheckErr(err)
		}
	}
}
