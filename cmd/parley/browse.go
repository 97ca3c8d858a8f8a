package main

import (
	"context"
	"fmt"
	"html"
	"os/exec"
	"path/filepath"
	"runtime"

	"parley"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/terminal"
)

// leadFile is the name of the file in the state folder that leads a browser to a link.
const leadFile = "parley.open.html"

// browse opens a link in the person's browser, if there is one to be found. Everybody on a machine sees the arguments of
// every process there: the browser is given a file that nobody else can read, and that leads to the link.
func (p *program) browse(ctx context.Context, link string) error {
	opener := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if opener == "" {
		opener = "xdg-open"
	}
	path, err := exec.LookPath(opener)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "there is no %s here", opener)
	}
	lead, err := p.leadTo(link)
	if err != nil {
		return terminal.Unwritable(p.options.state, err)
	}
	if err := exec.CommandContext(ctx, path, lead).Run(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "%s: %v", opener, err)
	}
	return nil
}

// leadTo writes the file that leads to a link, in place of the last one. It stays, as nobody says when the browser has
// read it: the link is good once, and not for long.
func (p *program) leadTo(link string) (path string, err error) {
	folder, err := filepath.Abs(p.options.state)
	if err != nil {
		return "", err
	}
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Parley</title>
<meta http-equiv="refresh" content="0; url=%[1]s"><p><a href="%[1]s">Sign in to Parley</a></p>
`, html.EscapeString(link))
	path = filepath.Join(folder, leadFile)
	return path, setup.WriteFile(path, []byte(page), 0o600)
}
