package websocket

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkEcho sends a message over TCP and reads it back, with this package on both sides.
func BenchmarkEcho(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, "", Options{MaxMessage: 1 << 20})
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Cut()
		for {
			kind, m, err := c.Read()
			if err != nil || c.Write(kind, m) != nil {
				return
			}
		}
	}))
	defer s.Close()
	for _, n := range []int{200, 3000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, _, _, err := Dial(b.Context(), http.DefaultClient, s.URL, nil, "", Options{MaxMessage: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Cut()
			m := message(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Write(Binary, m); err != nil {
					b.Fatal(err)
				}
				if _, _, err := c.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
