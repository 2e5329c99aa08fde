// Command hyperkube is etcd, the Kubernetes servers, the node's programs and kubectl in one
// binary, so that they are linked once. The name it is called by, or its first argument, chooses.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func names() []string {
	found := []string{"etcd"}
	for name := range commands {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}

func main() {
	called := filepath.Base(os.Args[0])
	if _, known := commands[called]; !known && called != "etcd" && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		called = os.Args[0]
	}
	if called == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	build, known := commands[called]
	if !known {
		fmt.Fprintf(os.Stderr, "hyperkube: call it as one of: %s\n", strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(build()))
}
