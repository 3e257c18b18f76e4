// Command dist writes the archives of a release, one for each platform: the program, its man pages and completions, a
// software bill of materials (CycloneDX) and the licences of what is linked, and beside them SHA256SUMS. The same
// commit, version and Go toolchain give the same bytes on any machine. It is run in the root of the repository, by
// `make dist`.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "what catalogd version prints, such as v1.2.3")
	flag.StringVar(&r.out, "out", "dist", "the directory to write to; archives of other versions in it are removed")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64", "GOOS/GOARCH, separated by blanks; host is this machine's")
	flag.Parse()
	if err := r.write(strings.Fields(*platforms)); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

type release struct {
	version, out string
	time         time.Time // the modification time of every file
	modules      map[string]module
}

func (r *release) write(platforms []string) (err error) {
	if r.version == "" || strings.ContainsAny(r.version, `/\ `) {
		return fmt.Errorf("-version %q: give one such as v1.2.3", r.version)
	}
	if r.time, err = commitTime(); err != nil {
		return err
	}
	if r.modules, err = listModules(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	older, err := filepath.Glob(filepath.Join(r.out, "catalogd_*.tar.gz"))
	for _, name := range older {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "catalogd-dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	// What is the same on every platform is written by this machine's program.
	host := filepath.Join(work, "host")
	if err := r.build(host, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	shared, err := r.shared(host, filepath.Join(work, "man"))
	if err != nil {
		return err
	}
	var sums []string
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if platform == "host" {
			goos, goarch, ok = runtime.GOOS, runtime.GOARCH, true
		}
		if !ok {
			return fmt.Errorf("-platforms: %q is not GOOS/GOARCH", platform)
		}
		program := host
		if goos != runtime.GOOS || goarch != runtime.GOARCH {
			program = filepath.Join(work, goos+"-"+goarch)
			if err := r.build(program, goos, goarch); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("catalogd_%s_%s_%s", strings.TrimPrefix(r.version, "v"), goos, goarch)
		files, err := r.platform(program, goos, goarch)
		if err != nil {
			return err
		}
		archive, err := pack(name, append(files, shared...), r.time)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name+".tar.gz"), archive, 0o644); err != nil {
			return err
		}
		sums = append(sums, fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), name))
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
}

// build builds the program for a platform. Without cgo it is static, and Go can put its workers under Landlock.
func (r *release) build(program, goos, goarch string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.release="+r.version, "-o", program, "./cmd/catalogd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building for %s/%s: %w", goos, goarch, err)
	}
	return nil
}

// commitTime returns the time of the commit that is released, or SOURCE_DATE_EPOCH.
func commitTime() (time.Time, error) {
	stamp := os.Getenv("SOURCE_DATE_EPOCH")
	if stamp == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("git log: %w; outside of a git repository set SOURCE_DATE_EPOCH", err)
		}
		stamp = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is no number of seconds", stamp)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
