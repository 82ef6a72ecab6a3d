// Package cni is the last plug-in of the node's network: before any program of
// a new pod runs, it tells the agent which pod was given which address, and
// waits until that pod's policies are enforced. Without the agent no pod starts.
package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// Type is what the network's configuration calls the plug-in.
	Type = "node-network"
	// Directory is on the node, and empty when it has just started.
	Directory = "/run/node-network"
	// Socket is where the agent listens.
	Socket = Directory + "/agent.sock"
	// Records is where it remembers, a file for each container.
	Records = Directory + "/pods"

	// AttachPath and DetachPath are what it is asked for.
	AttachPath, DetachPath = "/attach", "/detach"

	// An agent may be about to start. The kubelet waits longer, and tries again.
	attachPatience = 60 * time.Second
	// A pod shall be able to go without it.
	detachPatience = 5 * time.Second
	retry          = 100 * time.Millisecond

	tryAgainLater = 11
)

// Attachment is a pod that was given an address.
type Attachment struct {
	Container string
	UID       string
	Address   netip.Addr
}

type config struct {
	CNIVersion string          `json:"cniVersion"`
	PrevResult json.RawMessage `json:"prevResult"`
}

// Plugin is told where the agent listens and remembers.
type Plugin struct {
	Socket, Records string
}

// OfNode is the plug-in where it is installed.
var OfNode = Plugin{Socket, Records}

// Run does what the container runtime asks and returns its exit code.
func (p Plugin) Run(environ func(string) string, stdin io.Reader, stdout io.Writer) int {
	var told config
	if err := json.NewDecoder(stdin).Decode(&told); err != nil {
		return refuse(stdout, told, err)
	}
	container := environ("CNI_CONTAINERID")
	switch environ("CNI_COMMAND") {
	case "ADD":
		one, err := attachment(container, environ("CNI_ARGS"), told.PrevResult)
		if err == nil {
			err = p.attach(one)
		}
		if err != nil {
			return refuse(stdout, told, err)
		}
		// What the plug-ins before have done is the result.
		_, _ = stdout.Write(told.PrevResult)
	case "DEL":
		if p.ask(DetachPath, Attachment{Container: container}, detachPatience) != nil {
			// The agent shall not remember it when it starts.
			_ = os.Remove(filepath.Join(p.Records, filepath.Base(container)+".json"))
		}
	case "VERSION":
		fmt.Fprint(stdout, `{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}`)
	}
	return 0
}

// attachment says who was given which address.
func attachment(container, args string, result json.RawMessage) (Attachment, error) {
	one := Attachment{Container: container}
	for _, pair := range strings.Split(args, ";") {
		if value, found := strings.CutPrefix(pair, "K8S_POD_UID="); found {
			one.UID = value
		}
	}
	if one.UID == "" || one.Container == "" {
		return one, errors.New("not told for which pod")
	}
	var given struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &given); err != nil {
		return one, fmt.Errorf("the result of the plug-ins before: %w", err)
	}
	if len(given.IPs) != 1 || !given.IPs[0].Address.Addr().Is4() {
		return one, fmt.Errorf("a pod needs one IPv4 address here, and got %v", given.IPs)
	}
	one.Address = given.IPs[0].Address.Addr()
	return one, nil
}

// attach is patient with an agent that is about to start.
func (p Plugin) attach(one Attachment) error {
	deadline := time.Now().Add(attachPatience)
	for {
		err := p.ask(AttachPath, one, time.Until(deadline))
		if err == nil || time.Until(deadline) < retry {
			return err
		}
		time.Sleep(retry)
	}
}

func (p Plugin) ask(path string, about Attachment, patience time.Duration) error {
	body, err := json.Marshal(about)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.Socket)
		},
	}}
	response, err := client.Post("http://agent"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the node's network agent does not answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("the node's network agent says: %s", text)
	}
	return nil
}

func refuse(stdout io.Writer, told config, err error) int {
	_ = json.NewEncoder(stdout).Encode(map[string]any{
		"cniVersion": told.CNIVersion, "code": tryAgainLater, "msg": err.Error(),
	})
	return 1
}
