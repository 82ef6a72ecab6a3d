// Package facts measures what happened to the sandbox during a call: OOM kills
// and CPU pressure, from the sandbox's own cgroup. It judges nothing; verdicts
// are made elsewhere.
package facts

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/quick"
	"rollcage.dev/toolserver/internal/tool"
)

// Sources of pressure, as the contract names them.
const (
	PSI        = "psi"
	Throttling = "throttling"
	None       = "none"
)

// Probe reads the cgroup's counters. Its files stay open: reading them must
// cost microseconds, and must work when the model has taken the paths away.
type Probe struct {
	bootID   string
	oom      counter
	pressure counter
	usage    counter
	source   string
}

// counter is one number in one file: the word after key, or all of it where
// there is no key, in units of a millisecond's divisor.
type counter struct {
	fd    int
	key   []byte
	perMS int64
}

type candidate struct {
	path   string
	key    string
	perMS  int64
	source string
}

var oomCandidates = []candidate{
	{path: "memory.events", key: "oom_kill "},
	{path: "memory/memory.oom_control", key: "oom_kill "},
}

// Pressure counts every wait for a CPU; throttling counts only those that the
// sandbox's own quota caused, so it is second choice.
var pressureCandidates = append([]candidate{
	{path: "cpu.pressure", key: "total=", perMS: 1000, source: PSI},
}, throttlingCandidates...)

var throttlingCandidates = []candidate{
	{path: "cpu.stat", key: "throttled_usec ", perMS: 1000, source: Throttling},
	{path: "cpu/cpu.stat", key: "throttled_time ", perMS: 1_000_000, source: Throttling},
	{path: "cpu,cpuacct/cpu.stat", key: "throttled_time ", perMS: 1_000_000, source: Throttling},
}

var usageCandidates = []candidate{
	{path: "cpu.stat", key: "usage_usec ", perMS: 1000},
	{path: "cpuacct/cpuacct.usage", perMS: 1_000_000},
	{path: "cpu,cpuacct/cpuacct.usage", perMS: 1_000_000},
}

// New finds the counters below the mount point of the cgroups. In a container
// the mount shows the sandbox's own cgroup; elsewhere own, the text of
// /proc/self/cgroup, says where below it that is.
func New(mount, own, bootID string) *Probe {
	paths := ownPaths(own)
	p := &Probe{bootID: bootID}
	p.oom, _ = first(mount, paths, oomCandidates)
	p.pressure, p.source = first(mount, paths, pressureCandidates)
	p.usage, _ = first(mount, paths, usageCandidates)
	if p.usage.fd < 0 && p.source == PSI {
		// Alone it proves nothing, and must not be taken for proof.
		p.pressure, p.source = first(mount, paths, throttlingCandidates)
	}
	return p
}

func first(mount string, paths map[string]string, candidates []candidate) (counter, string) {
	for _, c := range candidates {
		if opened, ok := open(mount, paths, c); ok {
			return opened, c.source
		}
	}
	return counter{fd: -1}, None
}

// Here is the probe of the cgroup this program runs in.
func Here(bootID string) *Probe {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return New("/sys/fs/cgroup", string(own), bootID)
}

// ownPaths maps each controller ("" for the unified hierarchy) to its path.
func ownPaths(text string) map[string]string {
	paths := make(map[string]string)
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	return paths
}

func open(mount string, paths map[string]string, c candidate) (counter, bool) {
	hierarchy, file := filepath.Split(c.path)
	controller, _, _ := strings.Cut(strings.TrimSuffix(hierarchy, "/"), ",")
	for _, below := range []string{paths[controller], "/"} {
		path := filepath.Join(mount, hierarchy, below, file)
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		opened := counter{fd: fd, key: []byte(c.key), perMS: c.perMS}
		if _, ok := opened.read(); ok {
			return opened, true
		}
		syscall.Close(fd)
	}
	return counter{}, false
}

func (c counter) read() (value int64, ok bool) {
	if c.fd < 0 {
		return 0, false
	}
	var buffer [1024]byte
	n, err := quick.Pread(c.fd, buffer[:])
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(buffer[:n]) {
		// A key is a whole word at the start of its line, or PSI's last field.
		at := bytes.Index(line, c.key)
		if at < 0 || at > 0 && line[at-1] != ' ' {
			continue
		}
		digits := bytes.TrimSpace(line[at+len(c.key):])
		value, err := strconv.ParseInt(string(digits), 10, 64)
		return value, err == nil
	}
	return 0, false
}

// Reading is the state of the counters when a call began.
type Reading struct {
	probe    *Probe
	began    time.Time
	oom      int64
	pressure int64
	usage    int64
}

// Begin reads the counters.
func (p *Probe) Begin() Reading {
	oom, _ := p.oom.read()
	pressure, _ := p.pressure.read()
	usage, _ := p.usage.read()
	return Reading{probe: p, began: time.Now(), oom: oom, pressure: pressure, usage: usage}
}

// End fills in what changed since Begin.
func (r Reading) End(facts *tool.Facts) {
	facts.BootID = r.probe.bootID
	facts.DurationMS = time.Since(r.began).Milliseconds()
	if oom, ok := r.probe.oom.read(); ok {
		facts.OOMKills = max(0, oom-r.oom)
	}
	facts.Pressure.Source = r.probe.source
	if pressure, ok := r.probe.pressure.read(); ok {
		facts.Pressure.StalledMS = max(0, pressure-r.pressure) / r.probe.pressure.perMS
	}
	if usage, ok := r.probe.usage.read(); ok {
		facts.Pressure.UsedMS = max(0, usage-r.usage) / r.probe.usage.perMS
	}
}
