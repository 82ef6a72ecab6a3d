package facts

import (
	"os"
	"path/filepath"
	"testing"

	"rollcage.dev/toolserver/internal/tool"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCountersAreReadFromTheSandboxsOwnCgroup(t *testing.T) {
	cases := []struct {
		name          string
		own           string
		before, after map[string]string
		want          tool.Facts
	}{
		{
			name: "cgroup v2 with pressure",
			before: map[string]string{
				"memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n",
				"cpu.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
				"cpu.stat":      "usage_usec 1000\nuser_usec 7\nthrottled_usec 0\n",
			},
			after: map[string]string{
				"memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\noom_group_kill 8\n",
				"cpu.pressure":  "some avg10=0.00 avg60=0.00 avg300=0.00 total=257000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
				"cpu.stat":      "usage_usec 41500\nuser_usec 9000000\nthrottled_usec 0\n",
			},
			want: tool.Facts{OOMKills: 2, Pressure: tool.Pressure{Source: PSI, StalledMS: 252, UsedMS: 40}},
		},
		{
			name: "cgroup v2 without pressure falls back to throttling",
			before: map[string]string{
				"memory.events": "oom_kill 0\n",
				"cpu.stat":      "usage_usec 1\nnr_throttled 0\nthrottled_usec 1000\n",
			},
			after: map[string]string{"cpu.stat": "usage_usec 1\nnr_throttled 7\nthrottled_usec 91000\n"},
			want:  tool.Facts{Pressure: tool.Pressure{Source: Throttling, StalledMS: 90}},
		},
		{
			name: "pressure without usage proves nothing",
			before: map[string]string{
				"cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n",
			},
			after: map[string]string{"cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=9000000\n"},
			want:  tool.Facts{Pressure: tool.Pressure{Source: None}},
		},
		{
			name: "cgroup v1",
			own:  "4:memory:/kubepods/pod1\n1:cpu,cpuacct:/\n0::/\n",
			before: map[string]string{
				"memory/kubepods/pod1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
				"memory/memory.oom_control":               "oom_kill_disable 0\nunder_oom 0\noom_kill 100\n",
				"cpu/cpu.stat":                            "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
				"cpuacct/cpuacct.usage":                   "5000000\n",
			},
			after: map[string]string{
				"memory/kubepods/pod1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
				"memory/memory.oom_control":               "oom_kill_disable 0\nunder_oom 0\noom_kill 900\n",
				"cpu/cpu.stat":                            "nr_periods 9\nnr_throttled 3\nthrottled_time 30000000\n",
				"cpuacct/cpuacct.usage":                   "17000000\n",
			},
			want: tool.Facts{OOMKills: 1, Pressure: tool.Pressure{Source: Throttling, StalledMS: 30, UsedMS: 12}},
		},
		{
			name: "the mount shows our own cgroup although proc names a host path",
			own:  "0::/kubepods/somewhere/else\n",
			before: map[string]string{
				"memory.events": "oom_kill 7\n",
			},
			after: map[string]string{"memory.events": "oom_kill 8\n"},
			want:  tool.Facts{OOMKills: 1, Pressure: tool.Pressure{Source: None}},
		},
		{
			name: "nothing to read",
			want: tool.Facts{Pressure: tool.Pressure{Source: None}},
		},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			mount := t.TempDir()
			for path, text := range test.before {
				write(t, filepath.Join(mount, path), text)
			}
			reading := New(mount, test.own, "boot").Begin()
			for path, text := range test.after {
				write(t, filepath.Join(mount, path), text)
			}
			var got tool.Facts
			reading.End(&got)
			got.DurationMS = 0
			test.want.BootID = "boot"
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func BenchmarkReading(b *testing.B) {
	probe := Here("boot")
	var facts tool.Facts
	for b.Loop() {
		probe.Begin().End(&facts)
	}
}
