// Node-network is the whole pod network of a test cluster: on each node it
// writes the CNI configuration for the node's own pod range, keeps a route to
// every other node's range, and lets pods leave the cluster behind the node's
// address. It enforces no NetworkPolicy.
//
// It runs as a DaemonSet with the node's root mounted at /host and uses the
// node's own ip and iptables.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	hostRoot = "/host"
	account  = "/var/run/secrets/kubernetes.io/serviceaccount/"
	conflist = hostRoot + "/etc/cni/net.d/10-node-network.conflist"

	// A new node's pods are unreachable for at most this long.
	period = 2 * time.Second
)

type node struct {
	name, podCIDR, address string
}

func main() {
	self, podSubnet := os.Getenv("NODE_NAME"), os.Getenv("POD_SUBNET")
	// The control plane's own address, not the service's: kube-proxy may not have programmed that one yet.
	endpoint := os.Getenv("CONTROL_PLANE_ENDPOINT")
	client, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	for ; ; time.Sleep(period) {
		nodes, err := listNodes(client, endpoint)
		if err == nil {
			err = apply(nodes, self, podSubnet)
		}
		if err != nil {
			log.Print(err)
		}
	}
}

func newClient() (*http.Client, error) {
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return &http.Client{Timeout: 10 * time.Second, Transport: transport}, nil
}

func listNodes(client *http.Client, endpoint string) ([]node, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodGet, "https://"+endpoint+"/api/v1/nodes?resourceVersion=0", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, fmt.Errorf("listing nodes: %s: %s", response.Status, text)
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ PodCIDR string }
			Status   struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	var nodes []node
	for _, item := range list.Items {
		n := node{name: item.Metadata.Name, podCIDR: item.Spec.PodCIDR}
		for _, a := range item.Status.Addresses {
			if ip := net.ParseIP(a.Address); a.Type == "InternalIP" && ip.To4() != nil {
				n.address = a.Address
			}
		}
		if n.podCIDR != "" && n.address != "" {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

func apply(nodes []node, self, podSubnet string) error {
	errs := []error{masquerade(podSubnet)}
	for _, n := range nodes {
		if n.name == self {
			errs = append(errs, writeConflist(n.podCIDR))
		} else {
			errs = append(errs, onHost("ip", "route", "replace", n.podCIDR, "via", n.address))
		}
	}
	return errors.Join(errs...)
}

func masquerade(podSubnet string) error {
	rule := []string{"POSTROUTING", "-s", podSubnet, "!", "-d", podSubnet,
		"-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", "MASQUERADE"}
	if onHost("iptables", append([]string{"-w", "-t", "nat", "-C"}, rule...)...) == nil {
		return nil
	}
	return onHost("iptables", append([]string{"-w", "-t", "nat", "-A"}, rule...)...)
}

func writeConflist(podCIDR string) error {
	text := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "node-network", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
   "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`, podCIDR)
	if old, err := os.ReadFile(conflist); err == nil && string(old) == text {
		return nil
	}
	// Renamed into place: containerd reads the directory whenever it changes.
	if err := os.WriteFile(conflist+".tmp", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(conflist+".tmp", conflist)
}

// onHost runs one of the node's own programs in the node's root.
func onHost(program string, args ...string) error {
	command := &exec.Cmd{
		Path:        "/usr/sbin/" + program,
		Args:        append([]string{program}, args...),
		Dir:         "/",
		Env:         []string{"PATH=/usr/sbin:/usr/bin"},
		SysProcAttr: &syscall.SysProcAttr{Chroot: hostRoot},
	}
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", command.Args, err, text)
	}
	return nil
}
