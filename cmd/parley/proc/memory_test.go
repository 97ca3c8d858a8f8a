package proc

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	firstMounts = `23 1 0:20 / / rw - ext4 /dev/sda rw
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	secondMounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	partMounts   = "30 23 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"
)

// TestGroupMemory reads the limits of control groups of both versions, at all levels.
func TestGroupMemory(t *testing.T) {
	const unlimited = "9223372036854771712\n"
	for name, c := range map[string]struct {
		groups, mounts string
		limits         map[string]string
		want           int64
	}{
		"no groups": {},
		"version 2": {"0::/user/app\n", secondMounts, map[string]string{"sys/fs/cgroup/user/app/memory.max": "209715200\n"}, 200 << 20},
		"version 2, the group above is smaller": {"0::/user/app\n", secondMounts, map[string]string{
			"sys/fs/cgroup/user/app/memory.max": "209715200\n", "sys/fs/cgroup/user/memory.max": "104857600\n",
		}, 100 << 20},
		"version 2, only above": {"0::/user/app\n", secondMounts, map[string]string{
			"sys/fs/cgroup/user/app/memory.max": "max\n", "sys/fs/cgroup/user/memory.max": "104857600\n",
		}, 100 << 20},
		"version 2, none":        {"0::/user/app\n", secondMounts, map[string]string{"sys/fs/cgroup/user/app/memory.max": "max\n"}, 0},
		"version 2, a namespace": {"0::/\n", secondMounts, map[string]string{"sys/fs/cgroup/memory.max": "209715200\n"}, 200 << 20},
		"version 2, a container": {"0::/docker/abc\n", partMounts, map[string]string{"sys/fs/cgroup/memory.max": "209715200\n"}, 200 << 20},
		"version 2, elsewhere":   {"0::/../other\n", partMounts, map[string]string{"sys/fs/cgroup/memory.max": "209715200\n"}, 200 << 20},
		"version 1": {"5:cpu,cpuacct:/x\n4:memory:/user/app\n0::/\n", firstMounts, map[string]string{
			"sys/fs/cgroup/memory/user/app/memory.limit_in_bytes": "209715200\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited,
		}, 200 << 20},
		"version 1 unlimited": {"4:memory:/\n", firstMounts, map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited}, 9223372036854771712},
		"damaged":             {"x\n:::\n4:memory\n", "x - y\n", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.groups != "" {
				write("proc/self/cgroup", c.groups)
				write("proc/self/mountinfo", c.mounts)
			}
			for file, limit := range c.limits {
				write(file, limit)
			}
			if got, ok := groupMemory(root); got != c.want || ok != (c.want > 0) {
				t.Errorf("got %d, %v, want %d", got, ok, c.want)
			}
		})
	}
	if got := softLimit(200 << 20); got != 164<<20 {
		t.Errorf("of 200 MiB the collector gets %d bytes", got)
	}
	if got := softLimit(20 << 20); got != least {
		t.Errorf("of 20 MiB the collector gets %d bytes", got)
	}
}
