package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"parley/gateway/client"
)

//go:embed node
var nodeFiles embed.FS

var installed struct {
	sync.Once
	err error
}

// installNode installs the packages of node/package.json, once, and returns their folder.
func installNode(ctx context.Context, o options) (string, error) {
	folder := filepath.Join(o.folder, "node")
	installed.Do(func() {
		files, err := fs.Sub(nodeFiles, "node")
		if err == nil {
			err = os.CopyFS(folder, files)
		}
		if err != nil {
			installed.err = err
			return
		}
		cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			installed.err = fmt.Errorf("npm install: %w: %s", err, out)
		}
	})
	return folder, installed.err
}

// freePort returns a port on which nothing listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// web makes calls over HTTP/1.1 with a connection for each caller.
type web struct {
	url    string
	client http.Client
}

func newWeb(port int) web {
	return web{url: fmt.Sprintf("http://127.0.0.1:%d", port), client: http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, Protocols: onlyHTTP1()}, Timeout: time.Minute,
	}}
}

func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// call posts JSON to a path, or gets the path if there is none, and returns the response.
func (w *web) call(ctx context.Context, path string, in any) ([]byte, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return text, err
}

// description and fields are the form of a cycle: some 410 bytes as JSON.
const description = "Configure project settings"

var fields = []client.Field{
	{Name: "projectName", Label: "Project name", Type: "text", Required: true, Placeholder: "a short name", Help: "as in the repository"},
	{Name: "environment", Label: "Environment", Type: "select", Required: true, Options: []client.Option{{Value: "staging"}, {Value: "production"}}},
	{Name: "apiKey", Label: "API key", Type: "text", Required: true, Placeholder: "sk-", Help: "from the provider's page of keys"},
}

// question is the form for systems without forms.
var question = map[string]any{"description": description, "fields": fields}

// answered is the answer of a cycle: some 70 bytes as JSON.
var answered = map[string]string{"projectName": "my-app", "environment": "staging", "apiKey": "sk-1234"}

// wantAnswer reports whether a response has the answer.
func wantAnswer(text []byte) error {
	if !strings.Contains(string(text), answered["apiKey"]) {
		return fmt.Errorf("the answer is not in %.200s", text)
	}
	return nil
}
