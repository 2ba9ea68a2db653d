package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
)

// World is what the API server says, seen from one node.
type World struct {
	Node       string
	Cluster    string
	Nodes      corelisters.NodeLister
	Pods       corelisters.PodLister
	Namespaces corelisters.NamespaceLister
	Policies   networkinglisters.NetworkPolicyLister
	routes     map[string]route // by pod addresses of a node
}

type route struct {
	address string
	set     time.Time
}

// A program for each route at each change of a pod is more work than all else here; but a link that was down lost its routes.
const trustRoutes = 10 * time.Second

const conflist = `{"cniVersion": "0.4.0", "name": "nodenet", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam",
   "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

// ConfigureNetwork writes the node's CNI configuration once its addresses are known, and the routes to other nodes' pods.
func (w *World) ConfigureNetwork(file string) error {
	nodes, err := w.Nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if node.Spec.PodCIDR == "" {
			if node.Name == w.Node {
				return fmt.Errorf("node %s has no pod addresses yet", node.Name)
			}
			continue
		}
		if node.Name == w.Node {
			if err := writeOnce(file, fmt.Sprintf(conflist, node.Spec.PodCIDR)); err != nil {
				return err
			}
		} else if address := internalAddress(node); address != "" {
			known := w.routes[node.Spec.PodCIDR]
			if known.address == address && time.Since(known.set) < trustRoutes {
				continue
			}
			if err := run("", "ip", "route", "replace", node.Spec.PodCIDR, "via", address); err != nil {
				return fmt.Errorf("route to node %s: %w", node.Name, err)
			}
			if w.routes == nil {
				w.routes = map[string]route{}
			}
			w.routes[node.Spec.PodCIDR] = route{address, time.Now()}
		}
	}
	return nil
}

// The container runtime reads the file at any moment: it appears whole.
func writeOnce(file, text string) error {
	if old, err := os.ReadFile(file); err == nil && string(old) == text {
		return nil
	}
	temporary := file + ".tmp"
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

func internalAddress(node *corev1.Node) string {
	at := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	if at < 0 {
		return ""
	}
	return node.Status.Addresses[at].Address
}
