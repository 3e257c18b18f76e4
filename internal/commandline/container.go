package commandline

import (
	"fmt"
	"regexp"
)

const (
	imageHost   = `(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::[0-9]+)?/)?`
	imagePath   = `[a-z0-9]+(?:[._/-]+[a-z0-9]+)*`
	imageTag    = `(?::[A-Za-z0-9_][A-Za-z0-9._-]*)?`
	imageDigest = `@sha256:[0-9a-f]{64}$`
)

var (
	dockerImage = regexp.MustCompile(`^` + imageHost + imagePath + imageTag + imageDigest)
	// podmanImage has no tag: oci:x@sha256:... is the directory x@sha256 to podman, and so for its other
	// transports.
	podmanImage = regexp.MustCompile(`^` + imageHost + imagePath + imageDigest)
)

var (
	// mount has files of this machine or an empty file system: no image, and no volume that a driver fetches.
	mount = regexp.MustCompile(`^type=(?:bind|tmpfs)(?:,(?:src|source|dst|destination|target|readonly|ro|tmpfs-size|` +
		`tmpfs-mode)(?:=[^,"]*)?)*$`)
	pull = regexp.MustCompile(`^(?:always|missing|never)$`)
)

// ofContainers are options that say how a container runs and not what runs in it: none of them names another
// image or runtime, replaces the image's program, or lifts what keeps the container apart.
var ofContainers = switches(`-i --interactive -t --tty --rm --init --read-only -q --quiet --no-healthcheck`).and(fixed, `
	--add-host -a --attach --cap-drop --cpu-period --cpu-quota -c --cpu-shares --cpus --cpuset-cpus
	--cpuset-mems --dns --dns-option --dns-search -e --env --expose -h --hostname --ip --ip6 -l --label
	--mac-address -m --memory --memory-reservation --memory-swap --memory-swappiness --name
	--network --network-alias --pids-limit --platform -p --publish --restart --shm-size --stop-signal
	--stop-timeout --tmpfs --ulimit -u --user -v --volume -w --workdir`).
	and(mount, "--mount").and(pull, "--pull")

var (
	ofDockerRun = grammar{clusters: true, ends: true, options: ofContainers}
	ofPodmanRun = grammar{clusters: true, ends: true, options: ofContainers.and(fixed, "--tz --timeout")}
)

var (
	docker = container(ofDockerRun, dockerImage)
	podman = container(ofPodmanRun, podmanImage)
)

// container makes the reader of a program that runs images.
func container(run grammar, image *regexp.Regexp) func(string, []string, int) Verdict {
	return func(program string, args []string, depth int) Verdict {
		switch subcommand(args) {
		case "run", "create":
			return runImage(form(program, args), run.read(args[1:]), image, depth)
		case "ps", "images", "version", "info", "logs", "inspect", "stats", "top", "port", "diff", "events",
			"history": // these read
			return Verdict{}
		}
		if says(args) {
			return Verdict{}
		}
		return other(program, args)
	}
}

// runImage: what follows the image is a command for it or arguments of its own program, which is not known.
func runImage(form string, l line, image *regexp.Regexp, depth int) Verdict {
	switch {
	case l.unknown != "":
		return unknownForm(form, "with "+l.unknown)
	case len(l.rest) == 0:
		return unknownForm(form, "without an image")
	case placeholder(l.rest[0]):
		return unknownForm(form, "runs the image that "+l.rest[0]+" is filled in with")
	}
	var v Verdict
	if !image.MatchString(l.rest[0]) {
		v.Unpinned = fmt.Sprintf("%s fetches the image %s, which is not named by its digest", form, l.rest[0])
	}
	if len(l.rest) == 1 {
		return v
	}
	if placeholder(l.rest[1]) {
		v.RunsCode = fmt.Sprintf("%s runs %s in the image, if it has no program of its own", form, l.rest[1])
		return v
	}
	inside := recognise([]string{l.rest[1]}, l.rest[2:], depth+1) // docker run node@sha256:... npx x is npx x
	inside.Script, inside.Module, inside.Dir = "", false, ""      // files of the image
	return v.or(inside)
}

// nerdctl has no grammar: none of its forms is known to be safe.
func nerdctl(program string, args []string, _ int) Verdict { return other(program, args) }
