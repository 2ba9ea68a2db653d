// nodenet is the pod network of a node of the test cluster, where kind's own cannot be had: the CNI configuration for
// the node's pod addresses, routes to the pods of the other nodes, masquerading of what leaves the cluster, and the
// NetworkPolicies of the node's pods (ingress and egress, IPv4). It runs on each node in the host's network.
package main

import (
	"flag"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Changes come in bursts: pods of a job, their addresses, their policy.
const settle = 100 * time.Millisecond

func main() {
	node := flag.String("node", os.Getenv("NODE_NAME"), "name of this node")
	cni := flag.String("cni", "/etc/cni/net.d/10-nodenet.conflist", "CNI configuration to write")
	cluster := flag.String("cluster-cidr", "10.244.0.0/16", "addresses of all pods")
	flag.Parse()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatalf("nodenet: no access to the API server: %v", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatalf("nodenet: %v", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	world := World{
		Node:       *node,
		Cluster:    *cluster,
		Nodes:      factory.Core().V1().Nodes().Lister(),
		Pods:       factory.Core().V1().Pods().Lister(),
		Namespaces: factory.Core().V1().Namespaces().Lister(),
		Policies:   factory.Networking().V1().NetworkPolicies().Lister(),
	}
	changed := make(chan struct{}, 1)
	mark := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Nodes().Informer(), factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Namespaces().Informer(), factory.Networking().V1().NetworkPolicies().Informer()} {
		informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { mark() },
			UpdateFunc: func(any, any) { mark() },
			DeleteFunc: func(any) { mark() },
		})
	}
	factory.Start(nil)
	factory.WaitForCacheSync(nil)
	applied := ""
	for range changed {
		time.Sleep(settle)
		if err := world.ConfigureNetwork(*cni); err != nil {
			log.Printf("nodenet: %v; again in a second", err)
			time.AfterFunc(time.Second, mark)
			continue
		}
		rules := world.Rules()
		if rules == applied {
			continue
		}
		if err := run(rules, "nft", "-f", "-"); err != nil {
			log.Printf("nodenet: rules refused: %v\n%s", err, rules)
			time.AfterFunc(time.Second, mark)
			continue
		}
		applied = rules
		log.Printf("nodenet: rules for %d chains of pods in force", strings.Count(rules, "chain pod_"))
	}
}

func run(input string, name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Stdin = strings.NewReader(input)
	command.Stdout = os.Stderr
	command.Stderr = os.Stderr
	return command.Run()
}
