package cni

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	result = `{"cniVersion": "1.0.0", "ips": [{"address": "10.0.1.7/24", "interface": 2}]}`
	stdin  = `{"cniVersion": "1.0.0", "name": "node-network", "type": "node-network", "prevResult": ` + result + `}`
)

// serve plays the agent.
func serve(t *testing.T, answer http.HandlerFunc) Plugin {
	t.Helper()
	directory := t.TempDir()
	p := Plugin{filepath.Join(directory, "s"), directory}
	listen(t, p, answer)
	return p
}

func listen(t *testing.T, p Plugin, answer http.HandlerFunc) {
	t.Helper()
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: answer}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
}

func run(p Plugin, command string) (int, string) {
	given := map[string]string{
		"CNI_COMMAND": command, "CNI_CONTAINERID": "c1",
		"CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=n;K8S_POD_NAME=p;K8S_POD_UID=u1",
	}
	var stdout bytes.Buffer
	code := p.Run(func(name string) string { return given[name] }, strings.NewReader(stdin), &stdout)
	return code, stdout.String()
}

func TestAddTellsWhoGotWhichAddressAndPassesTheResultOn(t *testing.T) {
	var told Attachment
	p := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == AttachPath {
			_ = json.NewDecoder(r.Body).Decode(&told)
		}
	})

	code, printed := run(p, "ADD")

	if code != 0 || printed != result {
		t.Errorf("%d %s", code, printed)
	}
	if told.Container != "c1" || told.UID != "u1" || told.Address.String() != "10.0.1.7" {
		t.Errorf("told %+v", told)
	}
}

func TestAddWaitsForAnAgentThatIsAboutToStart(t *testing.T) {
	directory := t.TempDir()
	p := Plugin{filepath.Join(directory, "s"), directory}
	done := make(chan int)
	go func() { code, _ := run(p, "ADD"); done <- code }()
	select {
	case code := <-done:
		t.Fatalf("ended with %d without an agent", code)
	case <-time.After(3 * retry):
	}

	listen(t, p, func(http.ResponseWriter, *http.Request) {})

	if code := <-done; code != 0 {
		t.Error(code)
	}
}

func TestAddOfAnAddressThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ args, result string }{
		"nobody":             {"IgnoreUnknown=1", result},
		"no address":         {"K8S_POD_UID=u", `{"ips": []}`},
		"IPv6":               {"K8S_POD_UID=u", `{"ips": [{"address": "fd00::1/64"}]}`},
		"two addresses":      {"K8S_POD_UID=u", `{"ips": [{"address": "10.0.0.1/24"}, {"address": "10.0.0.2/24"}]}`},
		"something else":     {"K8S_POD_UID=u", `{"ips": [{"address": "x"}]}`},
		"nothing at all yet": {"K8S_POD_UID=u", ``},
	} {
		if one, err := attachment("c1", c.args, json.RawMessage(c.result)); err == nil {
			t.Errorf("%s: %v", name, one)
		}
	}
}

func TestDelTellsTheAgent(t *testing.T) {
	var told Attachment
	p := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == DetachPath {
			_ = json.NewDecoder(r.Body).Decode(&told)
		}
	})

	if code, _ := run(p, "DEL"); code != 0 || told.Container != "c1" {
		t.Errorf("%d, told %+v", code, told)
	}
}

func TestDelWithoutAnAgentRemovesWhatItWouldRemember(t *testing.T) {
	directory := t.TempDir()
	record := filepath.Join(directory, "c1.json")
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	code, _ := run(Plugin{filepath.Join(directory, "s"), directory}, "DEL")

	if _, err := os.Stat(record); code != 0 || !os.IsNotExist(err) {
		t.Errorf("%d, %v", code, err)
	}
}

func TestTheRuntimeIsToldWhichVersionsAreSpoken(t *testing.T) {
	if code, printed := run(Plugin{}, "VERSION"); code != 0 || !strings.Contains(printed, `"1.0.0"`) {
		t.Errorf("%d %s", code, printed)
	}
}
