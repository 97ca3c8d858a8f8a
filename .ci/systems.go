//go:build ignore

// Systems checks the types of the program for the other systems that it is released for. It compiles nothing, and
// reads the declarations alone of other modules, so it takes a tenth of the time of a build.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// systems are the systems with the packages that have to suit each.
var systems = []struct {
	os, arch string
	packages []string
}{
	{"windows", "amd64", []string{"./..."}},
	{"darwin", "arm64", []string{"-test", "./..."}},
}

func main() {
	var wait sync.WaitGroup
	failed := make([]error, len(systems))
	for i, s := range systems {
		wait.Go(func() { failed[i] = check(s.os, s.arch, s.packages) })
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// checked are the packages of a system that have been read.
type checked struct {
	sizes    types.Sizes
	files    *token.FileSet
	packages map[string]*types.Package
}

func check(system, arch string, packages []string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, packages...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", system, err)
	}
	c := checked{types.SizesFor("gc", arch), token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}}
	var found []error
	own := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if p.Module != nil && p.Module.Main {
			own++
		}
		found = append(found, c.add(p)...)
	}
	if own == 0 {
		return fmt.Errorf("%s: no package", system)
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %w", system, errors.Join(found...))
	}
	fmt.Printf("%s/%s: %d packages\n", system, arch, own)
	return nil
}

// add reads a package, after all that it imports. It returns what is wrong with it.
func (c *checked) add(p listed) (wrong []error) {
	if p.ImportPath == "unsafe" {
		return nil
	}
	own := p.Module != nil && p.Module.Main
	var files []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			wrong = append(wrong, err)
		}
		files = append(files, f)
	}
	config := types.Config{
		Importer: importer{c, p.ImportMap}, Sizes: c.sizes, FakeImportC: true, IgnoreFuncBodies: !own,
		Error: func(err error) {
			if own || !strings.HasSuffix(err.Error(), "imported and not used") { // without functions many imports are not
				wrong = append(wrong, err)
			}
		},
	}
	path, _, _ := strings.Cut(p.ImportPath, " [") // a variant for a test
	got, _ := config.Check(path, c.files, files, nil)
	c.packages[p.ImportPath] = got
	return wrong
}

// importer finds the packages that one imports.
type importer struct {
	*checked
	by map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if variant := i.by[path]; variant != "" {
		path = variant
	}
	if p := i.packages[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s is not listed", path)
}
