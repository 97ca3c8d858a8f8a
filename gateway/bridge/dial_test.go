package bridge

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
)

func TestClientReachesNothingNearer(t *testing.T) {
	reached := 0
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	}))
	defer here.Close()
	for _, nearest := range []Network{Public, Private} {
		for _, address := range []string{here.URL, strings.Replace(here.URL, "127.0.0.1", "localhost", 1)} {
			resp, err := Client(nearest).Get(address)
			if err == nil {
				_ = resp.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "nearer than") || reached > 0 {
				t.Errorf("%s within %s: %v", address, nearest, err)
			}
		}
	}
	client := Client(Machine)
	resp, err := client.Get(here.URL)
	if err != nil || resp.StatusCode != http.StatusFound || Taken(resp) == nil {
		t.Fatalf("within this machine: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	client.CloseIdleConnections()
}

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]Network{
		"127.0.0.1": Machine, "::1": Machine, "0.0.0.0": Machine, "169.254.169.254": Machine, "fe80::1": Machine, "::ffff:127.0.0.1": Machine,
		"10.1.2.3": Private, "192.168.0.1": Private, "fd00::1": Private, "100.64.0.1": Private, "64:ff9b::a00:1": Private, "::ffff:10.0.0.1": Private,
		"1.1.1.1": Public, "2606:4700::1": Public,
	} {
		if got := NetworkOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

func TestScheduleFollowsFromKey(t *testing.T) {
	since := capabilities.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	last, differs := since, false
	for tries := 1; ; tries++ {
		at, more := next("a", since, tries)
		if !more {
			if days := last.Std().Sub(since.Std()).Hours() / 24; days < 4 || days > 6 {
				t.Errorf("the tries take %.1f days", days)
			}
			break
		}
		again, _ := next("a", since, tries)
		other, _ := next("b", since, tries)
		if at != again || at <= last {
			t.Fatalf("try %d is at %s and %s, after %s", tries, at, again, last)
		}
		last, differs = at, differs || at != other
	}
	if !differs {
		t.Error("the jitter doesn't depend on the key")
	}
}

func TestConfigCheck(t *testing.T) {
	good := Config{Name: "phone", Kind: "ntfy", URL: "https://ntfy.example/topic"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Name = "../x" }, func(c *Config) { c.Name = "" }, func(c *Config) { c.URL = "http://ntfy.example/topic" },
		func(c *Config) { c.URL = "file:///etc/passwd" }, func(c *Config) { c.URL = "https://user:pw@example/" }, func(c *Config) { c.Network = "moon" },
		func(c *Config) { c.Address = "ftp://a" },
	} {
		c := good
		change(&c)
		if err := c.Check(); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
