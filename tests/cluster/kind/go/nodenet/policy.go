package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rules is the node's whole nftables table: applied at once, it replaces the one before. A pod that a policy selects
// has a chain per direction, which returns for what some policy allows and drops the rest; what belongs to a connection
// once allowed passes. The node itself reaches its pods on another hook, as kubelet's probes need.
func (w *World) Rules() string {
	own, err := w.Nodes.Get(w.Node)
	if err != nil {
		return ""
	}
	pods, _ := w.Pods.List(labels.Everything())
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !hasNetwork(p) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Status.PodIP, b.Status.PodIP) })
	policies, _ := w.Policies.List(labels.Everything())
	slices.SortFunc(policies, func(a, b *networkingv1.NetworkPolicy) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	var chains, to, from strings.Builder
	for _, pod := range pods {
		if pod.Spec.NodeName != w.Node {
			continue
		}
		name := strings.ReplaceAll(pod.Status.PodIP, ".", "_")
		if rules, isolated := w.ingress(pod, pods, policies); isolated {
			fmt.Fprintf(&chains, "  chain pod_to_%s {\n%s    drop\n  }\n", name, rules)
			fmt.Fprintf(&to, "    ip daddr %s jump pod_to_%s\n", pod.Status.PodIP, name)
		}
		if rules, isolated := w.egress(pod, pods, policies); isolated {
			fmt.Fprintf(&chains, "  chain pod_from_%s {\n%s    drop\n  }\n", name, rules)
			fmt.Fprintf(&from, "    ip saddr %s jump pod_from_%s\n", pod.Status.PodIP, name)
		}
	}
	return fmt.Sprintf(`table ip nodenet
delete table ip nodenet
table ip nodenet {
  chain leaving {
    type nat hook postrouting priority srcnat;
    ip saddr %s ip daddr != %s masquerade
  }
%s  chain policies {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
%s%s  }
}
`, own.Spec.PodCIDR, w.Cluster, chains.String(), from.String(), to.String())
}

func hasNetwork(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Status.PodIP != "" && pod.Status.Phase != corev1.PodSucceeded &&
		pod.Status.Phase != corev1.PodFailed
}

func (w *World) ingress(pod *corev1.Pod, pods []*corev1.Pod, policies []*networkingv1.NetworkPolicy) (string, bool) {
	var rules strings.Builder
	isolated := false
	for _, policy := range policies {
		if !applies(policy, pod, networkingv1.PolicyTypeIngress) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Ingress {
			ports := portMatches(rule.Ports, pod)
			for _, peers := range w.peerMatches("saddr", rule.From, policy.Namespace, pods) {
				writeRules(&rules, peers, ports)
			}
		}
	}
	return rules.String(), isolated
}

func (w *World) egress(pod *corev1.Pod, pods []*corev1.Pod, policies []*networkingv1.NetworkPolicy) (string, bool) {
	var rules strings.Builder
	isolated := false
	for _, policy := range policies {
		if !applies(policy, pod, networkingv1.PolicyTypeEgress) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Egress {
			ports := portMatches(rule.Ports, nil)
			for _, peers := range w.peerMatches("daddr", rule.To, policy.Namespace, pods) {
				writeRules(&rules, peers, ports)
			}
		}
	}
	return rules.String(), isolated
}

func applies(policy *networkingv1.NetworkPolicy, pod *corev1.Pod, direction networkingv1.PolicyType) bool {
	return policy.Namespace == pod.Namespace && slices.Contains(policy.Spec.PolicyTypes, direction) &&
		selects(&policy.Spec.PodSelector, pod.Labels)
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(labels.Set(set))
}

func writeRules(rules *strings.Builder, peers string, ports []string) {
	for _, port := range ports {
		fmt.Fprintf(rules, "    %s%sreturn\n", peers, port)
	}
}

// One match per way to be a peer; a match is empty when everybody is one, and there is none when nobody is.
func (w *World) peerMatches(side string, peers []networkingv1.NetworkPolicyPeer, namespace string, pods []*corev1.Pod) []string {
	if len(peers) == 0 {
		return []string{""}
	}
	var matches, addresses []string
	for _, peer := range peers {
		if block := peer.IPBlock; block != nil {
			match := fmt.Sprintf("ip %s %s ", side, block.CIDR)
			if len(block.Except) > 0 {
				match += fmt.Sprintf("ip %s != { %s } ", side, strings.Join(block.Except, ", "))
			}
			matches = append(matches, match)
			continue
		}
		for _, pod := range pods {
			if w.isPeer(peer, namespace, pod) {
				addresses = append(addresses, pod.Status.PodIP)
			}
		}
	}
	if len(addresses) > 0 {
		slices.Sort(addresses)
		matches = append(matches, fmt.Sprintf("ip %s { %s } ", side, strings.Join(slices.Compact(addresses), ", ")))
	}
	return matches
}

func (w *World) isPeer(peer networkingv1.NetworkPolicyPeer, namespace string, pod *corev1.Pod) bool {
	if _, err := netip.ParseAddr(pod.Status.PodIP); err != nil {
		return false
	}
	if peer.NamespaceSelector == nil {
		if pod.Namespace != namespace {
			return false
		}
	} else if of, err := w.Namespaces.Get(pod.Namespace); err != nil || !selects(peer.NamespaceSelector, of.Labels) {
		return false
	}
	return peer.PodSelector == nil || selects(peer.PodSelector, pod.Labels)
}

// One match per port. A port's name is looked up in `pod`; without one (egress) it matches nothing.
func portMatches(ports []networkingv1.NetworkPolicyPort, pod *corev1.Pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var matches []string
	for _, port := range ports {
		protocol := "tcp"
		if port.Protocol != nil {
			protocol = strings.ToLower(string(*port.Protocol))
		}
		switch {
		case port.Port == nil:
			matches = append(matches, fmt.Sprintf("meta l4proto %s ", protocol))
		case port.Port.Type == intstr.String:
			for _, number := range numbersOf(pod, port.Port.StrVal) {
				matches = append(matches, fmt.Sprintf("%s dport %d ", protocol, number))
			}
		case port.EndPort != nil:
			matches = append(matches, fmt.Sprintf("%s dport %d-%d ", protocol, port.Port.IntVal, *port.EndPort))
		default:
			matches = append(matches, fmt.Sprintf("%s dport %d ", protocol, port.Port.IntVal))
		}
	}
	return matches
}

func numbersOf(pod *corev1.Pod, name string) []int32 {
	var numbers []int32
	if pod == nil {
		return nil
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	return numbers
}
