package main

import (
	"context"
	"os/exec"
	"runtime"

	"parley"
)

// browse opens a link in the person's browser, if there is one to be found.
func browse(ctx context.Context, link string) error {
	opener := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if opener == "" {
		opener = "xdg-open"
	}
	path, err := exec.LookPath(opener)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "there is no %s here", opener)
	}
	if err := exec.CommandContext(ctx, path, link).Run(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "%s: %v", opener, err)
	}
	return nil
}
