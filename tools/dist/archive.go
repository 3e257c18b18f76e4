package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name string // below the archive's own directory
	mode int64
	data []byte
}

// shared returns the files that are the same on every platform; program runs on this machine.
func (r *release) shared(program, man string) (files []file, err error) {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	for shell, name := range map[string]string{"bash": "bash/catalogd", "zsh": "zsh/_catalogd", "fish": "fish/catalogd.fish"} {
		script, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, 0o644, script})
	}
	if err := exec.Command(program, "man", man, "--date", r.time.Format(time.DateOnly)).Run(); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(man)
	for _, page := range pages {
		data, readErr := os.ReadFile(filepath.Join(man, page.Name()))
		err = errors.Join(err, readErr)
		files = append(files, file{"man/man1/" + page.Name(), 0o644, data})
	}
	return files, err
}

// platform returns the files of one platform: the program, and what is linked into it.
func (r *release) platform(program, goos, goarch string) ([]file, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	linked, err := r.linked(program)
	if err != nil {
		return nil, err
	}
	bom, err := r.billOfMaterials(linked, data, goos, goarch)
	if err != nil {
		return nil, err
	}
	return []file{{"catalogd", 0o755, data}, {"sbom.cdx.json", 0o644, bom}, {"THIRD_PARTY_LICENSES", 0o644, texts(linked)}}, nil
}

// pack returns a tar.gz whose bytes depend on nothing but its arguments.
func pack(dir string, files []file, at time.Time) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	made := map[string]bool{}
	header := func(name string, kind byte, mode, size int64) error {
		return archive.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: at, Format: tar.FormatPAX})
	}
	for _, f := range files {
		name := dir + "/" + f.name
		for i, r := range name { // directories first
			if parent := name[:i+1]; r == '/' && !made[parent] {
				made[parent] = true
				if err := header(parent, tar.TypeDir, 0o755, 0); err != nil {
					return nil, err
				}
			}
		}
		if err := header(name, tar.TypeReg, f.mode, int64(len(f.data))); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
