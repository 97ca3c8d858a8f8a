package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// network connects network namespaces through the test process, which loses, delays and cuts what they send.
type network struct {
	spaces []*space
	mu     sync.Mutex
	links  map[[2]int]link // from one space to another
}

// link is how packets go one way between two spaces.
type link struct {
	cut   bool
	loss  float64
	delay time.Duration
}

// space is a network namespace with one device.
type space struct {
	name, address string
	device        *os.File
}

// newNetwork makes namespaces with the addresses 10.77.0.1 and on. It skips the test where that is not allowed.
func newNetwork(t *testing.T, size int) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	n := &network{links: map[[2]int]link{}}
	for i := range size {
		s := &space{name: fmt.Sprintf("parley-%d-%d", os.Getpid(), i), address: fmt.Sprintf("10.77.0.%d", i+1)}
		if out, err := exec.Command("ip", "netns", "add", s.name).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.name).Run() })
		err := within(s.name, func() (err error) {
			s.device, err = openDevice()
			return err
		})
		if err != nil {
			t.Skip("no network devices here: ", err)
		}
		for _, args := range [][]string{
			{"link", "set", "lo", "up"}, {"addr", "add", s.address + "/24", "dev", "tun0"}, {"link", "set", "tun0", "up"},
		} {
			if out, err := exec.Command("ip", append([]string{"-n", s.name}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", args, err, out)
			}
		}
		n.spaces = append(n.spaces, s)
	}
	var forwarding sync.WaitGroup
	for i := range n.spaces {
		forwarding.Go(func() { n.forward(i) })
	}
	t.Cleanup(func() {
		for _, s := range n.spaces {
			_ = s.device.Close() // which ends its reader
		}
		forwarding.Wait()
	})
	return n
}

// within calls do on a thread that is in a namespace.
func within(name string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and with it the change
		ns, err := os.Open("/var/run/netns/" + name)
		if err == nil {
			defer ns.Close() //nolint:errcheck // only read from
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	return <-result
}

// openDevice makes the device tun0 in the thread's namespace.
func openDevice() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq("tun0")
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tun0"), nil
}

// forward passes on what a space sends, until its device is closed.
func (n *network) forward(from int) {
	for {
		packet := make([]byte, 2048)
		size, err := n.spaces[from].device.Read(packet)
		if err != nil {
			return
		}
		if size < 20 || packet[0]>>4 != 4 {
			continue
		}
		to := int(packet[19]) - 1
		if to < 0 || to >= len(n.spaces) {
			continue
		}
		n.mu.Lock()
		l := n.links[[2]int{from, to}]
		n.mu.Unlock()
		if l.cut || rand.Float64() < l.loss {
			continue
		}
		send := func() { _, _ = n.spaces[to].device.Write(packet[:size]) } // a network may lose it
		if l.delay > 0 {
			time.AfterFunc(l.delay, send)
		} else {
			send()
		}
	}
}

// set sets the link between two spaces, one way.
func (n *network) set(from, to int, l link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]int{from, to}] = l
}

// setAll sets all links.
func (n *network) setAll(l link) {
	for from := range n.spaces {
		for to := range n.spaces {
			n.set(from, to, l)
		}
	}
}

// spaceDialer dials from a namespace. It implements nats.CustomDialer.
type spaceDialer string

func (d spaceDialer) Dial(network, address string) (conn net.Conn, err error) {
	err = within(string(d), func() (err error) {
		conn, err = net.DialTimeout(network, address, 2*time.Second)
		return err
	})
	return conn, err
}
